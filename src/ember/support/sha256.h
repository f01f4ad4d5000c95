// SHA-256 (FIPS 180-4), incremental. Our own because a hit must be light: loading and initialising libcrypto costs a
// process about 2 ms, more than the whole hit. Uses the CPU's SHA instructions where there are any.
// Tests: test/unit/artifact_test.cpp (against OpenSSL and the vectors of FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ember {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
public:
    Sha256();
    Sha256& update(std::string_view bytes);
    /// The digest of all bytes given so far; the object is used up.
    Digest finish();

private:
    std::array<uint32_t, 8> state_;
    std::array<uint8_t, 64> block_;
    size_t block_size_ = 0;
    uint64_t total_size_ = 0;
};

Digest sha256(std::string_view bytes);

/// Lower-case hexadecimal digits, two a byte.
std::string to_hex(std::string_view bytes);

namespace detail {

/// Absorbs `count` blocks of 64 bytes. Both give the same state; tests compare them.
using Sha256Blocks = void (*)(uint32_t state[8], const uint8_t* blocks, size_t count);
void sha256_blocks_portable(uint32_t state[8], const uint8_t* blocks, size_t count);
/// The fastest one that this CPU can run.
Sha256Blocks sha256_blocks_fastest();

}  // namespace detail
}  // namespace ember
