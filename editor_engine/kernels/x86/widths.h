// Weights of 4, 5, 6 and 8 bits: a packed block of 32 inputs x 8 columns -> eight vectors, and the integer dot product
// of those with one row.
//
// Invariant: the integers are exact, so every variant has the same ones. 16-bit sums run as far as they cannot overflow:
// 8 products of unsigned 4-bit weights (30480), 4 of 5-bit (31496), 2 of 6-bit (32004); signed 8-bit weights by the sign
// trick (32512), one each.
#pragma once

#include "x86.h"

#include <immintrin.h>

namespace redraft::REDRAFT_ISA {

namespace {

__m256i load32(const std::uint8_t* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }

__m256i four_inputs(const std::int8_t* q, int group) {
    std::int32_t four;
    __builtin_memcpy(&four, q + 4 * group, 4);
    return _mm256_set1_epi32(four);
}

// Four products per 32-bit lane, of unsigned weights with signed activations, summed over the vectors [begin, end).
// `fit` is how many maddubs results can be added in 16 bits; VNNI adds in 32 and needs no such care.
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
template <int begin, int end, int fit> __m256i dot_unsigned(const __m256i* w, const std::int8_t* q) {
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int v = begin; v < end; ++v) {
        sum = _mm256_dpbusd_epi32(sum, w[v], four_inputs(q, v));
    }
    return sum;
}
#elif defined(__AVXVNNI__)
template <int begin, int end, int fit> __m256i dot_unsigned(const __m256i* w, const std::int8_t* q) {
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int v = begin; v < end; ++v) {
        sum = _mm256_dpbusd_avx_epi32(sum, w[v], four_inputs(q, v));
    }
    return sum;
}
#else
template <int begin, int end, int fit> __m256i dot_unsigned(const __m256i* w, const std::int8_t* q) {
    __m256i total = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int first = begin; first < end; first += fit) {
        __m256i sums = _mm256_maddubs_epi16(w[first], four_inputs(q, first));
#pragma GCC unroll 8
        for (int v = first + 1; v < first + fit; ++v) {
            sums = _mm256_add_epi16(sums, _mm256_maddubs_epi16(w[v], four_inputs(q, v)));
        }
        const __m256i wide = _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
        total = first == begin ? wide : _mm256_add_epi32(total, wide);
    }
    return total;
}
#endif

void unpack_nibbles(const std::uint8_t* quants, __m256i* w) {
    const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
        const __m256i packed = load32(quants + 32 * v);
        w[v] = _mm256_and_si256(packed, mask);
        w[v + 4] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), mask);
    }
}

struct Four {
    static constexpr int kBytes = 128;
    static void unpack(const std::uint8_t* quants, __m256i* w) { unpack_nibbles(quants, w); }
    static __m256i dot(const __m256i* w, const std::int8_t* q) { return dot_unsigned<0, 8, 8>(w, q); }
};

struct Five {
    static constexpr int kBytes = 160;
    static void unpack(const std::uint8_t* quants, __m256i* w) {
        unpack_nibbles(quants, w);
        const __m256i high = load32(quants + 128);
        const __m256i mask = _mm256_set1_epi8(16);
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
            w[v] = _mm256_or_si256(w[v], _mm256_and_si256(_mm256_slli_epi16(high, 4 - v), mask));
            w[v + 4] = _mm256_or_si256(w[v + 4], _mm256_and_si256(_mm256_srli_epi16(high, v), mask));
        }
    }
    static __m256i dot(const __m256i* w, const std::int8_t* q) { return dot_unsigned<0, 8, 4>(w, q); }
};

struct Six {
    static constexpr int kBytes = 192;
    static void unpack(const std::uint8_t* quants, __m256i* w) {
        unpack_nibbles(quants, w);
        const __m256i mask = _mm256_set1_epi8(48);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
            const __m256i high = load32(quants + 128 + 32 * h);
            __m256i* out = w + 4 * h;
            out[0] = _mm256_or_si256(out[0], _mm256_and_si256(_mm256_slli_epi16(high, 4), mask));
            out[1] = _mm256_or_si256(out[1], _mm256_and_si256(_mm256_slli_epi16(high, 2), mask));
            out[2] = _mm256_or_si256(out[2], _mm256_and_si256(high, mask));
            out[3] = _mm256_or_si256(out[3], _mm256_and_si256(_mm256_srli_epi16(high, 2), mask));
        }
    }
    // of the inputs 16 half .. 16 half + 15
    template <int half> static __m256i dot_half(const __m256i* w, const std::int8_t* q) {
        return dot_unsigned<4 * half, 4 * half + 4, 2>(w, q);
    }
};

// Signed weights. With VNNI they are stored in registers plus 128 and 128 times the activations' sum is taken off again;
// else the sign of each weight moves to its activation, one product at a time.
struct Eight {
    static constexpr int kBytes = 256;
#if (defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__AVXVNNI__)
    static constexpr int kZeroShift = 7;
    static void unpack(const std::uint8_t* quants, __m256i* w) {
#pragma GCC unroll 8
        for (int v = 0; v < 8; ++v) {
            w[v] = _mm256_xor_si256(load32(quants + 32 * v), _mm256_set1_epi8(-128));
        }
    }
    static __m256i dot(const __m256i* w, const std::int8_t* q) { return dot_unsigned<0, 8, 1>(w, q); }
#else
    static constexpr int kZeroShift = 0;
    static void unpack(const std::uint8_t* quants, __m256i* w) {
#pragma GCC unroll 8
        for (int v = 0; v < 8; ++v) {
            w[v] = load32(quants + 32 * v);
        }
    }
    static __m256i dot(const __m256i* w, const std::int8_t* q) {
        __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int v = 0; v < 8; ++v) {
            const __m256i a = _mm256_sign_epi8(four_inputs(q, v), w[v]);
            const __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(w[v]), a);
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
        }
        return sum;
    }
#endif
};

} // namespace

} // namespace redraft::REDRAFT_ISA
