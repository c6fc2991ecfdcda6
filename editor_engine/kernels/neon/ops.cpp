// The table of the NEON variant.
#include "../variants.h"
#include "neon.h"

namespace redraft::neon {

const Ops kOps = {
    "neon",
    quantise,
    {linear_q4_0, linear_q4_1, linear_q5_0, linear_q5_1, linear_q8_0, linear_q4_k, linear_q5_k, linear_q6_k},
    rmsnorm,
    rope_halves,
    rope_pairs,
    to_half,
    attention,
    swiglu,
    exponential,
    argmax,
};

} // namespace redraft::neon
