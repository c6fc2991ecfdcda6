// Compares the best kernel variant of this processor with the scalar one: variant_digest <seeds> [plant]
//
// Knows nothing of Python; test_neon.py builds it for aarch64 and, with the scalar kernels alone, for this machine.
// Prints the variant chosen, then per operation the values compared, those that differ by any bit, and a digest of the
// scalar result, which is the same on every processor. With `plant` one bit of the variant's last result of each
// operation is flipped first. Deterministic. Exit 1 when something differs.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "activations.h"
#include "dispatch.h"
#include "pack.h"
#include "pool.h"
#include "variants.h"

namespace {

using namespace redraft;
using Floats = std::vector<float>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
    std::uint32_t bits() {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<std::uint32_t>(state_ >> 32);
    }
    int below(int n) { return static_cast<int>(bits() % static_cast<std::uint32_t>(n)); }
    float number(float size) { return (static_cast<float>(bits() >> 8) * 0x1p-23f - 1.0f) * size; }
    Floats numbers(std::int64_t n, float size = 2.0f) {
        Floats made(static_cast<std::size_t>(n));
        for (float& x : made) {
            x = number(size);
        }
        return made;
    }
    // any finite float: denormals, zeros of both signs, huge ones
    float any() {
        const std::uint32_t raw = bits();
        float x;
        std::memcpy(&x, &raw, 4);
        return x - x == 0.0f ? x : 0.0f;
    }

  private:
    std::uint64_t state_;
};

struct Tally {
    long compared = 0;
    long differing = 0;
    std::uint64_t digest = 0xcbf29ce484222325ULL;
};

std::map<std::string, Tally> tallies;
std::map<std::string, bool> to_plant;

template <typename T> void compare(const std::string& what, const std::vector<T>& scalar, std::vector<T> other) {
    if (bool& plant = to_plant[what]; plant) {
        unsigned char byte;
        std::memcpy(&byte, &other.back(), 1);
        byte ^= 1;
        std::memcpy(&other.back(), &byte, 1);
        plant = false;
    }
    Tally& tally = tallies[what];
    for (std::size_t i = 0; i < scalar.size(); ++i) {
        ++tally.compared;
        tally.differing += std::memcmp(&scalar[i], &other[i], sizeof(T)) != 0;
        unsigned char bytes[sizeof(T)];
        std::memcpy(bytes, &scalar[i], sizeof(T));
        for (const unsigned char byte : bytes) {
            tally.digest = (tally.digest ^ byte) * 0x100000001b3ULL;
        }
    }
}

void check_quantise(const Ops& ops, Random& random) {
    constexpr std::int64_t k = 256;
    Floats x = random.numbers(k, 1.0f);
    for (std::int64_t i = 0; i < 32; ++i) {
        x[static_cast<std::size_t>(i)] = random.any();
        x[static_cast<std::size_t>(32 + i)] = 0.0f;
        x[static_cast<std::size_t>(64 + i)] *= 0x1p-140f;                                      // denormal
        x[static_cast<std::size_t>(96 + i)] = static_cast<float>(random.below(255) - 127) / 2; // ties
        x[static_cast<std::size_t>(128 + i)] = 0x1p-149f;
    }
    x[96] = 127.0f;
    const int broken = random.below(4);
    if (broken < 3) {
        x[static_cast<std::size_t>(160 + random.below(96))] =
            broken == 0 ? kInfinity : broken == 1 ? -kInfinity : std::numeric_limits<float>::quiet_NaN();
    }
    Activations a(1, k), b(1, k);
    std::vector<std::int32_t> fine{scalar::kOps.quantise(x.data(), 0, 0, k, a.view)};
    compare("quantise", fine, {ops.quantise(x.data(), 0, 0, k, b.view)});
    compare("quantise", a.q, b.q);
    compare("quantise", a.scale, b.scale);
    compare("quantise", a.sum, b.sum);
    compare("quantise", a.sum32, b.sum32);
    compare("quantise", a.sum16, b.sum16);
}

// Random bytes, or the same extreme byte everywhere, under finite block scales.
std::vector<std::uint8_t> weights(QuantType type, std::int64_t n, std::int64_t k, Random& random) {
    static constexpr std::uint8_t kExtremes[] = {0x00, 0xff, 0x80, 0x7f};
    const int extreme = random.below(8);
    std::vector<std::uint8_t> packed(static_cast<std::size_t>(packed_bytes(type, n, k)));
    for (std::uint8_t& byte : packed) {
        byte = extreme < 4 ? kExtremes[extreme] : static_cast<std::uint8_t>(random.bits());
    }
    const int step = header_bytes(type) + blocks_per_header(type) * quant_bytes(type);
    const int halves = has_minimum(type) ? 16 : 8;
    for (std::size_t header = 0; header < packed.size(); header += static_cast<std::size_t>(step)) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(halves); ++i) {
            packed[header + 2 * i] = static_cast<std::uint8_t>(random.bits());
            packed[header + 2 * i + 1] = static_cast<std::uint8_t>(random.bits() & 0xbf); // below 2
        }
    }
    return packed;
}

void check_linear(const Ops& ops, Random& random, const std::vector<const char*>& names) {
    const std::int64_t rows = 1 + random.below(random.below(8) == 0 ? kMaxRows : 9);
    const std::int64_t k = 256 * (1 + random.below(2));
    const std::int64_t n = kColumns * (1 + random.below(3));
    Floats input = random.numbers(rows * k);
    if (random.below(4) == 0) { // every quant +-127, all of one sign in a row: the largest sums there are
        for (std::size_t i = 0; i < input.size(); ++i) {
            input[i] = (i / static_cast<std::size_t>(k)) % 2 == 0 ? 1.5f : -1.5f;
        }
    }
    Activations x(rows, k);
    for (std::int64_t r = 0; r < rows; ++r) {
        scalar::kOps.quantise(input.data() + r * k, r, 0, k, x.view);
    }
    const Floats bias = random.numbers(n);
    for (int type = 0; type < kPackable; ++type) {
        const auto packed = weights(static_cast<QuantType>(type), n, k, random);
        Floats a = random.numbers(rows * n);
        Floats b = a;
        const std::int64_t group = random.below(static_cast<int>(n / kColumns));
        const std::int64_t row = random.below(static_cast<int>(rows));
        LinearCall call{packed.data(), group_bytes(static_cast<QuantType>(type), k), group, n / kColumns, row, rows,
                        random.below(2) == 0 ? nullptr : bias.data(), a.data(), n, random.below(2) == 0};
        scalar::kOps.linear[type](call, x.view);
        call.out = b.data();
        ops.linear[type](call, x.view);
        compare(std::string("linear ") + names[static_cast<std::size_t>(type)], a, b);
    }
}

void check_rows(const Ops& ops, Random& random) {
    const std::int64_t n = 8 * (1 + random.below(40));
    const Floats x = random.numbers(n, 3.0f);
    const Floats w = random.numbers(n);
    Floats a(x.size()), b(x.size());
    scalar::kOps.rmsnorm(x.data(), w.data(), n, 1e-6f, a.data());
    ops.rmsnorm(x.data(), w.data(), n, 1e-6f, b.data());
    compare("rmsnorm", a, b);
    const Floats gate = random.numbers(n, random.below(2) == 0 ? 4.0f : 120.0f);
    scalar::kOps.swiglu(gate.data(), w.data(), n, a.data());
    ops.swiglu(gate.data(), w.data(), n, b.data());
    compare("swiglu", a, b);
    Floats powers = random.numbers(n - random.below(8), 95.0f);
    powers[0] = random.below(2) == 0 ? -kInfinity : kInfinity;
    powers.back() = random.any();
    const auto count = static_cast<std::int64_t>(powers.size());
    a.assign(powers.size(), 0.0f);
    b = a;
    scalar::kOps.exponential(powers.data(), count, a.data());
    ops.exponential(powers.data(), count, b.data());
    compare("exponential", a, b);

    const int dim = 2 * (1 + random.below(64));
    const Floats turn = random.numbers(dim, 1.0f);
    a = b = random.numbers(dim);
    scalar::kOps.rope_halves(a.data(), turn.data(), turn.data() + dim / 2, dim);
    ops.rope_halves(b.data(), turn.data(), turn.data() + dim / 2, dim);
    compare("rope_halves", a, b);
    scalar::kOps.rope_pairs(a.data(), turn.data(), turn.data() + dim / 2, dim);
    ops.rope_pairs(b.data(), turn.data(), turn.data() + dim / 2, dim);
    compare("rope_pairs", a, b);

    Floats wide = random.numbers(n, random.below(2) == 0 ? 0x1p-14f : 65530.0f); // denormal halves; some beyond
    wide[0] = 1.0f + 0x1p-11f;                                                  // a tie
    wide[1] = random.any();
    std::vector<std::uint16_t> half_a(wide.size()), half_b(wide.size());
    std::vector<std::int32_t> fine_a{scalar::kOps.to_half(wide.data(), n, half_a.data())};
    compare("to_half", fine_a, {ops.to_half(wide.data(), n, half_b.data())});
    compare("to_half", half_a, half_b);

    Floats logits = random.numbers(1 + random.below(70));
    for (float& v : logits) {
        v = static_cast<float>(static_cast<int>(v * 3)); // many ties, zeros of both signs
    }
    const auto broken = static_cast<std::size_t>(random.below(static_cast<int>(logits.size())));
    const float kept = logits[broken];
    std::vector<std::int32_t> best_a(2), best_b(2);
    best_a[1] = scalar::kOps.argmax(logits.data(), static_cast<std::int64_t>(logits.size()), &best_a[0]);
    best_b[1] = ops.argmax(logits.data(), static_cast<std::int64_t>(logits.size()), &best_b[0]);
    compare("argmax", best_a, best_b);
    for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
        logits[broken] = bad;
        best_a[1] = scalar::kOps.argmax(logits.data(), static_cast<std::int64_t>(logits.size()), &best_a[0]);
        best_b[1] = ops.argmax(logits.data(), static_cast<std::int64_t>(logits.size()), &best_b[0]);
        best_a[0] = best_b[0] = 0; // only the answer "not finite" is promised
        compare("argmax", best_a, best_b);
    }
    logits[broken] = kept;
}

Floats attend(const Ops& ops, const Floats& q, const std::vector<std::uint16_t>& keys,
              const std::vector<std::uint16_t>& values, const std::vector<std::int64_t>& seen, int dim) {
    const std::int64_t stride = 3 * kKeyBlock;
    Floats out(q.size()), scores(seen.size() * static_cast<std::size_t>(stride)), sums(seen.size());
    Floats block(static_cast<std::size_t>(kKeyBlock * dim));
    Floats work(seen.size() * static_cast<std::size_t>(dim + kQueryWork));
    std::vector<AttentionQuery> queries;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        const std::size_t at = i * static_cast<std::size_t>(dim);
        queries.push_back({q.data() + at, out.data() + at, seen[i]});
    }
    const auto count = static_cast<int>(queries.size());
    ops.attention({queries.data(), count, dim, keys.data(), values.data(), scores.data(), stride, block.data(),
                   work.data(), sums.data()});
    out.insert(out.end(), sums.begin(), sums.end());
    return out;
}

void check_attention(const Ops& ops, Random& random) {
    const int dim = random.below(2) == 0 ? 64 * (1 + random.below(2)) : 8 * (1 + random.below(16));
    std::vector<std::int64_t> seen(static_cast<std::size_t>(1 + random.below(14)));
    for (std::int64_t& keys : seen) {
        keys = 1 + random.below(3 * kKeyBlock);
    }
    const Floats q = random.numbers(static_cast<std::int64_t>(seen.size()) * dim, random.below(4) == 0 ? 100.0f : 2.0f);
    const Floats source = random.numbers(6 * kKeyBlock * dim);
    std::vector<std::uint16_t> keys(source.size() / 2), values(source.size() / 2);
    scalar::kOps.to_half(source.data(), static_cast<std::int64_t>(keys.size()), keys.data());
    scalar::kOps.to_half(source.data() + keys.size(), static_cast<std::int64_t>(keys.size()), values.data());
    compare("attention", attend(scalar::kOps, q, keys, values, seen, dim), attend(ops, q, keys, values, seen, dim));
}

} // namespace

int main(int count, char** words) {
    const int seeds = count > 1 ? std::atoi(words[1]) : 0;
    const bool plant = count > 2 && std::strcmp(words[2], "plant") == 0;
    if (seeds < 1 || count > 3 || (count == 3 && !plant)) {
        std::fprintf(stderr, "usage: variant_digest <seeds> [plant]\n");
        return 2;
    }
    const Ops& ops = find_variant("");
    std::printf("variant\t%s\t%zu\n", ops.name, variant_notes().size());
    std::vector<const char*> names;
    for (int type = 0; type < kPackable; ++type) {
        names.push_back(facts(static_cast<QuantType>(type)).name);
    }
    const FloatEnvironment environment;
    for (int seed = 1; seed <= seeds; ++seed) {
        if (plant && seed == seeds) {
            for (auto& [what, planted] : to_plant) {
                planted = true;
            }
        }
        Random random(static_cast<std::uint64_t>(seed));
        check_quantise(ops, random);
        check_linear(ops, random, names);
        check_rows(ops, random);
        check_attention(ops, random);
    }
    bool same = true;
    for (const auto& [what, tally] : tallies) {
        std::printf("%s\t%ld\t%ld\t%016llx\n", what.c_str(), tally.compared, tally.differing,
                    static_cast<unsigned long long>(tally.digest));
        same = same && tally.differing == 0;
    }
    return same ? 0 : 1;
}
