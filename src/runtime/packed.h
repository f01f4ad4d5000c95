// Quantised weights in the order that products read them: tiles of 16 rows, made once and used by every product with
// the same matrix. qmatmul() finds them by the address of the plain weights, so compiled code knows nothing of them.
//
//   matrix  = tile*                        16 rows each, the last one padded with rows of zeros
//   tile    = scales codes                 each begins at a multiple of 64 bytes
//   codes   = (plane(64)*bits)*            a group of 32 columns: 64 bytes for each bit of a code; 32-bit lane r is row
//   r scales  = (d:f16[16] m:f16[16]?)*      a group: w = d*code + m, or d*(code - offset)
//           | (d:f16[16] m:f16[16] (scale:u8[16] minimum:u8[16])(8))*   256 columns: q4_k, q5_k
//           | (d:f16[16] (scale:i8[16] scale:i8[16])(8))*               256 columns: q6_k, a scale for each 16 columns
//
// Pair p of a group, p = 4c + j, is columns 4c + 16*(j%2) + j/2 and the one two further on: what one 32-bit lane holds
// when codes have become 16-bit numbers. Codes of 4 bits: nibble j of a 16-bit half of lane r in plane quadruple c.
// Bits above the fourth: bit 4c + {0,2,1,3}[j] of each half in a plane of their own. Codes of 8 bits: pairs j = 0 and 2
// are the even and odd bytes of vector c, j = 1 and 3 those of vector c + 4.
//
// Activations become 16-bit numbers with one scale for each 32 of them: a product's error is at most that of rounding
// them to 1/65534 of the largest of their 32, plus that of f32 sums. Groups with NaN or infinity count as NaN; numbers
// below 2^-100 in a group of such count as 0.
// Results do not depend on the thread count. Tests: test/unit/packed_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "runtime/quantized.h"

namespace ember::runtime {

inline constexpr int64_t kTileRows = 16;

/// A matrix [n, k] in the layout of quantized.h.
struct PlainWeights {
    QType type;
    int64_t n, k;
    const void* data;
};

/// Whether matrices of this type have a packed form.
bool can_pack(QType type);

/// The packed form of some matrices, in one block of memory. While it lives, products with their data use it; the data
/// must stay valid and unchanged, and no product may be running when it ends.
class PackedWeights {
public:
    /// Null where memory is out. Each matrix must have a packed form. `packed` (may be empty) is called after each one:
    /// products will not read its plain data again.
    static std::unique_ptr<PackedWeights> make(std::span<const PlainWeights> weights,
                                               const std::function<void(size_t)>& packed);
    ~PackedWeights();
    PackedWeights(const PackedWeights&) = delete;
    PackedWeights& operator=(const PackedWeights&) = delete;

    int64_t bytes() const { return bytes_; }

private:
    PackedWeights() = default;

    std::byte* memory_ = nullptr;
    int64_t bytes_ = 0;
};

/// As qmatmul(), if this matrix is packed; else false, and nothing is done.
bool multiply_packed(QType type, int64_t m, int64_t n, int64_t k, const float* x, int64_t x_stride, const void* w,
                     float* y, int64_t y_stride);

}  // namespace ember::runtime
