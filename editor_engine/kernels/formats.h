// GGUF's block formats: sizes, and one block of 32 inputs taken apart into the integers and scales the file holds.
//
// Knows nothing of the packed layout. Invariant: `value` is the number GGUF defines, bit for bit.
#pragma once

#include <cstdint>

#include "contract.h"

namespace redraft {

struct TypeFacts {
    const char* name;
    int inputs; // per block of the file
    int bytes;  // per block of the file
};

const TypeFacts& facts(QuantType type);

// 32 inputs of one row. `q` holds unsigned quants, for Q8_0 the bits of signed ones. Halves as stored; `sub` and
// `sub_min` are the 6-bit sub-scales of Q4_K and Q5_K ([0] only) or the signed ones of Q6_K (one per 16 inputs).
struct Block {
    std::uint8_t q[kBlock];
    std::uint16_t d;
    std::uint16_t m; // dmin of Q4_K and Q5_K, m of Q4_1 and Q5_1
    std::uint8_t sub[2];
    std::uint8_t sub_min;
};

bool has_sub_scales(QuantType type);      // Q4_K, Q5_K, Q6_K: blocks of 256
bool has_minimum(QuantType type);         // Q4_1, Q5_1, Q4_K, Q5_K
int zero_point(QuantType type);           // 8, 16, 32 where the file stores q + zero point; else 0
int quant_bits(QuantType type);           // 4, 5, 6, 8
Block read_block(QuantType type, const std::uint8_t* row, std::int64_t index);
float block_value(QuantType type, const Block& block, int input);

// No scale of the row, or value of a row of floats, is NaN or infinite.
bool finite_row(QuantType type, const std::uint8_t* row, std::int64_t k);

// One row of any type in GGUF's own bytes -> k floats.
void dequantise_row(QuantType type, const std::uint8_t* row, std::int64_t k, float* out);

} // namespace redraft
