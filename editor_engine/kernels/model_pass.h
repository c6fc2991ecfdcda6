// What the files of Model share: one pass as its phases see it, and the memory of one worker's attention.
//
// Knows nothing of the arithmetic.
#pragma once

#include "model.h"

namespace redraft {

struct Model::Pass {
    const std::int32_t* tokens;
    std::int64_t rows;
    std::int64_t start; // position of the first row
    std::int64_t head_rows;
    std::int32_t* ids;
    QuantRows hidden; // views of the same memory at the widths a pass needs
    QuantRows attended;
    QuantRows ffn;
};

struct Model::Target {
    const Linear* linear;
    float* out;
    std::int64_t stride;
    bool add;
};

// Pages, for what the kernels read in wide vectors begins at a cache line then.
struct AttentionScratch {
    AttentionScratch(int head_dim, std::int64_t context);
    LazyPages scores, block, work, sums, key;
};

// Where NaN or infinity was met, in the order of a pass.
enum Place : int {
    kAttentionInput,
    kKeysOrValues,
    kAttentionOutput,
    kFfnInput,
    kFfnInside,
    kHeadInput,
    kLogits,
    kPlaceCount
};

inline std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

} // namespace redraft
