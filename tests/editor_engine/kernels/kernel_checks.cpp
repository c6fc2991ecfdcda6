// Drives every kernel without Python: kernel_checks [short-weights | short-keys | shift]
// The checks themselves are in operation_checks.cpp and model_checks.cpp.
//
// Built with -fsanitize=address,undefined (test_sanitizers.py), which is what finds a fault: every buffer here is an
// allocation of exactly the size the kernels may use. Checked as well: variants, threads and rows of a pass agree to
// the bit, and what makes no sense is refused. Deterministic. Prints what was done; exit 1 on a broken promise.
// An argument plants a fault that the sanitizers must stop, so that a build without them cannot pass unnoticed.
#include <cstdio>
#include <string>

#include "checks.h"
#include "pool.h"

namespace {

using namespace redraft;

// --- planted faults ---

void plant(const std::string& fault, Random& random) {
    const Ops& ops = *usable_variants().front();
    if (fault == "short-weights") {
        Bytes packed = packed_matrix(QuantType::Q4_0, random_matrix(QuantType::Q4_0, 8, 96, random), 8, 96);
        packed.pop_back();
        packed.shrink_to_fit();
        const Activations x = quantised(ops, random.numbers(96), 1, 96);
        Floats out(8);
        const std::int64_t bytes = group_bytes(QuantType::Q4_0, 96);
        ops.linear[0]({packed.data(), bytes, 0, 1, 0, 1, nullptr, out.data(), 8, false}, x.view);
    } else if (fault == "short-keys") {
        attend(ops, random.numbers(8), Halves(8 * 8), Halves(8 * 8), 8, 9, 1);
    } else {
        volatile int bits = 40;
        volatile int shifted = 1 << bits;
        (void)shifted;
    }
}

} // namespace

int main(int argc, char** argv) {
    const FloatEnvironment environment;
    Random random;
    if (argc > 1) {
        plant(argv[1], random);
        std::puts("the planted fault was not found");
        return 0;
    }
    for (const std::string& note : variant_notes()) {
        expect(false, note);
    }
    std::string names;
    for (const Ops* ops : usable_variants()) {
        expect(matches_scalar(*ops), std::string("the self-test of ") + ops->name);
        check_elementwise(*ops, random);
        check_attention(*ops, random);
        names += std::string(names.empty() ? "" : ",") + ops->name;
    }
    for (int t = 0; t < kPackable; ++t) {
        const QuantType type = static_cast<QuantType>(t);
        const std::int64_t block = facts(type).inputs;
        for (const std::int64_t n : {1, 7, 8, 13}) {
            check_packing(type, n, block, random);
            check_packing(type, n, 3 * block, random);
        }
        check_linear(type, 13, block == 256 ? 512 : 160, random);
        check_model(type, t % 3 == 0 ? QuantType::F32 : type, random);
    }
    check_interrupts(random);
    check_refusals(random);
    std::printf("variants %s, %d types\n", names.c_str(), kPackable);
    return 0;
}
