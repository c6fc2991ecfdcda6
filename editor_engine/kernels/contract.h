// The words every kernel file shares: constants of the arithmetic contract, plain records, the table of operations.
//
// Holds no code, so that including it in an ISA-specific file can leak no instruction into the baseline build.
// Invariant: every implementation of `Ops` gives the bits of the scalar one (NOTES.md has the formulas).
#pragma once

#include <cstdint>

namespace redraft {

constexpr int kContractVersion = 1; // of the arithmetic; enters every token hash
constexpr int kLayoutVersion = 1;   // of packed weights; never changes a bit of the output
constexpr int kMaxRows = 64;        // rows of one pass
constexpr int kLanes = 8;           // virtual lanes of every sum over fp32
constexpr int kBlock = 32;          // inputs that share one activation scale
constexpr int kColumns = 8;         // output columns of one packed group
constexpr int kKeyBlock = 64;       // keys walked together by attention; no bit depends on it
constexpr int kQueryTile = 6;       // queries that vector variants score together; no bit depends on it
constexpr int kQueryWork = 24;      // floats that attention keeps per query, beside the query itself

// The first eight can be packed for `linear`; all can be an embedding.
enum class QuantType : int { Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, F16, F32 };
constexpr int kPackable = 8;
constexpr int kTypes = 10;

// Quantised activations, row-major. Per row: `k` quants and, per block of 32, the scale, the sum of the quants as int
// and as float, and the sums of its two halves of 16.
struct QuantRows {
    std::int8_t* q;
    float* scale;
    float* sum;
    std::int32_t* sum32;
    std::int32_t* sum16;
    std::int64_t k;
};

// One linear over the packed groups [group_begin, group_end) and the rows [row_begin, row_end).
struct LinearCall {
    const std::uint8_t* packed; // the whole tensor
    std::int64_t group_bytes;
    std::int64_t group_begin, group_end;
    std::int64_t row_begin, row_end;
    const float* bias; // padded to whole groups, or null
    float* out;        // row r, column c at out[r * stride + c]
    std::int64_t stride;
    bool add; // true: out = rn(out + y), the residual; false: out = y
};

struct AttentionQuery {
    const float* q;    // head_dim floats, rotated
    float* out;        // head_dim floats
    std::int64_t keys; // sees keys 0 .. keys-1; at least 1
};

struct AttentionCall {
    const AttentionQuery* queries;
    int count;
    int head_dim;                // multiple of 8
    const std::uint16_t* keys;   // fp16 [group of kLanes positions][head_dim][position in the group], whole groups
    const std::uint16_t* values; // fp16 [position][head_dim]
    float* scores;               // count rows of score_stride floats
    std::int64_t score_stride;   // at least the most keys, rounded up to kKeyBlock
    float* block;                // kKeyBlock * head_dim floats
    float* work;                 // count * (head_dim + kQueryWork) floats
    float* sums;                 // count floats, the sums of the terms
};

// One implementation of every operation. Functions that can meet NaN or infinity return false when they did.
struct Ops {
    const char* name;
    bool (*quantise)(const float* x, std::int64_t row, std::int64_t begin, std::int64_t end, const QuantRows& out);
    void (*linear[kPackable])(const LinearCall& call, const QuantRows& x);
    void (*rmsnorm)(const float* x, const float* weight, std::int64_t n, float eps, float* y);
    void (*rope_halves)(float* x, const float* cosines, const float* sines, int head_dim);
    void (*rope_pairs)(float* x, const float* cosines, const float* sines, int head_dim);
    bool (*to_half)(const float* x, std::int64_t n, std::uint16_t* y);
    void (*attention)(const AttentionCall& call);
    void (*swiglu)(const float* gate, const float* up, std::int64_t n, float* y);
    void (*exponential)(const float* x, std::int64_t n, float* y);
    bool (*argmax)(const float* x, std::int64_t n, std::int32_t* best);
};

} // namespace redraft
