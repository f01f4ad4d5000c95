// SHA-256: a portable form and one on x86 SHA instructions, chosen once. See sha256.h.
#include "ember/support/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ember/support/cpuid.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ember {
namespace {

// FIPS 180-4, 4.2.2: the fractional parts of the cube roots of the first 64 primes.
alignas(64) constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t load_big_endian(const uint8_t* from) {
    return uint32_t{from[0]} << 24 | uint32_t{from[1]} << 16 | uint32_t{from[2]} << 8 | uint32_t{from[3]};
}

template <class Int>
void store_big_endian(uint8_t* to, Int value) {
    for (size_t i = 0; i < sizeof(Int); ++i) {
        to[i] = static_cast<uint8_t>(value >> (8 * (sizeof(Int) - 1 - i)));
    }
}

void absorb_block(uint32_t state[8], const uint8_t* block) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
        w[i] = load_big_endian(block + 4 * i);
    }
    for (int i = 16; i < 64; ++i) {
        uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
#pragma GCC unroll 16
    for (int i = 0; i < 64; ++i) {
        uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
        uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

#if defined(__x86_64__)

bool has_sha_instructions() {
    constexpr int kEbx = 1, kEcx = 2;
    CpuidOutput basic = cpuid(CpuidLeaf::kBasic);
    bool has_shuffles = basic.bit(kEcx, 9) && basic.bit(kEcx, 19);  // SSSE3, SSE4.1
    return has_shuffles && cpuid(CpuidLeaf::kExtended).bit(kEbx, 29);
}

// The instructions hold the state as two vectors, (a b e f) and (c d g h), and do four rounds on four message words.
__attribute__((target("sha,sse4.1,ssse3"))) void sha256_blocks_x86(uint32_t state[8], const uint8_t* blocks,
                                                                   size_t count) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state));
    __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4));
    __m128i badc = _mm_shuffle_epi32(dcba, 0xb1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(badc, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, badc, 0xf0);

    for (; count > 0; --count, blocks += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; ++i) {
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks) + i), swap);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
            __m128i now = w[i & 3];
            if (i >= 4) {  // message words 4i … 4i+3 from the sixteen before
                __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) & 3]),
                                            _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
                now = w[i & 3] = _mm_sha256msg2_epu32(sum, w[(i + 3) & 3]);
            }
            __m128i k = _mm_add_epi32(now, _mm_load_si128(reinterpret_cast<const __m128i*>(kRounds) + i));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }

    __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#endif

}  // namespace

namespace detail {

void sha256_blocks_portable(uint32_t state[8], const uint8_t* blocks, size_t count) {
    for (; count > 0; --count, blocks += 64) {
        absorb_block(state, blocks);
    }
}

Sha256Blocks sha256_blocks_fastest() {
#if defined(__x86_64__)
    static const Sha256Blocks kBlocks = has_sha_instructions() ? sha256_blocks_x86 : sha256_blocks_portable;
    return kBlocks;
#else
    return sha256_blocks_portable;
#endif
}

}  // namespace detail

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

Sha256& Sha256::update(std::string_view bytes) {
    const auto* from = reinterpret_cast<const uint8_t*>(bytes.data());
    size_t size = bytes.size();
    total_size_ += size;
    if (block_size_ > 0) {
        size_t take = std::min(size, block_.size() - block_size_);
        std::memcpy(block_.data() + block_size_, from, take);
        block_size_ += take;
        from += take;
        size -= take;
        if (block_size_ < block_.size()) {
            return *this;
        }
        detail::sha256_blocks_fastest()(state_.data(), block_.data(), 1);
        block_size_ = 0;
    }
    detail::sha256_blocks_fastest()(state_.data(), from, size / 64);
    block_size_ = size % 64;
    if (block_size_ > 0) {
        std::memcpy(block_.data(), from + size - block_size_, block_size_);
    }
    return *this;
}

Digest Sha256::finish() {
    uint8_t tail[72] = {0x80};
    size_t padding = 1 + (119 - block_size_) % 64;
    store_big_endian(tail + padding, total_size_ * 8);
    update({reinterpret_cast<const char*>(tail), padding + 8});
    Digest digest;
    for (size_t i = 0; i < state_.size(); ++i) {
        store_big_endian(digest.data() + 4 * i, state_[i]);
    }
    return digest;
}

Digest sha256(std::string_view bytes) {
    return Sha256().update(bytes).finish();
}

std::string to_hex(std::string_view bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (char byte : bytes) {
        text += kDigits[static_cast<uint8_t>(byte) >> 4];
        text += kDigits[static_cast<uint8_t>(byte) & 15];
    }
    return text;
}

}  // namespace ember
