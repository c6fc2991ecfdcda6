// Vector quantised linear over the packed layout (pack.h); bit for bit that of scalar/linear.cpp.
//
// A vector holds 8 columns x 4 inputs, so four activations broadcast to all columns meet it in one instruction. Weights
// are unpacked once per tile of up to 8 rows (widths.h); here are the scales, the walk over a group of columns, the tiles.
#include "x86.h"
#include "lanes.h"
#include "widths.h"

namespace redraft::REDRAFT_ISA {

namespace {

constexpr int kTile = 8;     // rows that share one unpacking
constexpr int kAhead = 4096; // bytes; the hardware's own prefetch stops at each page, and a row reads a page in 0.4 us

__m256 eight_halves(const std::uint8_t* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

__m256 eight_unsigned(const std::uint8_t* at) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
}

__m256 eight_signed(const std::uint8_t* at) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
}

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
            const __m256i product = _mm256_sub_epi32(h == 0 ? Six::dot_half<0>(w, x.q) : Six::dot_half<1>(w, x.q), zero);
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
void linear_q8_0(const LinearCall& call, const QuantRows& x) { linear<Plain<Eight, Eight::kZeroShift>>(call, x); }
void linear_q4_k(const LinearCall& call, const QuantRows& x) { linear<SuperMinimum<Four>>(call, x); }
void linear_q5_k(const LinearCall& call, const QuantRows& x) { linear<SuperMinimum<Five>>(call, x); }
void linear_q6_k(const LinearCall& call, const QuantRows& x) { linear<SuperHalves>(call, x); }

} // namespace redraft::REDRAFT_ISA
