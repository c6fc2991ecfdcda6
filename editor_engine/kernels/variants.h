// The implementations built into this module, one function per ISA; each lives in files of its own.
#pragma once

#include "contract.h"

namespace redraft {

namespace scalar {
extern const Ops kOps; // portable C++; defines the result
}

#ifdef REDRAFT_X86
namespace avx2 {
extern const Ops kOps; // AVX2, FMA, F16C
}
#endif

} // namespace redraft
