// Vector quantised linear over the packed layout (pack.h); bit for bit that of scalar/linear.cpp.
//
// A vector holds 8 columns x 4 inputs, or with AVX-512 VNNI 16 x 4 of two groups, so four activations broadcast to all
// columns meet it in one instruction. Weights are unpacked once per tile of up to 8 rows (widths.h); here are the scales,
// the walk over one group of columns or two, the tiles.
#include "widths.h"

namespace redraft::REDRAFT_ISA {

namespace {

constexpr int kTile = 8; // rows that share one unpacking
#if defined(__AVX512VL__)
constexpr bool kManyRegisters = true; // 32: the weights, the accumulators and the products of 8 rows
#else
constexpr bool kManyRegisters = false;
#endif
constexpr int kWideFrom = 3; // rows for which two groups at once are faster than one by one
constexpr int kAhead = 4096; // bytes; the hardware's own prefetch stops at each page, and a row reads a page in 0.4 us

// --- the scales: what stands in front of a block (or of eight), and how a block's integers enter the accumulator ---

// One block of a row and of those after it, in QuantRows.
struct RowBlocks {
    const QuantRows& rows;
    std::int64_t first; // index of the block in the first row
    std::int64_t blocks; // of a row
    const std::int8_t* q() const { return rows.q + first * kBlock; }
    std::int64_t stride() const { return blocks * kBlock; } // of `q`, bytes
    std::int64_t at(int r) const { return first + r * blocks; }
    float scale(int r) const { return rows.scale[at(r)]; }
    float sum(int r) const { return rows.sum[at(r)]; }
    std::int32_t sum32(int r) const { return rows.sum32[at(r)]; }
    std::int32_t sum16(int r, int half) const { return rows.sum16[2 * at(r) + half]; }
};

template <class Columns, class Width, int zero_shift> struct Plain { // Q4_0, Q5_0, Q8_0
    static constexpr int kHeader = 16;
    static constexpr int kBlocks = 1;
    using Quants = Width;
    using F = typename Columns::Floats;
    typename F::Vector scale;
    void open(const std::uint8_t* header, std::int64_t gap) { scale = Columns::halves(header, gap); }
    void select(int) {}
    template <int rows> void add(const typename Columns::Ints* w, const RowBlocks& x, typename F::Vector* acc) const {
        typename Columns::Ints products[rows];
        Width::template dot<rows>(w, x.q(), x.stride(), products);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            if constexpr (zero_shift != 0) {
                const auto zero = Columns::template left32<zero_shift>(Columns::spread(x.sum32(r)));
                products[r] = Columns::sub(products[r], zero);
            }
            acc[r] = F::fma(F::mul(scale, F::spread(x.scale(r))), Columns::to_floats(products[r]), acc[r]);
        }
    }
};

template <class Columns, class Width> struct Offset { // Q4_1, Q5_1: value = d q + m
    static constexpr int kHeader = 32;
    static constexpr int kBlocks = 1;
    using Quants = Width;
    using F = typename Columns::Floats;
    typename F::Vector scale, offset;
    void open(const std::uint8_t* header, std::int64_t gap) {
        scale = Columns::halves(header, gap);
        offset = Columns::halves(header + 16, gap);
    }
    void select(int) {}
    template <int rows> void add(const typename Columns::Ints* w, const RowBlocks& x, typename F::Vector* acc) const {
        typename Columns::Ints products[rows];
        Width::template dot<rows>(w, x.q(), x.stride(), products);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            const auto base = F::mul(offset, F::spread(x.sum(r)));
            acc[r] = F::fma(F::spread(x.scale(r)), F::fma(scale, Columns::to_floats(products[r]), base), acc[r]);
        }
    }
};

// 64 six-bit numbers of pack.h's table -> bytes, [sub][column]
void expand_six_bits(const std::uint8_t* table, std::uint8_t* out) {
    const __m256i low = OneGroup::load(table, 0);
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

template <class Columns, class Width> struct SuperMinimum { // Q4_K, Q5_K
    static constexpr int kHeader = 128;
    static constexpr int kBlocks = 8;
    using Quants = Width;
    using F = typename Columns::Floats;
    typename F::Vector d, dmin, scale, minimum;
    alignas(32) std::uint8_t sub[Columns::kGroups][64];
    alignas(32) std::uint8_t sub_min[Columns::kGroups][64];
    void open(const std::uint8_t* header, std::int64_t gap) {
        d = Columns::halves(header, gap);
        dmin = Columns::halves(header + 16, gap);
        for (int g = 0; g < Columns::kGroups; ++g) {
            expand_six_bits(header + g * gap + 32, sub[g]);
            expand_six_bits(header + g * gap + 80, sub_min[g]);
        }
    }
    void select(int block) {
        scale = F::mul(d, Columns::unsigned_bytes(sub[0] + 8 * block, 64)); // exact: 11 + 6 bits
        minimum = F::mul(dmin, Columns::unsigned_bytes(sub_min[0] + 8 * block, 64));
    }
    template <int rows> void add(const typename Columns::Ints* w, const RowBlocks& x, typename F::Vector* acc) const {
        typename Columns::Ints products[rows];
        Width::template dot<rows>(w, x.q(), x.stride(), products);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            const auto base = F::mul(minimum, F::spread(x.sum(r)));
            acc[r] = F::fma(F::spread(x.scale(r)), F::fms(scale, Columns::to_floats(products[r]), base), acc[r]);
        }
    }
};

template <class Columns> struct SuperHalves { // Q6_K: a scale per 16 inputs, zero point 32
    static constexpr int kHeader = 144;
    static constexpr int kBlocks = 8;
    using Quants = Six<Columns>;
    using F = typename Columns::Floats;
    typename F::Vector d, scale[2];
    const std::uint8_t* sub;
    std::int64_t gap;
    void open(const std::uint8_t* header, std::int64_t between) {
        d = Columns::halves(header, between);
        sub = header + 16;
        gap = between;
    }
    void select(int block) {
        scale[0] = F::mul(d, Columns::signed_bytes(sub + 16 * block, gap));
        scale[1] = F::mul(d, Columns::signed_bytes(sub + 16 * block + 8, gap));
    }
    template <int rows> void add(const typename Columns::Ints* w, const RowBlocks& x, typename F::Vector* acc) const {
        add_half<0, rows>(w, x, acc);
        add_half<1, rows>(w, x, acc);
    }

private:
    template <int half, int rows>
    void add_half(const typename Columns::Ints* w, const RowBlocks& x, typename F::Vector* acc) const {
        typename Columns::Ints products[rows];
        Quants::template dot_half<half, rows>(w, x.q(), x.stride(), products);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            const auto zero = Columns::template left32<5>(Columns::spread(x.sum16(r, half)));
            const auto both = F::mul(scale[half], F::spread(x.scale(r)));
            acc[r] = F::fma(both, Columns::to_floats(Columns::sub(products[r], zero)), acc[r]);
        }
    }
};

// --- the walk ---

template <class F>
void finish(const LinearCall& call, std::int64_t group, std::int64_t row, typename F::Vector acc) {
    float* out = call.out + row * call.stride + group * kColumns;
    if (call.bias != nullptr) {
        acc = F::add(acc, F::load(call.bias + group * kColumns));
    }
    if (call.add) {
        acc = F::add(F::load(out), acc);
    }
    F::store(out, acc);
}

// One group of columns, or two, against `rows` rows from `row` on.
template <class Columns, class Scales, int rows>
void tile(const LinearCall& call, const QuantRows& x, std::int64_t group, std::int64_t row) {
    using F = typename Columns::Floats;
    using Quants = typename Scales::Quants;
    constexpr int together = kManyRegisters ? rows : 1;
    const std::int64_t blocks = x.k / kBlock;
    const std::int64_t gap = call.group_bytes;
    const std::uint8_t* at = call.packed + group * call.group_bytes;
    typename F::Vector acc[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        acc[r] = F::spread(0.0f);
    }
    Scales scales;
    for (std::int64_t b = 0; b < blocks;) {
        scales.open(at, gap);
        at += Scales::kHeader;
        for (int sub = 0; sub < Scales::kBlocks; ++sub, ++b, at += Quants::kBytes) {
            scales.select(sub);
#pragma GCC unroll 2
            for (int g = 0; g < Columns::kGroups; ++g) {
                for (int line = 0; line < Quants::kBytes; line += 64) {
                    _mm_prefetch(reinterpret_cast<const char*>(at) + g * gap + kAhead + line, _MM_HINT_T0);
                }
            }
            typename Columns::Ints w[8];
            Quants::unpack(at, gap, w);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r += together) {
                scales.template add<together>(w, RowBlocks{x, (row + r) * blocks + b, blocks}, acc + r);
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        finish<F>(call, group, row + r, acc[r]);
    }
}

using Tile = void (*)(const LinearCall&, const QuantRows&, std::int64_t, std::int64_t);

template <class Columns, class Scales>
constexpr Tile kTiles[kTile + 1] = {nullptr,
                                    tile<Columns, Scales, 1>,
                                    tile<Columns, Scales, 2>,
                                    tile<Columns, Scales, 3>,
                                    tile<Columns, Scales, 4>,
                                    tile<Columns, Scales, 5>,
                                    tile<Columns, Scales, 6>,
                                    tile<Columns, Scales, 7>,
                                    tile<Columns, Scales, 8>};

template <template <class> class Scales> void linear(const LinearCall& call, const QuantRows& x) {
    for (std::int64_t row = call.row_begin; row < call.row_end;) {
        // The rest is shared out evenly over the fewest tiles: 9 rows are 5 + 4, not 8 + 1.
        const std::int64_t rest = call.row_end - row;
        const std::int64_t tiles = (rest + kTile - 1) / kTile;
        const std::int64_t rows = (rest + tiles - 1) / tiles;
        std::int64_t group = call.group_begin;
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
        for (; rows >= kWideFrom && group + 2 <= call.group_end; group += 2) {
            kTiles<TwoGroups, Scales<TwoGroups>>[rows](call, x, group, row);
        }
#endif
        for (; group < call.group_end; ++group) {
            kTiles<OneGroup, Scales<OneGroup>>[rows](call, x, group, row);
        }
        row += rows;
    }
}

template <class C> using Q4_0 = Plain<C, Four<C>, 3>;
template <class C> using Q4_1 = Offset<C, Four<C>>;
template <class C> using Q5_0 = Plain<C, Five<C>, 4>;
template <class C> using Q5_1 = Offset<C, Five<C>>;
template <class C> using Q8_0 = Plain<C, Eight<C>, Eight<C>::kZeroShift>;
template <class C> using Q4_K = SuperMinimum<C, Four<C>>;
template <class C> using Q5_K = SuperMinimum<C, Five<C>>;
template <class C> using Q6_K = SuperHalves<C>;

} // namespace

void linear_q4_0(const LinearCall& call, const QuantRows& x) { linear<Q4_0>(call, x); }
void linear_q4_1(const LinearCall& call, const QuantRows& x) { linear<Q4_1>(call, x); }
void linear_q5_0(const LinearCall& call, const QuantRows& x) { linear<Q5_0>(call, x); }
void linear_q5_1(const LinearCall& call, const QuantRows& x) { linear<Q5_1>(call, x); }
void linear_q8_0(const LinearCall& call, const QuantRows& x) { linear<Q8_0>(call, x); }
void linear_q4_k(const LinearCall& call, const QuantRows& x) { linear<Q4_K>(call, x); }
void linear_q5_k(const LinearCall& call, const QuantRows& x) { linear<Q5_K>(call, x); }
void linear_q6_k(const LinearCall& call, const QuantRows& x) { linear<Q6_K>(call, x); }

} // namespace redraft::REDRAFT_ISA
