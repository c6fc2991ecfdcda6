// Scalar quantised linear over the packed layout (pack.h). Defines the result.
#include <cmath>
#include <cstring>

#include "../formats.h"
#include "../fp16.h"
#include "../pack.h"
#include "scalar.h"

namespace redraft::scalar {

namespace {

// One block of 8 columns, ready for any number of rows.
struct Weights {
    std::int32_t w[kColumns][kBlock]; // zero point subtracted
    float scale[2][kColumns];         // of inputs 0-15 and 16-31
    float minimum[kColumns];
};

float header_value(const std::uint8_t* header, int slot, int column) {
    return half_to_float(header_half(header, slot, column));
}

template <QuantType type> void load_scales(const std::uint8_t* header, int sub, Weights& out) {
    for (int c = 0; c < kColumns; ++c) {
        const float d = header_value(header, 0, c);
        out.scale[0][c] = out.scale[1][c] = d;
        if constexpr (type == QuantType::Q4_1 || type == QuantType::Q5_1) {
            out.minimum[c] = -header_value(header, 1, c);
        } else if constexpr (type == QuantType::Q4_K || type == QuantType::Q5_K) {
            out.scale[0][c] = d * static_cast<float>(six_bits(header + 32, sub * kColumns + c));
            out.minimum[c] = header_value(header, 1, c) * static_cast<float>(six_bits(header + 80, sub * kColumns + c));
        } else if constexpr (type == QuantType::Q6_K) {
            for (int h = 0; h < 2; ++h) {
                const auto s = static_cast<std::int8_t>(header[16 + (sub * 2 + h) * kColumns + c]);
                out.scale[h][c] = d * static_cast<float>(s);
            }
        }
    }
}

template <QuantType type> void load_quants(const std::uint8_t* quants, Weights& out) {
    const int bits = quant_bits(type);
    const int zero = zero_point(type);
    for (int c = 0; c < kColumns; ++c) {
        for (int i = 0; i < kBlock; ++i) {
            const int group = i / 4;
            const int byte = c * 4 + i % 4;
            if (bits == 8) {
                out.w[c][i] = static_cast<std::int8_t>(quants[group * kVector + byte]);
                continue;
            }
            int value = (quants[(group % 4) * kVector + byte] >> (4 * (group / 4))) & 15;
            if (bits == 5) {
                value |= ((quants[4 * kVector + byte] >> group) & 1) << 4;
            } else if (bits == 6) {
                value |= ((quants[(4 + group / 4) * kVector + byte] >> (2 * (group % 4))) & 3) << 4;
            }
            out.w[c][i] = value - zero;
        }
    }
}

std::int32_t dot(const std::int32_t* w, const std::int8_t* q, int n) {
    std::int32_t sum = 0;
    for (int i = 0; i < n; ++i) {
        sum += w[i] * q[i];
    }
    return sum;
}

// Adds block `b` of row `row` to the 8 accumulators: the fp32 arithmetic of the contract.
template <QuantType type>
void add_block(const Weights& weights, const QuantRows& x, std::int64_t row, std::int64_t b, float* acc) {
    const std::int8_t* q = x.q + row * x.k + b * kBlock;
    const std::int64_t at = row * (x.k / kBlock) + b;
    const float sa = x.scale[at];
    for (int c = 0; c < kColumns; ++c) {
        const float sw = weights.scale[0][c];
        if constexpr (type == QuantType::Q6_K) {
            acc[c] = std::fma(sw * sa, static_cast<float>(dot(weights.w[c], q, 16)), acc[c]);
            acc[c] = std::fma(weights.scale[1][c] * sa, static_cast<float>(dot(weights.w[c] + 16, q + 16, 16)), acc[c]);
            continue;
        }
        const float product = static_cast<float>(dot(weights.w[c], q, kBlock));
        if constexpr (type == QuantType::Q4_1 || type == QuantType::Q5_1 || type == QuantType::Q4_K ||
                      type == QuantType::Q5_K) {
            const float t = std::fma(sw, product, -(weights.minimum[c] * x.sum[at]));
            acc[c] = std::fma(sa, t, acc[c]);
        } else {
            acc[c] = std::fma(sw * sa, product, acc[c]);
        }
    }
}

void finish(const LinearCall& call, std::int64_t group, std::int64_t row, const float* acc) {
    float* out = call.out + row * call.stride + group * kColumns;
    for (int c = 0; c < kColumns; ++c) {
        const float y = call.bias != nullptr ? acc[c] + call.bias[group * kColumns + c] : acc[c];
        out[c] = call.add ? out[c] + y : y;
    }
}

} // namespace

template <QuantType type> void linear(const LinearCall& call, const QuantRows& x) {
    const int per = blocks_per_header(type);
    for (std::int64_t group = call.group_begin; group < call.group_end; ++group) {
        float acc[kMaxRows][kColumns];
        for (std::int64_t base = call.row_begin; base < call.row_end; base += kMaxRows) {
            const std::int64_t rows = call.row_end - base < kMaxRows ? call.row_end - base : kMaxRows;
            std::memset(acc, 0, sizeof acc);
            const std::uint8_t* at = call.packed + group * call.group_bytes;
            for (std::int64_t b = 0; b < x.k / kBlock; b += per) {
                const std::uint8_t* quants = at + header_bytes(type);
                for (int sub = 0; sub < per; ++sub) {
                    Weights weights;
                    load_scales<type>(at, sub, weights);
                    load_quants<type>(quants + sub * quant_bytes(type), weights);
                    for (std::int64_t r = 0; r < rows; ++r) {
                        add_block<type>(weights, x, base + r, b + sub, acc[r]);
                    }
                }
                at = quants + per * quant_bytes(type);
            }
            for (std::int64_t r = 0; r < rows; ++r) {
                finish(call, group, base + r, acc[r]);
            }
        }
    }
}

template void linear<QuantType::Q4_0>(const LinearCall&, const QuantRows&);
template void linear<QuantType::Q4_1>(const LinearCall&, const QuantRows&);
template void linear<QuantType::Q5_0>(const LinearCall&, const QuantRows&);
template void linear<QuantType::Q5_1>(const LinearCall&, const QuantRows&);
template void linear<QuantType::Q8_0>(const LinearCall&, const QuantRows&);
template void linear<QuantType::Q4_K>(const LinearCall&, const QuantRows&);
template void linear<QuantType::Q5_K>(const LinearCall&, const QuantRows&);
template void linear<QuantType::Q6_K>(const LinearCall&, const QuantRows&);

} // namespace redraft::scalar
