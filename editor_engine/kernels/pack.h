// The packed layout: groups of 8 output columns, interleaved so that a 256-bit vector holds 8 columns x 4 inputs.
//
// Knows nothing of activations. Invariant: packing loses nothing (unpacking gives GGUF's values bit for bit) and takes
// the bytes of the file, rounded up to whole groups of columns.
//
//   group g = columns 8g .. 8g+7; inside it blocks of 32 inputs in order; byte c*4+i of a 32-byte vector is column c
//
//   block, 32 wide:  | d: 8 halves | m: 8 halves (Q4_1, Q5_1) | quants |
//   superblock, 256: Q4_K, Q5_K: | d: 8 halves | dmin: 8 halves | sub-scales 48 | sub-minima 48 | 8 x quants |
//                    Q6_K:       | d: 8 halves | sub-scales s8, [16 inputs' index][column], 128 | 8 x quants |
//   six-bit table, entry e = sub * 8 + column:  low 4 bits: nibble e/32 of byte e%32;  high 2: pair e/16 of byte 32+e%16
//
//   quants  4 bits: vectors v=0..3, low nibble = input 4v+i, high nibble = input 4(v+4)+i
//           5 bits: the same + one vector, bit g = high bit of input 4g+i
//           6 bits: the same + two vectors, bits 2g..2g+1 = high bits of input 4g+i (first vector) and 4(g+4)+i
//           8 bits: vectors v=0..7, byte = input 4v+i
#pragma once

#include <cstdint>
#include <cstring>

#include "contract.h"
#include "formats.h"

namespace redraft {

constexpr int kVector = 32; // bytes of one packed vector

// slot 0: d, 1: m or dmin. Static, as the next one: the scalar linear reads every block by them.
static inline std::uint16_t header_half(const std::uint8_t* header, int slot, int column) {
    std::uint16_t half;
    std::memcpy(&half, header + slot * 16 + column * 2, 2);
    return half;
}

static inline std::uint8_t six_bits(const std::uint8_t* table, int entry) {
    const int low = (table[entry % 32] >> (4 * (entry / 32))) & 15;
    const int high = (table[32 + entry % 16] >> (2 * (entry / 16))) & 3;
    return static_cast<std::uint8_t>(low | (high << 4));
}

int header_bytes(QuantType type);     // scales in front of one block or superblock
int quant_bytes(QuantType type);      // quants of one block of 32
int blocks_per_header(QuantType type); // 1 or 8
std::int64_t group_bytes(QuantType type, std::int64_t k);
std::int64_t packed_bytes(QuantType type, std::int64_t n, std::int64_t k);

// Packs columns 8 group .. 8 group + 7 (those below n) of `raw`, n rows of k inputs in GGUF's bytes, to their place in
// `packed`. False when a block scale is NaN or infinite.
bool pack_group(QuantType type, const std::uint8_t* raw, std::int64_t n, std::int64_t k, std::int64_t group,
                std::uint8_t* packed);

// Column `column` of the packed tensor -> k floats.
void unpack_column(QuantType type, const std::uint8_t* packed, std::int64_t column, std::int64_t k, float* out);

} // namespace redraft
