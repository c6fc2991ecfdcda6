// The implementations built into this module, one function per ISA; each lives in files of its own.
#pragma once

#include "contract.h"

namespace redraft {

namespace scalar {
extern const Ops kOps; // portable C++; defines the result
}

#if defined(REDRAFT_NEON)
namespace neon {
extern const Ops kOps; // armv8.0
}
#elif defined(REDRAFT_X86) || defined(REDRAFT_ISA)
namespace avx2 {
extern const Ops kOps; // AVX2, FMA, F16C
}
namespace avxvnni {
extern const Ops kOps; // the same and AVX-VNNI
}
namespace avx512vnni {
extern const Ops kOps; // the same and AVX-512 F, BW, VL, VNNI, in vectors of 256 bits
}
#endif

} // namespace redraft
