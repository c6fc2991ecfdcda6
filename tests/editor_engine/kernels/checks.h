// What the parts of kernel_checks share: buffers of exactly the size asked for, random weights, and the checks' names.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "activations.h"
#include "dispatch.h"
#include "formats.h"
#include "pack.h"

namespace redraft {

using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;
using Halves = std::vector<std::uint16_t>;

inline void expect(bool fine, const std::string& what) {
    if (!fine) {
        std::fprintf(stderr, "broken: %s\n", what.c_str());
        std::exit(1);
    }
}

inline std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

class Random {
  public:
    std::uint32_t bits() {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<std::uint32_t>(state_ >> 32);
    }
    float number() { return (static_cast<float>(bits() >> 8) * 0x1p-24f - 0.5f) * 4.0f; }
    Floats numbers(std::int64_t n) {
        Floats made(size(n));
        for (float& x : made) {
            x = number();
        }
        return made;
    }

  private:
    std::uint64_t state_ = 0x2545f4914f6cdd1dULL;
};

template <typename T> bool same(const T* a, const T* b, std::int64_t n) {
    return std::memcmp(a, b, size(n) * sizeof(T)) == 0;
}
template <typename T> bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && same(a.data(), b.data(), static_cast<std::int64_t>(a.size()));
}

inline Bytes random_matrix(QuantType type, std::int64_t n, std::int64_t k, Random& random) {
    const TypeFacts& fact = facts(type);
    Bytes raw(size(n * (k / fact.inputs) * fact.bytes));
    for (std::uint8_t& byte : raw) {
        byte = static_cast<std::uint8_t>(random.bits());
    }
    for (std::size_t block = 0; block < raw.size(); block += size(fact.bytes)) {
        const std::size_t d = block + (type == QuantType::Q6_K ? 208 : 0);
        for (std::size_t at = d; at < d + (has_minimum(type) ? 4 : 2) && fact.inputs > 1; at += 2) {
            raw[at + 1] = static_cast<std::uint8_t>((raw[at + 1] & 0x83) | 0x10); // around 2^-11
        }
    }
    return raw;
}

inline Bytes packed_matrix(QuantType type, const Bytes& raw, std::int64_t n, std::int64_t k) {
    Bytes packed(size(packed_bytes(type, n, k)));
    for (std::int64_t group = 0; group < (n + kColumns - 1) / kColumns; ++group) {
        expect(pack_group(type, raw.data(), n, k, group, packed.data()), "a healthy matrix is refused");
    }
    return packed;
}

// operation_checks.cpp
Activations quantised(const Ops& ops, const Floats& x, std::int64_t rows, std::int64_t k);
Floats attend(const Ops& ops, const Floats& q, const Halves& keys, const Halves& values, int dim,
              std::int64_t positions, int count);
void check_packing(QuantType type, std::int64_t n, std::int64_t k, Random& random);
void check_linear(QuantType type, std::int64_t n, std::int64_t k, Random& random);
void check_elementwise(const Ops& ops, Random& random);
void check_attention(const Ops& ops, Random& random);

// model_checks.cpp
void check_model(QuantType type, QuantType embedding_type, Random& random);
void check_interrupts(Random& random);
void check_refusals(Random& random);

} // namespace redraft
