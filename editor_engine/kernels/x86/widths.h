// Weights of 4, 5, 6 and 8 bits: a packed block of 32 inputs x 8 columns -> eight vectors, and the integer dot products
// of those with rows; for one group of columns or two (columns.h).
//
// Invariant: the integers are exact, so every variant has the same ones. 16-bit sums run as far as they cannot overflow:
// 8 products of unsigned 4-bit weights (30480), 4 of 5-bit (31496), 2 of 6-bit (32004); signed 8-bit weights by the sign
// trick (32512), one each.
#pragma once

#include "columns.h"

namespace redraft::REDRAFT_ISA {

namespace {

template <class Columns> typename Columns::Ints four_inputs(const std::int8_t* q, int group) {
    std::int32_t four;
    __builtin_memcpy(&four, q + 4 * group, 4);
    return Columns::spread(four);
}

// Of `rows` rows, `stride` bytes apart: four products per 32-bit lane, of unsigned weights with signed activations,
// summed over the vectors [begin, end). `fit` is how many maddubs results can be added in 16 bits; VNNI adds in 32 and
// needs no such care.
#if (defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__AVXVNNI__)
template <class Columns, int rows, int begin, int end, int fit>
void dot_unsigned(const typename Columns::Ints* w, const std::int8_t* q, std::int64_t stride,
                  typename Columns::Ints* sums) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        sums[r] = Columns::zero();
    }
#pragma GCC unroll 8
    for (int v = begin; v < end; ++v) { // the rows' sums side by side: each waits five cycles for its last product
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            sums[r] = Columns::add_dot(sums[r], w[v], four_inputs<Columns>(q + r * stride, v));
        }
    }
}
#else
template <class Columns, int rows, int begin, int end, int fit>
void dot_unsigned(const __m256i* w, const std::int8_t* q, std::int64_t stride, __m256i* sums) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r, q += stride) {
#pragma GCC unroll 8
        for (int first = begin; first < end; first += fit) {
            __m256i narrow = _mm256_maddubs_epi16(w[first], four_inputs<Columns>(q, first));
#pragma GCC unroll 8
            for (int v = first + 1; v < first + fit; ++v) {
                narrow = _mm256_add_epi16(narrow, _mm256_maddubs_epi16(w[v], four_inputs<Columns>(q, v)));
            }
            const __m256i wide = _mm256_madd_epi16(narrow, _mm256_set1_epi16(1));
            sums[r] = first == begin ? wide : _mm256_add_epi32(sums[r], wide);
        }
    }
}
#endif

template <class Columns> struct Four {
    using Ints = typename Columns::Ints;
    static constexpr int kBytes = 128;
    static void unpack(const std::uint8_t* quants, std::int64_t gap, Ints* w) {
        const Ints mask = Columns::bytes(15);
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
            const Ints packed = Columns::load(quants + 32 * v, gap);
            w[v] = Columns::both(packed, mask);
            w[v + 4] = Columns::both(Columns::template right16<4>(packed), mask);
        }
    }
    template <int rows> static void dot(const Ints* w, const std::int8_t* q, std::int64_t stride, Ints* sums) {
        dot_unsigned<Columns, rows, 0, 8, 8>(w, q, stride, sums);
    }
};

template <class Columns> struct Five {
    using Ints = typename Columns::Ints;
    static constexpr int kBytes = 160;
    static void unpack(const std::uint8_t* quants, std::int64_t gap, Ints* w) {
        Four<Columns>::unpack(quants, gap, w);
        const Ints high = Columns::load(quants + 128, gap);
        add_bit(w[0], Columns::template left16<4>(high));
        add_bit(w[1], Columns::template left16<3>(high));
        add_bit(w[2], Columns::template left16<2>(high));
        add_bit(w[3], Columns::template left16<1>(high));
        add_bit(w[4], high);
        add_bit(w[5], Columns::template right16<1>(high));
        add_bit(w[6], Columns::template right16<2>(high));
        add_bit(w[7], Columns::template right16<3>(high));
    }
    template <int rows> static void dot(const Ints* w, const std::int8_t* q, std::int64_t stride, Ints* sums) {
        dot_unsigned<Columns, rows, 0, 8, 4>(w, q, stride, sums);
    }

private:
    static void add_bit(Ints& w, Ints high) { w = Columns::either(w, Columns::both(high, Columns::bytes(16))); }
};

template <class Columns> struct Six {
    using Ints = typename Columns::Ints;
    static constexpr int kBytes = 192;
    static void unpack(const std::uint8_t* quants, std::int64_t gap, Ints* w) {
        Four<Columns>::unpack(quants, gap, w);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
            const Ints high = Columns::load(quants + 128 + 32 * h, gap);
            add_bits(w[4 * h], Columns::template left16<4>(high));
            add_bits(w[4 * h + 1], Columns::template left16<2>(high));
            add_bits(w[4 * h + 2], high);
            add_bits(w[4 * h + 3], Columns::template right16<2>(high));
        }
    }
    // of the inputs 16 half .. 16 half + 15
    template <int half, int rows>
    static void dot_half(const Ints* w, const std::int8_t* q, std::int64_t stride, Ints* sums) {
        dot_unsigned<Columns, rows, 4 * half, 4 * half + 4, 2>(w, q, stride, sums);
    }

private:
    static void add_bits(Ints& w, Ints high) { w = Columns::either(w, Columns::both(high, Columns::bytes(48))); }
};

// Signed weights. With VNNI they are stored in registers plus 128 and 128 times the activations' sum is taken off again;
// else the sign of each weight moves to its activation, one product at a time.
template <class Columns> struct Eight {
    using Ints = typename Columns::Ints;
    static constexpr int kBytes = 256;
#if (defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__AVXVNNI__)
    static constexpr int kZeroShift = 7;
    static void unpack(const std::uint8_t* quants, std::int64_t gap, Ints* w) {
#pragma GCC unroll 8
        for (int v = 0; v < 8; ++v) {
            w[v] = Columns::differ(Columns::load(quants + 32 * v, gap), Columns::bytes(-128));
        }
    }
    template <int rows> static void dot(const Ints* w, const std::int8_t* q, std::int64_t stride, Ints* sums) {
        dot_unsigned<Columns, rows, 0, 8, 1>(w, q, stride, sums);
    }
#else
    static constexpr int kZeroShift = 0;
    static void unpack(const std::uint8_t* quants, std::int64_t gap, Ints* w) {
#pragma GCC unroll 8
        for (int v = 0; v < 8; ++v) {
            w[v] = Columns::load(quants + 32 * v, gap);
        }
    }
    template <int rows> static void dot(const Ints* w, const std::int8_t* q, std::int64_t stride, Ints* sums) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r, q += stride) {
            sums[r] = Columns::zero();
#pragma GCC unroll 8
            for (int v = 0; v < 8; ++v) {
                const __m256i a = _mm256_sign_epi8(four_inputs<Columns>(q, v), w[v]);
                const __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(w[v]), a);
                sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
            }
        }
    }
#endif
};

} // namespace

} // namespace redraft::REDRAFT_ISA
