// See formats.h. The layouts are those of the GGUF specification; the pictures give one block.
#include "formats.h"

#include <cstring>

#include "fp16.h"

namespace redraft {

namespace {

constexpr TypeFacts kFacts[kTypes] = {
    {"Q4_0", 32, 18}, {"Q4_1", 32, 20},   {"Q5_0", 32, 22},   {"Q5_1", 32, 24},   {"Q8_0", 32, 34},
    {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210}, {"F16", 1, 2}, {"F32", 1, 4},
};

std::uint16_t load_half(const std::uint8_t* at) {
    std::uint16_t value;
    std::memcpy(&value, at, 2);
    return value;
}

bool finite_half(std::uint16_t half) { return (half & 0x7c00u) != 0x7c00u; }

// qs[16]: low nibbles are inputs 0-15, high nibbles 16-31; qh: one high bit per input
void read_nibbles(const std::uint8_t* qs, std::uint32_t qh, Block& block) {
    for (int i = 0; i < 16; ++i) {
        block.q[i] = static_cast<std::uint8_t>((qs[i] & 15) | (((qh >> i) & 1u) << 4));
        block.q[i + 16] = static_cast<std::uint8_t>((qs[i] >> 4) | (((qh >> (i + 16)) & 1u) << 4));
    }
}

// scales[12]: eight 6-bit scales and eight 6-bit minima, the upper four of each split over two bytes
void read_six_bit_scales(const std::uint8_t* scales, int sub, Block& block) {
    if (sub < 4) {
        block.sub[0] = scales[sub] & 63;
        block.sub_min = scales[sub + 4] & 63;
    } else {
        block.sub[0] = static_cast<std::uint8_t>((scales[sub + 4] & 15) | ((scales[sub - 4] >> 6) << 4));
        block.sub_min = static_cast<std::uint8_t>((scales[sub + 4] >> 4) | ((scales[sub] >> 6) << 4));
    }
    block.sub[1] = block.sub[0];
}

// | d dmin | scales 12 | (Q5_K: qh 32) | qs 128: 32 bytes hold sub-blocks 2j (low nibbles) and 2j+1 (high) |
Block read_k45(QuantType type, const std::uint8_t* super, int sub) {
    Block block{};
    block.d = load_half(super);
    block.m = load_half(super + 2);
    read_six_bit_scales(super + 4, sub, block);
    const bool five = type == QuantType::Q5_K;
    const std::uint8_t* qs = super + (five ? 48 : 16) + (sub / 2) * 32;
    for (int i = 0; i < kBlock; ++i) {
        const int nibble = (sub % 2 == 0) ? (qs[i] & 15) : (qs[i] >> 4);
        const int high = five ? ((super[16 + i] >> sub) & 1) : 0;
        block.q[i] = static_cast<std::uint8_t>(nibble | (high << 4));
    }
    return block;
}

// | ql 128 | qh 64 | scales s8 x 16 | d |; half h of 128 inputs has 64 bytes of ql and 32 of qh
Block read_k6(const std::uint8_t* super, int sub) {
    Block block{};
    const int half = sub / 4;
    const int quarter = sub % 4;
    const std::uint8_t* ql = super + half * 64 + (quarter % 2) * 32;
    const std::uint8_t* qh = super + 128 + half * 32;
    for (int i = 0; i < kBlock; ++i) {
        const int low = quarter < 2 ? (ql[i] & 15) : (ql[i] >> 4);
        block.q[i] = static_cast<std::uint8_t>(low | (((qh[i] >> (2 * quarter)) & 3) << 4));
    }
    block.sub[0] = super[192 + sub * 2];
    block.sub[1] = super[192 + sub * 2 + 1];
    block.d = load_half(super + 208);
    return block;
}

} // namespace

const TypeFacts& facts(QuantType type) { return kFacts[static_cast<int>(type)]; }

bool has_sub_scales(QuantType type) { return facts(type).inputs == 256; }

bool has_minimum(QuantType type) {
    return type == QuantType::Q4_1 || type == QuantType::Q5_1 || type == QuantType::Q4_K || type == QuantType::Q5_K;
}

int zero_point(QuantType type) {
    switch (type) {
    case QuantType::Q4_0:
        return 8;
    case QuantType::Q5_0:
        return 16;
    case QuantType::Q6_K:
        return 32;
    default:
        return 0;
    }
}

int quant_bits(QuantType type) {
    switch (type) {
    case QuantType::Q5_0:
    case QuantType::Q5_1:
    case QuantType::Q5_K:
        return 5;
    case QuantType::Q6_K:
        return 6;
    case QuantType::Q8_0:
        return 8;
    default:
        return 4;
    }
}

Block read_block(QuantType type, const std::uint8_t* row, std::int64_t index) {
    if (has_sub_scales(type)) {
        const std::uint8_t* super = row + (index / 8) * facts(type).bytes;
        const int sub = static_cast<int>(index % 8);
        return type == QuantType::Q6_K ? read_k6(super, sub) : read_k45(type, super, sub);
    }
    const std::uint8_t* at = row + index * facts(type).bytes;
    Block block{};
    block.d = load_half(at);
    at += 2;
    if (has_minimum(type)) {
        block.m = load_half(at);
        at += 2;
    }
    if (type == QuantType::Q8_0) {
        std::memcpy(block.q, at, kBlock);
        return block;
    }
    std::uint32_t high = 0;
    if (quant_bits(type) == 5) {
        std::memcpy(&high, at, 4);
        at += 4;
    }
    read_nibbles(at, high, block);
    return block;
}

float block_value(QuantType type, const Block& block, int input) {
    const float d = half_to_float(block.d);
    const int q = block.q[input];
    switch (type) {
    case QuantType::Q4_0:
    case QuantType::Q5_0:
        return d * static_cast<float>(q - zero_point(type));
    case QuantType::Q4_1:
    case QuantType::Q5_1:
        return d * static_cast<float>(q) + half_to_float(block.m); // the product is exact, the sum rounds once
    case QuantType::Q8_0:
        return d * static_cast<float>(static_cast<std::int8_t>(q));
    case QuantType::Q6_K: {
        const int sub = static_cast<std::int8_t>(block.sub[input / 16]);
        return (d * static_cast<float>(sub)) * static_cast<float>(q - zero_point(type)); // exact
    }
    default: {
        const float scale = d * static_cast<float>(block.sub[0]);
        const float minimum = half_to_float(block.m) * static_cast<float>(block.sub_min);
        return scale * static_cast<float>(q) - minimum; // products exact, the difference rounds once
    }
    }
}

bool finite_row(QuantType type, const std::uint8_t* row, std::int64_t k) {
    const int inputs = facts(type).inputs;
    bool finite = true;
    for (std::int64_t at = 0; at < k; at += inputs, row += facts(type).bytes) {
        if (type == QuantType::F32) {
            std::uint32_t bits;
            std::memcpy(&bits, row, 4);
            finite = finite && (bits & 0x7f800000u) != 0x7f800000u;
            continue;
        }
        finite = finite && finite_half(load_half(row + (type == QuantType::Q6_K ? 208 : 0)));
        finite = finite && (!has_minimum(type) || finite_half(load_half(row + 2)));
    }
    return finite;
}

void dequantise_row(QuantType type, const std::uint8_t* row, std::int64_t k, float* out) {
    if (type == QuantType::F32) {
        std::memcpy(out, row, static_cast<std::size_t>(k) * 4);
        return;
    }
    if (type == QuantType::F16) {
        for (std::int64_t i = 0; i < k; ++i) {
            out[i] = half_to_float(load_half(row + 2 * i));
        }
        return;
    }
    for (std::int64_t b = 0; b < k / kBlock; ++b) {
        const Block block = read_block(type, row, b);
        for (int i = 0; i < kBlock; ++i) {
            out[b * kBlock + i] = block_value(type, block, i);
        }
    }
}

} // namespace redraft
