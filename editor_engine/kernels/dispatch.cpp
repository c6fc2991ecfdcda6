// See dispatch.h.
#include "dispatch.h"

#include <mutex>

#include "failure.h"
#include "pool.h"
#include "variants.h"

namespace redraft {

namespace {

struct Choice {
    std::vector<const Ops*> usable;
    std::vector<std::string> notes;
};

std::vector<const Ops*> processor_has() {
    std::vector<const Ops*> found;
#ifdef REDRAFT_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
            found.push_back(&avx512vnni::kOps);
        }
        if (__builtin_cpu_supports("avxvnni")) {
            found.push_back(&avxvnni::kOps);
        }
        found.push_back(&avx2::kOps);
    }
#elif defined(REDRAFT_NEON)
    found.push_back(&neon::kOps); // every aarch64 processor has it
#endif
    return found;
}

const Choice& choice() {
    static Choice made;
    static std::once_flag once;
    std::call_once(once, [] {
        for (const Ops* ops : processor_has()) {
            if (matches_scalar(*ops)) {
                made.usable.push_back(ops);
            } else {
                made.notes.push_back(std::string("The ") + ops->name +
                                     " kernels failed their self-test on this processor; slower ones are used.");
            }
        }
        made.usable.push_back(&scalar::kOps);
    });
    return made;
}

} // namespace

const std::vector<const Ops*>& usable_variants() { return choice().usable; }

const std::vector<std::string>& variant_notes() { return choice().notes; }

const Ops& find_variant(const std::string& name) {
    std::string known;
    for (const Ops* ops : usable_variants()) {
        if (name.empty() || name == ops->name) {
            return *ops;
        }
        known += std::string(known.empty() ? "" : ", ") + ops->name;
    }
    throw Failure(Failure::Kind::Request, "The kernel variant '" + name + "' does not run here; " + known + " do.");
}

} // namespace redraft
