// AVX2 quantised linear over the packed layout (pack.h); bit for bit that of scalar/linear.cpp.
//
// A vector holds 8 columns x 4 inputs, so four activations broadcast to all columns meet it in one maddubs. Weights are
// unpacked once per tile of up to 8 rows. 16-bit sums run as far as they cannot overflow: 8 products of unsigned 4-bit
// weights (30480), 4 of 5-bit (31496), 2 of 6-bit (32004); 8-bit weights take the sign trick (32512), one each.
#include "avx2.h"
#include "lanes.h"

namespace redraft::avx2 {

namespace {

constexpr int kTile = 8;     // rows that share one unpacking
constexpr int kAhead = 4096; // bytes; the hardware's own prefetch stops at each page, and a row reads a page in 0.4 us

__m256i load32(const std::uint8_t* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }

__m256i four_inputs(const std::int8_t* q, int group) {
    std::int32_t four;
    __builtin_memcpy(&four, q + 4 * group, 4);
    return _mm256_set1_epi32(four);
}

__m256i widen16(__m256i sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }

__m256 eight_halves(const std::uint8_t* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

__m256 eight_unsigned(const std::uint8_t* at) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
}

__m256 eight_signed(const std::uint8_t* at) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
}

void unpack_nibbles(const std::uint8_t* quants, __m256i* w) {
    const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
        const __m256i packed = load32(quants + 32 * v);
        w[v] = _mm256_and_si256(packed, mask);
        w[v + 4] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), mask);
    }
}

// --- the four widths: unpack a block of 32 inputs x 8 columns, and its integer dot product with one row ---

struct Four {
    static constexpr int kBytes = 128;
    static void unpack(const std::uint8_t* quants, __m256i* w) { unpack_nibbles(quants, w); }
    static __m256i dot(const __m256i* w, const std::int8_t* q) {
        __m256i sums = _mm256_maddubs_epi16(w[0], four_inputs(q, 0));
#pragma GCC unroll 8
        for (int v = 1; v < 8; ++v) {
            sums = _mm256_add_epi16(sums, _mm256_maddubs_epi16(w[v], four_inputs(q, v)));
        }
        return widen16(sums);
    }
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
    static __m256i dot(const __m256i* w, const std::int8_t* q) {
        __m256i low = _mm256_maddubs_epi16(w[0], four_inputs(q, 0));
        __m256i high = _mm256_maddubs_epi16(w[4], four_inputs(q, 4));
#pragma GCC unroll 4
        for (int v = 1; v < 4; ++v) {
            low = _mm256_add_epi16(low, _mm256_maddubs_epi16(w[v], four_inputs(q, v)));
            high = _mm256_add_epi16(high, _mm256_maddubs_epi16(w[v + 4], four_inputs(q, v + 4)));
        }
        return _mm256_add_epi32(widen16(low), widen16(high));
    }
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
    // of 16 inputs: vectors 4h .. 4h+3
    static __m256i dot_half(const __m256i* w, const std::int8_t* q, int h) {
        const __m256i low = _mm256_add_epi16(_mm256_maddubs_epi16(w[4 * h], four_inputs(q, 4 * h)),
                                             _mm256_maddubs_epi16(w[4 * h + 1], four_inputs(q, 4 * h + 1)));
        const __m256i high = _mm256_add_epi16(_mm256_maddubs_epi16(w[4 * h + 2], four_inputs(q, 4 * h + 2)),
                                              _mm256_maddubs_epi16(w[4 * h + 3], four_inputs(q, 4 * h + 3)));
        return _mm256_add_epi32(widen16(low), widen16(high));
    }
};

struct Eight {
    static constexpr int kBytes = 256;
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
            sum = _mm256_add_epi32(sum, widen16(_mm256_maddubs_epi16(_mm256_abs_epi8(w[v]), a)));
        }
        return sum;
    }
};

// --- the scales: what stands in front of a block (or of eight), and how a block's integers enter the accumulator ---

// Where one row's block lies in QuantRows.
struct RowBlock {
    const std::int8_t* q;
    const float* scale;
    const float* sum;
    const std::int32_t* sum32;
    const std::int32_t* sum16;
};

template <class Width, int zero_shift> struct Plain { // Q4_0, Q5_0, Q8_0
    static constexpr int kHeader = 16;
    static constexpr int kBlocks = 1;
    using Quants = Width;
    __m256 scale;
    void open(const std::uint8_t* header) { scale = eight_halves(header); }
    void select(int) {}
    __m256 add(const __m256i* w, const RowBlock& x, __m256 acc) const {
        __m256i product = Width::dot(w, x.q);
        if constexpr (zero_shift != 0) {
            product = _mm256_sub_epi32(product, _mm256_slli_epi32(_mm256_set1_epi32(*x.sum32), zero_shift));
        }
        const __m256 both = _mm256_mul_ps(scale, _mm256_broadcast_ss(x.scale));
        return _mm256_fmadd_ps(both, _mm256_cvtepi32_ps(product), acc);
    }
};

template <class Width> struct Offset { // Q4_1, Q5_1: value = d q + m
    static constexpr int kHeader = 32;
    static constexpr int kBlocks = 1;
    using Quants = Width;
    __m256 scale, offset;
    void open(const std::uint8_t* header) {
        scale = eight_halves(header);
        offset = eight_halves(header + 16);
    }
    void select(int) {}
    __m256 add(const __m256i* w, const RowBlock& x, __m256 acc) const {
        const __m256 base = _mm256_mul_ps(offset, _mm256_broadcast_ss(x.sum));
        const __m256 t = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(Width::dot(w, x.q)), base);
        return _mm256_fmadd_ps(_mm256_broadcast_ss(x.scale), t, acc);
    }
};

// 64 six-bit numbers of pack.h's table -> bytes, [sub][column]
void expand_six_bits(const std::uint8_t* table, std::uint8_t* out) {
    const __m256i low = load32(table);
    const __m256i pairs = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 32)));
    const __m256i mask = _mm256_set1_epi8(15);
    const __m256i high_mask = _mm256_set1_epi8(48);
    // entries 0-31 take bit pairs 0 (first 16) and 1; entries 32-63 pairs 2 and 3
    const __m256i first = _mm256_blend_epi32(_mm256_slli_epi16(pairs, 4), _mm256_slli_epi16(pairs, 2), 0xf0);
    const __m256i second = _mm256_blend_epi32(pairs, _mm256_srli_epi16(pairs, 2), 0xf0);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out),
                       _mm256_or_si256(_mm256_and_si256(low, mask), _mm256_and_si256(first, high_mask)));
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + 32),
                       _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(low, 4), mask),
                                       _mm256_and_si256(second, high_mask)));
}

template <class Width> struct SuperMinimum { // Q4_K, Q5_K
    static constexpr int kHeader = 128;
    static constexpr int kBlocks = 8;
    using Quants = Width;
    __m256 d, dmin, scale, minimum;
    alignas(32) std::uint8_t sub[64];
    alignas(32) std::uint8_t sub_min[64];
    void open(const std::uint8_t* header) {
        d = eight_halves(header);
        dmin = eight_halves(header + 16);
        expand_six_bits(header + 32, sub);
        expand_six_bits(header + 80, sub_min);
    }
    void select(int block) {
        scale = _mm256_mul_ps(d, eight_unsigned(sub + 8 * block)); // exact: 11 + 6 bits
        minimum = _mm256_mul_ps(dmin, eight_unsigned(sub_min + 8 * block));
    }
    __m256 add(const __m256i* w, const RowBlock& x, __m256 acc) const {
        const __m256 base = _mm256_mul_ps(minimum, _mm256_broadcast_ss(x.sum));
        const __m256 t = _mm256_fmsub_ps(scale, _mm256_cvtepi32_ps(Width::dot(w, x.q)), base);
        return _mm256_fmadd_ps(_mm256_broadcast_ss(x.scale), t, acc);
    }
};

struct SuperHalves { // Q6_K: a scale per 16 inputs, zero point 32
    static constexpr int kHeader = 144;
    static constexpr int kBlocks = 8;
    using Quants = Six;
    __m256 d, scale[2];
    const std::uint8_t* sub;
    void open(const std::uint8_t* header) {
        d = eight_halves(header);
        sub = header + 16;
    }
    void select(int block) {
        scale[0] = _mm256_mul_ps(d, eight_signed(sub + 16 * block));
        scale[1] = _mm256_mul_ps(d, eight_signed(sub + 16 * block + 8));
    }
    __m256 add(const __m256i* w, const RowBlock& x, __m256 acc) const {
        const __m256 sa = _mm256_broadcast_ss(x.scale);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
            const __m256i zero = _mm256_slli_epi32(_mm256_set1_epi32(x.sum16[h]), 5);
            const __m256i product = _mm256_sub_epi32(Six::dot_half(w, x.q, h), zero);
            acc = _mm256_fmadd_ps(_mm256_mul_ps(scale[h], sa), _mm256_cvtepi32_ps(product), acc);
        }
        return acc;
    }
};

// --- the walk ---

void finish(const LinearCall& call, std::int64_t group, std::int64_t row, __m256 acc) {
    float* out = call.out + row * call.stride + group * kColumns;
    if (call.bias != nullptr) {
        acc = _mm256_add_ps(acc, _mm256_loadu_ps(call.bias + group * kColumns));
    }
    if (call.add) {
        acc = _mm256_add_ps(_mm256_loadu_ps(out), acc);
    }
    _mm256_storeu_ps(out, acc);
}

// One group of columns against `rows` rows from `row` on.
template <class Scales, int rows>
void tile(const LinearCall& call, const QuantRows& x, std::int64_t group, std::int64_t row) {
    using Quants = typename Scales::Quants;
    const std::int64_t blocks = x.k / kBlock;
    const std::uint8_t* at = call.packed + group * call.group_bytes;
    __m256 acc[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        acc[r] = _mm256_setzero_ps();
    }
    Scales scales;
    for (std::int64_t b = 0; b < blocks;) {
        scales.open(at);
        at += Scales::kHeader;
        for (int sub = 0; sub < Scales::kBlocks; ++sub, ++b, at += Quants::kBytes) {
            scales.select(sub);
            for (int line = 0; line < Quants::kBytes; line += 64) {
                _mm_prefetch(reinterpret_cast<const char*>(at) + kAhead + line, _MM_HINT_T0);
            }
            __m256i w[8];
            Quants::unpack(at, w);
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r) {
                const std::int64_t block = (row + r) * blocks + b;
                const RowBlock one = {x.q + block * kBlock, x.scale + block, x.sum + block, x.sum32 + block,
                                      x.sum16 + 2 * block};
                acc[r] = scales.add(w, one, acc[r]);
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        finish(call, group, row + r, acc[r]);
    }
}

template <class Scales> void linear(const LinearCall& call, const QuantRows& x) {
    using Tile = void (*)(const LinearCall&, const QuantRows&, std::int64_t, std::int64_t);
    static constexpr Tile kTiles[kTile + 1] = {nullptr,         tile<Scales, 1>, tile<Scales, 2>,
                                               tile<Scales, 3>, tile<Scales, 4>, tile<Scales, 5>,
                                               tile<Scales, 6>, tile<Scales, 7>, tile<Scales, 8>};
    for (std::int64_t row = call.row_begin; row < call.row_end;) {
        // The rest is shared out evenly over the fewest tiles: 9 rows are 5 + 4, not 8 + 1.
        const std::int64_t rest = call.row_end - row;
        const std::int64_t tiles = (rest + kTile - 1) / kTile;
        const std::int64_t rows = (rest + tiles - 1) / tiles;
        for (std::int64_t group = call.group_begin; group < call.group_end; ++group) {
            kTiles[rows](call, x, group, row);
        }
        row += rows;
    }
}

} // namespace

void linear_q4_0(const LinearCall& call, const QuantRows& x) { linear<Plain<Four, 3>>(call, x); }
void linear_q4_1(const LinearCall& call, const QuantRows& x) { linear<Offset<Four>>(call, x); }
void linear_q5_0(const LinearCall& call, const QuantRows& x) { linear<Plain<Five, 4>>(call, x); }
void linear_q5_1(const LinearCall& call, const QuantRows& x) { linear<Offset<Five>>(call, x); }
void linear_q8_0(const LinearCall& call, const QuantRows& x) { linear<Plain<Eight, 0>>(call, x); }
void linear_q4_k(const LinearCall& call, const QuantRows& x) { linear<SuperMinimum<Four>>(call, x); }
void linear_q5_k(const LinearCall& call, const QuantRows& x) { linear<SuperMinimum<Five>>(call, x); }
void linear_q6_k(const LinearCall& call, const QuantRows& x) { linear<SuperHalves>(call, x); }

} // namespace redraft::avx2
