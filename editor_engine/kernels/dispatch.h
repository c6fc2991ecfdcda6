// Chooses the implementation of the operations: by what the processor has, and by a self-test against the scalar one.
//
// Invariant: a variant that differs from the scalar one by a bit on the self-test's data is never offered.
#pragma once

#include <string>
#include <vector>

#include "contract.h"

namespace redraft {

// Every variant this processor runs and that passed its self-test, best first; the scalar one is always last.
const std::vector<const Ops*>& usable_variants();

// One sentence for each variant that the processor has but the self-test refused.
const std::vector<std::string>& variant_notes();

// The variant of that name; the best for an empty name. Throws Failure(Request) when it cannot be used here.
const Ops& find_variant(const std::string& name);

// Whether `ops` gives the scalar variant's bits on small pseudo-random data, every operation and packed type.
bool matches_scalar(const Ops& ops);

} // namespace redraft
