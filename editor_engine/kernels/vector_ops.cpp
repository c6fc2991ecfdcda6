// The table of one vector variant.
#include "variants.h"
#include "vector.h"

#define REDRAFT_QUOTE(name) #name
#define REDRAFT_NAME(name) REDRAFT_QUOTE(name)

namespace redraft::REDRAFT_ISA {

const Ops kOps = {
    REDRAFT_NAME(REDRAFT_ISA),
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

} // namespace redraft::REDRAFT_ISA
