// The table of the AVX2 variant.
#include "../variants.h"
#include "avx2.h"

namespace redraft::avx2 {

const Ops kOps = {
    "avx2",
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

} // namespace redraft::avx2
