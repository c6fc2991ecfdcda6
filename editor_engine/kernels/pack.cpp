// See pack.h.
#include "pack.h"

#include <cstring>

namespace redraft {

namespace {

constexpr int kSixBitTable = 48;

void put_half(std::uint8_t* header, int slot, int column, std::uint16_t half) {
    std::memcpy(header + slot * 16 + column * 2, &half, 2);
}

void put_six_bits(std::uint8_t* table, int entry, int value) {
    table[entry % 32] = static_cast<std::uint8_t>(table[entry % 32] | ((value & 15) << (4 * (entry / 32))));
    std::uint8_t& high = table[32 + entry % 16];
    high = static_cast<std::uint8_t>(high | ((value >> 4) << (2 * (entry / 16))));
}

// Quants of 8 columns, as bytes of 8 vectors, -> the packed quants of a block.
void put_quants(QuantType type, const std::uint8_t (*vectors)[kVector], std::uint8_t* quants) {
    if (type == QuantType::Q8_0) {
        std::memcpy(quants, vectors, 8 * kVector);
        return;
    }
    for (int v = 0; v < 4; ++v) {
        for (int i = 0; i < kVector; ++i) {
            quants[v * kVector + i] =
                static_cast<std::uint8_t>((vectors[v][i] & 15) | ((vectors[v + 4][i] & 15) << 4));
        }
    }
    const int high_bits = quant_bits(type) - 4; // of one quant: 0, 1 or 2; a byte has room for 8 / high_bits quants
    std::uint8_t* high = quants + 4 * kVector;
    std::memset(high, 0, static_cast<std::size_t>(high_bits) * kVector);
    for (int v = 0; v < 8 && high_bits > 0; ++v) {
        const int slot = v * high_bits;
        for (int i = 0; i < kVector; ++i) {
            std::uint8_t& byte = high[slot / 8 * kVector + i];
            byte = static_cast<std::uint8_t>(byte | ((vectors[v][i] >> 4) << (slot % 8)));
        }
    }
}

std::uint8_t get_quant(QuantType type, const std::uint8_t* quants, int column, int input) {
    const int group = input / 4;
    const int byte = column * 4 + input % 4;
    if (type == QuantType::Q8_0) {
        return quants[group * kVector + byte];
    }
    int value = (quants[(group % 4) * kVector + byte] >> (4 * (group / 4))) & 15;
    const std::uint8_t* high = quants + 4 * kVector + byte;
    if (quant_bits(type) == 5) {
        value |= ((*high >> group) & 1) << 4;
    } else if (quant_bits(type) == 6) {
        value |= ((high[(group / 4) * kVector] >> (2 * (group % 4))) & 3) << 4;
    }
    return static_cast<std::uint8_t>(value);
}

void put_scales(QuantType type, std::uint8_t* header, int column, int sub, const Block& block) {
    put_half(header, 0, column, block.d);
    if (has_minimum(type)) {
        put_half(header, 1, column, block.m);
    }
    if (type == QuantType::Q6_K) {
        header[16 + (sub * 2) * kColumns + column] = block.sub[0];
        header[16 + (sub * 2 + 1) * kColumns + column] = block.sub[1];
    } else if (has_sub_scales(type)) {
        put_six_bits(header + 32, sub * kColumns + column, block.sub[0]);
        put_six_bits(header + 32 + kSixBitTable, sub * kColumns + column, block.sub_min);
    }
}

void get_scales(QuantType type, const std::uint8_t* header, int column, int sub, Block& block) {
    block.d = header_half(header, 0, column);
    if (has_minimum(type)) {
        block.m = header_half(header, 1, column);
    }
    if (type == QuantType::Q6_K) {
        block.sub[0] = header[16 + (sub * 2) * kColumns + column];
        block.sub[1] = header[16 + (sub * 2 + 1) * kColumns + column];
    } else if (has_sub_scales(type)) {
        block.sub[0] = block.sub[1] = six_bits(header + 32, sub * kColumns + column);
        block.sub_min = six_bits(header + 32 + kSixBitTable, sub * kColumns + column);
    }
}

// Byte offset, inside its group, of the header that block `b` belongs to.
std::int64_t header_offset(QuantType type, std::int64_t b) {
    const int per = blocks_per_header(type);
    return (b / per) * (header_bytes(type) + static_cast<std::int64_t>(per) * quant_bytes(type));
}

} // namespace

int header_bytes(QuantType type) {
    if (type == QuantType::Q6_K) {
        return 16 + 128;
    }
    return has_sub_scales(type) ? 32 + 2 * kSixBitTable : (has_minimum(type) ? 32 : 16);
}

int quant_bytes(QuantType type) { return quant_bits(type) * kVector; }

int blocks_per_header(QuantType type) { return has_sub_scales(type) ? 8 : 1; }

std::int64_t group_bytes(QuantType type, std::int64_t k) { return header_offset(type, k / kBlock); }

std::int64_t packed_bytes(QuantType type, std::int64_t n, std::int64_t k) {
    return (n + kColumns - 1) / kColumns * group_bytes(type, k);
}

bool pack_group(QuantType type, const std::uint8_t* raw, std::int64_t n, std::int64_t k, std::int64_t group,
                std::uint8_t* packed) {
    const std::int64_t row_bytes = k / facts(type).inputs * facts(type).bytes;
    const int per = blocks_per_header(type);
    std::uint8_t* out = packed + group * group_bytes(type, k);
    std::memset(out, 0, static_cast<std::size_t>(group_bytes(type, k)));
    const int columns = static_cast<int>(n - group * kColumns < kColumns ? n - group * kColumns : kColumns);
    bool finite = true;
    for (int c = 0; c < columns; ++c) {
        finite = finite_row(type, raw + (group * kColumns + c) * row_bytes, k) && finite;
    }
    for (std::int64_t b = 0; b < k / kBlock; ++b) {
        const int sub = static_cast<int>(b % per);
        std::uint8_t* header = out + header_offset(type, b);
        std::uint8_t vectors[8][kVector] = {};
        for (int c = 0; c < columns; ++c) {
            const Block block = read_block(type, raw + (group * kColumns + c) * row_bytes, b);
            put_scales(type, header, c, sub, block);
            for (int v = 0; v < 8; ++v) {
                std::memcpy(&vectors[v][4 * c], block.q + 4 * v, 4);
            }
        }
        put_quants(type, vectors, header + header_bytes(type) + sub * quant_bytes(type));
    }
    return finite;
}

void unpack_column(QuantType type, const std::uint8_t* packed, std::int64_t column, std::int64_t k, float* out) {
    const std::uint8_t* group = packed + column / kColumns * group_bytes(type, k);
    const int lane = static_cast<int>(column % kColumns);
    const int per = blocks_per_header(type);
    for (std::int64_t b = 0; b < k / kBlock; ++b) {
        const int sub = static_cast<int>(b % per);
        const std::uint8_t* header = group + header_offset(type, b);
        const std::uint8_t* quants = header + header_bytes(type) + sub * quant_bytes(type);
        Block block{};
        get_scales(type, header, lane, sub, block);
        for (int i = 0; i < kBlock; ++i) {
            block.q[i] = get_quant(type, quants, lane, i);
        }
        for (int i = 0; i < kBlock; ++i) {
            out[b * kBlock + i] = block_value(type, block, i);
        }
    }
}

} // namespace redraft
