// The table of the scalar variant.
#include "../variants.h"
#include "scalar.h"

namespace redraft::scalar {

const Ops kOps = {
    "scalar",
    quantise,
    {linear<QuantType::Q4_0>, linear<QuantType::Q4_1>, linear<QuantType::Q5_0>, linear<QuantType::Q5_1>,
     linear<QuantType::Q8_0>, linear<QuantType::Q4_K>, linear<QuantType::Q5_K>, linear<QuantType::Q6_K>},
    rmsnorm,
    rope_halves,
    rope_pairs,
    to_half,
    attention,
    swiglu,
    exponential,
    argmax,
};

} // namespace redraft::scalar
