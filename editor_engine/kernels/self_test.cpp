// The self-test of dispatch.h: every operation of a variant against the scalar one on small pseudo-random data.
//
// Takes a few milliseconds. Invariant: the data are the same on every machine and every run.
#include <cstring>
#include <vector>

#include "activations.h"
#include "dispatch.h"
#include "pack.h"
#include "pool.h"
#include "variants.h"

namespace redraft {

namespace {

constexpr int kMostQueries = 7;

class Random {
  public:
    std::uint32_t bits() {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<std::uint32_t>(state_ >> 32);
    }
    float number() { return (static_cast<float>(bits() >> 8) * 0x1p-24f - 0.5f) * 4.0f; }
    std::vector<float> numbers(std::size_t n) {
        std::vector<float> made(n);
        for (float& x : made) {
            x = number();
        }
        return made;
    }

  private:
    std::uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

template <typename T> bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

constexpr std::int64_t kRows = 9;
constexpr std::int64_t kInputs = 512;
constexpr std::int64_t kOutputs = 16;

bool quantise_matches(const Ops& ops, const std::vector<float>& x, Activations& made) {
    Activations other(kRows, kInputs);
    bool fine = true;
    for (std::int64_t r = 0; r < kRows; ++r) {
        fine = fine && scalar::kOps.quantise(x.data() + r * kInputs, r, 0, kInputs, made.view);
        fine = fine && ops.quantise(x.data() + r * kInputs, r, 0, kInputs, other.view);
    }
    return fine && same(made.q, other.q) && same(made.scale, other.scale) && same(made.sum, other.sum) &&
           same(made.sum32, other.sum32) && same(made.sum16, other.sum16);
}

std::vector<std::uint8_t> random_weights(QuantType type, Random& random) {
    std::vector<std::uint8_t> packed(static_cast<std::size_t>(packed_bytes(type, kOutputs, kInputs)));
    for (std::uint8_t& byte : packed) {
        byte = static_cast<std::uint8_t>(random.bits());
    }
    const std::size_t step = static_cast<std::size_t>(header_bytes(type) + blocks_per_header(type) * quant_bytes(type));
    const std::size_t halves = has_minimum(type) ? 16 : 8;
    for (std::size_t header = 0; header < packed.size(); header += step) {
        for (std::size_t i = 0; i < halves; ++i) {
            packed[header + 2 * i + 1] &= 0xbf; // below 2: finite
        }
    }
    return packed;
}

bool linear_matches(const Ops& ops, QuantType type, const Activations& x, Random& random) {
    const std::vector<std::uint8_t> packed = random_weights(type, random);
    const std::vector<float> bias = random.numbers(kOutputs);
    std::vector<float> a(kRows * kOutputs), b(kRows * kOutputs);
    LinearCall call{packed.data(), group_bytes(type, kInputs), 0,     kOutputs / kColumns, 0, kRows,
                    bias.data(),   a.data(),                   kOutputs, false};
    scalar::kOps.linear[static_cast<int>(type)](call, x.view);
    call.out = b.data();
    ops.linear[static_cast<int>(type)](call, x.view);
    return same(a, b);
}

bool rows_match(const Ops& ops, Random& random) {
    const std::vector<float> x = random.numbers(kInputs);
    const std::vector<float> w = random.numbers(kInputs);
    std::vector<float> a(kInputs), b(kInputs);
    scalar::kOps.rmsnorm(x.data(), w.data(), kInputs, 1e-6f, a.data());
    ops.rmsnorm(x.data(), w.data(), kInputs, 1e-6f, b.data());
    bool fine = same(a, b);
    scalar::kOps.swiglu(x.data(), w.data(), kInputs, a.data());
    ops.swiglu(x.data(), w.data(), kInputs, b.data());
    fine = fine && same(a, b);
    scalar::kOps.exponential(x.data(), kInputs - 3, a.data());
    ops.exponential(x.data(), kInputs - 3, b.data());
    fine = fine && same(a, b);
    std::int32_t best_a = 0, best_b = 0;
    fine = fine && scalar::kOps.argmax(x.data(), kInputs - 3, &best_a) && ops.argmax(x.data(), kInputs - 3, &best_b);
    a = b = x;
    scalar::kOps.rope_halves(a.data(), w.data(), w.data() + 40, 72);
    ops.rope_halves(b.data(), w.data(), w.data() + 40, 72);
    fine = fine && same(a, b);
    scalar::kOps.rope_pairs(a.data(), w.data(), w.data() + 40, 72);
    ops.rope_pairs(b.data(), w.data(), w.data() + 40, 72);
    return fine && same(a, b) && best_a == best_b;
}

// Outputs of 1 to kMostQueries queries, so that tiles of every size run; they see 39 keys and more.
std::vector<float> attend(const Ops& ops, const std::vector<float>& q, const std::vector<std::uint16_t>& kv, int dim) {
    const auto size = [&](std::int64_t n) { return static_cast<std::size_t>(n); };
    std::vector<float> all, out(size(kMostQueries * dim)), scores(kMostQueries * 128), sums(kMostQueries);
    std::vector<float> block(size(kKeyBlock * dim)), work(size(kMostQueries * (dim + kQueryWork)));
    AttentionQuery queries[kMostQueries];
    for (int i = 0; i < kMostQueries; ++i) {
        queries[i] = {q.data() + i * dim, out.data() + i * dim, 39 + 7 * i};
    }
    for (int count = 1; count <= kMostQueries; ++count) {
        ops.attention({queries, count, dim, kv.data(), kv.data() + 100 * dim, scores.data(), 128, block.data(),
                       work.data(), sums.data()});
        all.insert(all.end(), out.begin(), out.begin() + count * dim);
    }
    return all;
}

bool attention_matches(const Ops& ops, Random& random) {
    constexpr int kDim = 72;
    const std::vector<float> q = random.numbers(kMostQueries * kDim);
    const std::vector<float> source = random.numbers(200 * kDim);
    std::vector<std::uint16_t> a(source.size()), b(source.size());
    const auto n = static_cast<std::int64_t>(source.size());
    bool fine = scalar::kOps.to_half(source.data(), n, a.data()) && ops.to_half(source.data(), n, b.data());
    return fine && same(a, b) && same(attend(scalar::kOps, q, a, kDim), attend(ops, q, a, kDim));
}

} // namespace

bool matches_scalar(const Ops& ops) {
    const FloatEnvironment environment;
    Random random;
    Activations x(kRows, kInputs);
    bool fine = quantise_matches(ops, random.numbers(kRows * kInputs), x);
    for (int type = 0; type < kPackable; ++type) {
        fine = fine && linear_matches(ops, static_cast<QuantType>(type), x, random);
    }
    return fine && rows_match(ops, random) && attention_matches(ops, random);
}

} // namespace redraft
