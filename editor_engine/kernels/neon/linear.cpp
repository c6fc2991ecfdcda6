// NEON quantised linear over the packed layout (pack.h); bit for bit that of scalar/linear.cpp.
//
// Weights become signed bytes (zero point taken off), once per tile of up to 4 rows. Their products are summed in 16
// bits as far as they cannot overflow. Invariant: the integers are exact. With |q| <= 127, a lane holds 8 products of
// weights up to 31 (31496), 4 of magnitude 32 (16256), 2 of magnitude 128 (32512).
#include "lanes.h"

#include "../vector.h"

namespace redraft::neon {

namespace {

constexpr int kTile = 4; // rows that share one unpacking

Eight from_int16(int16x8_t v) {
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), vcvtq_f32_s32(vmovl_high_s16(v))};
}

Eight eight_unsigned(const std::uint8_t* at) { return from_int16(vreinterpretq_s16_u16(vmovl_u8(vld1_u8(at)))); }

Eight eight_signed(const std::uint8_t* at) { return from_int16(vmovl_s8(vreinterpret_s8_u8(vld1_u8(at)))); }

Eight eight_halves(const std::uint8_t* at) { return halves8(reinterpret_cast<const std::uint16_t*>(at)); }

// --- the quants: a packed block of 32 inputs x 8 columns -> inputs 4v .. 4v+3 in w[2v] (columns 0-3) and w[2v+1] ---

// Sums over the vectors [begin, end) of the four products of each column; `fit` products of a lane fit 16 bits.
template <int begin, int end, int fit> Eight dot(const int8x16_t* w, const std::int8_t* q) {
    int32x4_t total[4]; // two columns each, two partial sums per column
#pragma GCC unroll 8
    for (int first = begin; first < end; first += fit) {
        int16x8_t sums[4];
#pragma GCC unroll 8
        for (int v = first; v < first + fit; ++v) {
            std::int32_t four;
            __builtin_memcpy(&four, q + 4 * v, 4);
            const int8x16_t a = vreinterpretq_s8_s32(vdupq_n_s32(four));
#pragma GCC unroll 2
            for (int h = 0; h < 2; ++h) {
                const int8x16_t columns = w[2 * v + h];
                if (v == first) {
                    sums[2 * h] = vmull_s8(vget_low_s8(columns), vget_low_s8(a));
                    sums[2 * h + 1] = vmull_high_s8(columns, a);
                } else {
                    sums[2 * h] = vmlal_s8(sums[2 * h], vget_low_s8(columns), vget_low_s8(a));
                    sums[2 * h + 1] = vmlal_high_s8(sums[2 * h + 1], columns, a);
                }
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            total[i] = first == begin ? vpaddlq_s16(sums[i]) : vpadalq_s16(total[i], sums[i]);
        }
    }
    return {vcvtq_f32_s32(vpaddq_s32(total[0], total[1])), vcvtq_f32_s32(vpaddq_s32(total[2], total[3]))};
}

void unpack_nibbles(const std::uint8_t* quants, uint8x16_t* w) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
        const uint8x16_t packed = vld1q_u8(quants + 16 * i);
        w[i] = vandq_u8(packed, vdupq_n_u8(15));
        w[i + 8] = vshrq_n_u8(packed, 4);
    }
}

void take_off(const uint8x16_t* raw, int zero, int8x16_t* w) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        w[i] = vsubq_s8(vreinterpretq_s8_u8(raw[i]), vdupq_n_s8(static_cast<std::int8_t>(zero)));
    }
}

template <int zero> struct FourBits {
    static constexpr int kBytes = 128;
    static void unpack(const std::uint8_t* quants, int8x16_t* w) {
        uint8x16_t raw[16];
        unpack_nibbles(quants, raw);
        take_off(raw, zero, w);
    }
    static Eight product(const int8x16_t* w, const std::int8_t* q) { return dot<0, 8, 8>(w, q); }
};

template <int zero> struct FiveBits {
    static constexpr int kBytes = 160;
    static void unpack(const std::uint8_t* quants, int8x16_t* w) {
        uint8x16_t raw[16];
        unpack_nibbles(quants, raw);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
            const uint8x16_t high = vld1q_u8(quants + 128 + 16 * h);
#pragma GCC unroll 8
            for (int v = 0; v < 8; ++v) {
                const int8x16_t shift = vdupq_n_s8(static_cast<std::int8_t>(4 - v)); // negative: to the right
                raw[2 * v + h] = vorrq_u8(raw[2 * v + h], vandq_u8(vshlq_u8(high, shift), vdupq_n_u8(16)));
            }
        }
        take_off(raw, zero, w);
    }
    static Eight product(const int8x16_t* w, const std::int8_t* q) { return dot<0, 8, 8>(w, q); }
};

struct SixBits { // zero point 32
    static constexpr int kBytes = 192;
    static void unpack(const std::uint8_t* quants, int8x16_t* w) {
        uint8x16_t raw[16];
        unpack_nibbles(quants, raw);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) { // vector i / 2 of the high bits, columns by i % 2
            const uint8x16_t high = vld1q_u8(quants + 128 + 16 * i);
            uint8x16_t* out = raw + 8 * (i / 2) + i % 2;
            const uint8x16_t mask = vdupq_n_u8(48);
            out[0] = vorrq_u8(out[0], vandq_u8(vshlq_n_u8(high, 4), mask));
            out[2] = vorrq_u8(out[2], vandq_u8(vshlq_n_u8(high, 2), mask));
            out[4] = vorrq_u8(out[4], vandq_u8(high, mask));
            out[6] = vorrq_u8(out[6], vandq_u8(vshrq_n_u8(high, 2), mask));
        }
        take_off(raw, 32, w);
    }
};

struct EightBits {
    static constexpr int kBytes = 256;
    static void unpack(const std::uint8_t* quants, int8x16_t* w) {
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
            w[i] = vreinterpretq_s8_u8(vld1q_u8(quants + 16 * i));
        }
    }
    static Eight product(const int8x16_t* w, const std::int8_t* q) { return dot<0, 8, 2>(w, q); }
};

// --- the scales: what stands in front of a block (or of eight), and how a block's integers enter the accumulator ---

template <class Bits> struct Plain { // Q4_0, Q5_0, Q8_0
    static constexpr int kHeader = 16;
    static constexpr int kBlocks = 1;
    using Quants = Bits;
    Eight scale;
    void open(const std::uint8_t* header) { scale = eight_halves(header); }
    void select(int) {}
    Eight add(const int8x16_t* w, const std::int8_t* q, float sa, float, Eight acc) const {
        return fma8(mul8(scale, spread8(sa)), Bits::product(w, q), acc);
    }
};

template <class Bits> struct Offset { // Q4_1, Q5_1: value = d q + m
    static constexpr int kHeader = 32;
    static constexpr int kBlocks = 1;
    using Quants = Bits;
    Eight scale, offset;
    void open(const std::uint8_t* header) {
        scale = eight_halves(header);
        offset = eight_halves(header + 16);
    }
    void select(int) {}
    Eight add(const int8x16_t* w, const std::int8_t* q, float sa, float sum, Eight acc) const {
        return fma8(spread8(sa), fma8(scale, Bits::product(w, q), mul8(offset, spread8(sum))), acc);
    }
};

// 64 six-bit numbers of pack.h's table -> bytes, [sub][column]
void expand_six_bits(const std::uint8_t* table, std::uint8_t* out) {
    const uint8x16_t first = vld1q_u8(table);
    const uint8x16_t second = vld1q_u8(table + 16);
    const uint8x16_t pairs = vld1q_u8(table + 32);
    const uint8x16_t low = vdupq_n_u8(15);
    const uint8x16_t high = vdupq_n_u8(48);
    vst1q_u8(out, vorrq_u8(vandq_u8(first, low), vandq_u8(vshlq_n_u8(pairs, 4), high)));
    vst1q_u8(out + 16, vorrq_u8(vandq_u8(second, low), vandq_u8(vshlq_n_u8(pairs, 2), high)));
    vst1q_u8(out + 32, vorrq_u8(vshrq_n_u8(first, 4), vandq_u8(pairs, high)));
    vst1q_u8(out + 48, vorrq_u8(vshrq_n_u8(second, 4), vandq_u8(vshrq_n_u8(pairs, 2), high)));
}

template <class Bits> struct SuperMinimum { // Q4_K, Q5_K
    static constexpr int kHeader = 128;
    static constexpr int kBlocks = 8;
    using Quants = Bits;
    Eight d, dmin, scale, minimum;
    std::uint8_t sub[64];
    std::uint8_t sub_min[64];
    void open(const std::uint8_t* header) {
        d = eight_halves(header);
        dmin = eight_halves(header + 16);
        expand_six_bits(header + 32, sub);
        expand_six_bits(header + 80, sub_min);
    }
    void select(int block) {
        scale = mul8(d, eight_unsigned(sub + 8 * block)); // exact: 11 + 6 bits
        minimum = mul8(dmin, eight_unsigned(sub_min + 8 * block));
    }
    Eight add(const int8x16_t* w, const std::int8_t* q, float sa, float sum, Eight acc) const {
        const Eight base = negate8(mul8(minimum, spread8(sum)));
        return fma8(spread8(sa), fma8(scale, Bits::product(w, q), base), acc);
    }
};

struct SuperHalves { // Q6_K: a scale per 16 inputs
    static constexpr int kHeader = 144;
    static constexpr int kBlocks = 8;
    using Quants = SixBits;
    Eight d, scale[2];
    const std::uint8_t* sub;
    void open(const std::uint8_t* header) {
        d = eight_halves(header);
        sub = header + 16;
    }
    void select(int block) {
        scale[0] = mul8(d, eight_signed(sub + 16 * block));
        scale[1] = mul8(d, eight_signed(sub + 16 * block + 8));
    }
    Eight add(const int8x16_t* w, const std::int8_t* q, float sa, float, Eight acc) const {
        acc = fma8(mul8(scale[0], spread8(sa)), dot<0, 4, 4>(w, q), acc);
        return fma8(mul8(scale[1], spread8(sa)), dot<4, 8, 4>(w, q), acc);
    }
};

// --- the walk ---

void finish(const LinearCall& call, std::int64_t group, std::int64_t row, Eight acc) {
    float* out = call.out + row * call.stride + group * kColumns;
    if (call.bias != nullptr) {
        acc = add8(acc, load8(call.bias + group * kColumns));
    }
    if (call.add) {
        acc = add8(load8(out), acc);
    }
    store8(out, acc);
}

// One group of columns against `rows` rows from `row` on.
template <class Scales, int rows>
void tile(const LinearCall& call, const QuantRows& x, std::int64_t group, std::int64_t row) {
    using Quants = typename Scales::Quants;
    const std::int64_t blocks = x.k / kBlock;
    const std::uint8_t* at = call.packed + group * call.group_bytes;
    Eight acc[rows];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
        acc[r] = spread8(0.0f);
    }
    Scales scales;
    for (std::int64_t b = 0; b < blocks;) {
        scales.open(at);
        at += Scales::kHeader;
        for (int sub = 0; sub < Scales::kBlocks; ++sub, ++b, at += Quants::kBytes) {
            scales.select(sub);
            int8x16_t w[16];
            Quants::unpack(at, w);
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r) {
                const std::int64_t block = (row + r) * blocks + b;
                acc[r] = scales.add(w, x.q + block * kBlock, x.scale[block], x.sum[block], acc[r]);
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
        finish(call, group, row + r, acc[r]);
    }
}

template <class Scales> void linear(const LinearCall& call, const QuantRows& x) {
    using Tile = void (*)(const LinearCall&, const QuantRows&, std::int64_t, std::int64_t);
    static constexpr Tile kTiles[kTile + 1] = {nullptr, tile<Scales, 1>, tile<Scales, 2>, tile<Scales, 3>,
                                               tile<Scales, 4>};
    for (std::int64_t row = call.row_begin; row < call.row_end;) {
        const std::int64_t rest = call.row_end - row;
        const std::int64_t rows = rest < kTile ? rest : kTile;
        for (std::int64_t group = call.group_begin; group < call.group_end; ++group) {
            kTiles[rows](call, x, group, row);
        }
        row += rows;
    }
}

} // namespace

void linear_q4_0(const LinearCall& call, const QuantRows& x) { linear<Plain<FourBits<8>>>(call, x); }
void linear_q4_1(const LinearCall& call, const QuantRows& x) { linear<Offset<FourBits<0>>>(call, x); }
void linear_q5_0(const LinearCall& call, const QuantRows& x) { linear<Plain<FiveBits<16>>>(call, x); }
void linear_q5_1(const LinearCall& call, const QuantRows& x) { linear<Offset<FiveBits<0>>>(call, x); }
void linear_q8_0(const LinearCall& call, const QuantRows& x) { linear<Plain<EightBits>>(call, x); }
void linear_q4_k(const LinearCall& call, const QuantRows& x) { linear<SuperMinimum<FourBits<0>>>(call, x); }
void linear_q5_k(const LinearCall& call, const QuantRows& x) { linear<SuperMinimum<FiveBits<0>>>(call, x); }
void linear_q6_k(const LinearCall& call, const QuantRows& x) { linear<SuperHalves>(call, x); }

} // namespace redraft::neon
