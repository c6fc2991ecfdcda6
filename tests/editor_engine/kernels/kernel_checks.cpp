// Drives every kernel without Python: kernel_checks [short-weights | short-keys | shift]
//
// Built with -fsanitize=address,undefined (test_sanitizers.py), which is what finds a fault: every buffer here is an
// allocation of exactly the size the kernels may use. Checked as well: variants, threads and rows of a pass agree to
// the bit, and what makes no sense is refused. Deterministic. Prints what was done; exit 1 on a broken promise.
// An argument plants a fault that the sanitizers must stop, so that a build without them cannot pass unnoticed.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dispatch.h"
#include "failure.h"
#include "formats.h"
#include "model.h"
#include "pack.h"
#include "pool.h"
#include "rope_table.h"

namespace {

using namespace redraft;
using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;
using Halves = std::vector<std::uint16_t>;

void expect(bool fine, const std::string& what) {
    if (!fine) {
        std::fprintf(stderr, "broken: %s\n", what.c_str());
        std::exit(1);
    }
}

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

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

Bytes random_matrix(QuantType type, std::int64_t n, std::int64_t k, Random& random) {
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

Bytes packed_matrix(QuantType type, const Bytes& raw, std::int64_t n, std::int64_t k) {
    Bytes packed(size(packed_bytes(type, n, k)));
    for (std::int64_t group = 0; group < (n + kColumns - 1) / kColumns; ++group) {
        expect(pack_group(type, raw.data(), n, k, group, packed.data()), "a healthy matrix is refused");
    }
    return packed;
}

struct Activations {
    Activations(std::int64_t rows, std::int64_t k)
        : q(size(rows * k)), scale(q.size() / kBlock), sum(scale.size()), sum32(scale.size()), sum16(2 * scale.size()),
          view{q.data(), scale.data(), sum.data(), sum32.data(), sum16.data(), k} {}
    std::vector<std::int8_t> q;
    Floats scale, sum;
    std::vector<std::int32_t> sum32, sum16;
    QuantRows view;
};

Activations quantised(const Ops& ops, const Floats& x, std::int64_t rows, std::int64_t k) {
    Activations made(rows, k);
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t cut = k / 2 / kBlock * kBlock; // two parts, as the feed-forward part of a pass does
        const float* row = x.data() + r * k;
        expect(ops.quantise(row, r, 0, cut, made.view) && ops.quantise(row, r, cut, k, made.view),
               "finite activations are refused");
    }
    return made;
}

// --- single operations ---

void check_packing(QuantType type, std::int64_t n, std::int64_t k, Random& random) {
    Bytes raw = random_matrix(type, n, k, random);
    const Bytes packed = packed_matrix(type, raw, n, k);
    Floats a(size(k)), b(size(k));
    const std::int64_t row_bytes = static_cast<std::int64_t>(raw.size()) / n;
    for (std::int64_t column = 0; column < n; ++column) {
        dequantise_row(type, raw.data() + column * row_bytes, k, a.data());
        unpack_column(type, packed.data(), column, k, b.data());
        expect(same(a, b), std::string("unpacking loses bits of ") + facts(type).name);
    }
    for (const std::uint8_t high : {0x7c, 0xfc, 0x7e}) { // the last block's scale infinite, negative infinite, NaN
        Bytes broken = raw;
        const std::size_t at = broken.size() - size(facts(type).bytes) + (type == QuantType::Q6_K ? 208 : 0);
        broken[at] = 0;
        broken[at + 1] = high;
        Bytes out(packed.size());
        expect(!pack_group(type, broken.data(), n, k, (n - 1) / kColumns, out.data()), "a scale that is no number");
    }
}

void check_linear(QuantType type, std::int64_t n, std::int64_t k, Random& random) {
    const Bytes packed = packed_matrix(type, random_matrix(type, n, k, random), n, k);
    const std::int64_t groups = (n + kColumns - 1) / kColumns;
    const std::int64_t stride = groups * kColumns;
    const Floats x = random.numbers(kMaxRows * k);
    const Floats bias = random.numbers(stride);
    const Floats residual = random.numbers(kMaxRows * stride);
    const auto run = [&](const Ops& ops, const Activations& q, std::int64_t begin, std::int64_t end, Pool* pool) {
        Floats out(residual.begin(), residual.begin() + static_cast<std::ptrdiff_t>(end * stride));
        const LinearCall call{packed.data(), group_bytes(type, k), 0,      groups, begin, end,
                              bias.data(),   out.data(),           stride, true};
        if (pool == nullptr) {
            ops.linear[static_cast<int>(type)](call, q.view);
            return out;
        }
        pool->run([&](int worker) {
            pool->phase(groups, worker, [&](std::int64_t g, int) {
                LinearCall part = call;
                part.group_begin = g;
                part.group_end = g + 1;
                ops.linear[static_cast<int>(type)](part, q.view);
            });
        });
        return out;
    };
    const Ops& scalar = *usable_variants().back();
    const Floats truth = run(scalar, quantised(scalar, x, kMaxRows, k), 0, kMaxRows, nullptr);
    for (const Ops* ops : usable_variants()) {
        const std::string where = std::string(ops->name) + " " + facts(type).name;
        // The scalar twin has no tiles of rows to get wrong, and is slow under the sanitizers.
        const std::int64_t step = ops == &scalar ? 21 : 1;
        for (std::int64_t rows = 1; rows <= kMaxRows; rows += step) {
            const Activations q = quantised(*ops, x, rows, k); // exactly as many rows: one read too far is seen
            expect(same(run(*ops, q, 0, rows, nullptr).data(), truth.data(), rows * stride), "rows, " + where);
            const Floats last = run(*ops, q, rows - 1, rows, nullptr);
            const std::int64_t at = (rows - 1) * stride;
            expect(same(last.data() + at, truth.data() + at, stride), "a row, " + where);
        }
        Pool pool(3);
        expect(same(run(*ops, quantised(*ops, x, kMaxRows, k), 0, kMaxRows, &pool), truth), "threads, " + where);
    }
}

void check_elementwise(const Ops& ops, Random& random) {
    const Ops& scalar = *usable_variants().back();
    const std::string where = std::string(" of ") + ops.name;
    for (std::int64_t n = 1; n <= 75; ++n) {
        const Floats x = random.numbers(n), w = random.numbers(n);
        Floats a(size(n)), b(size(n));
        scalar.exponential(x.data(), n, a.data());
        ops.exponential(x.data(), n, b.data());
        expect(same(a, b), "exp" + where);
        std::int32_t best_a = -1, best_b = -1;
        expect(scalar.argmax(x.data(), n, &best_a) && ops.argmax(x.data(), n, &best_b) && best_a == best_b,
               "argmax" + where);
        for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
            Floats broken = x;
            broken[size(n / 2)] = bad;
            expect(!ops.argmax(broken.data(), n, &best_b), "argmax takes what is no number" + where);
        }
        if (n % kLanes != 0) {
            continue;
        }
        scalar.rmsnorm(x.data(), w.data(), n, 1e-6f, a.data());
        ops.rmsnorm(x.data(), w.data(), n, 1e-6f, b.data());
        expect(same(a, b), "norm" + where);
        scalar.swiglu(x.data(), w.data(), n, a.data());
        ops.swiglu(x.data(), w.data(), n, b.data());
        expect(same(a, b), "swiglu" + where);
        const Floats cosines = random.numbers(n / 2), sines = random.numbers(n / 2);
        for (const auto rotate : {&Ops::rope_halves, &Ops::rope_pairs}) {
            a = b = x;
            (scalar.*rotate)(a.data(), cosines.data(), sines.data(), static_cast<int>(n));
            (ops.*rotate)(b.data(), cosines.data(), sines.data(), static_cast<int>(n));
            expect(same(a, b), "rotation" + where);
        }
        Halves ha(size(n)), hb(size(n));
        expect(scalar.to_half(x.data(), n, ha.data()) && ops.to_half(x.data(), n, hb.data()) && same(ha, hb),
               "halves" + where);
        a[size(n - 1)] = 65520.0f;
        expect(!ops.to_half(a.data(), n, hb.data()), "a half that would be infinite" + where);
    }
    Activations q(1, 352);
    for (const std::int64_t at : {0, 31, 32, 351}) {
        Floats x = random.numbers(352);
        x[size(at)] = std::numeric_limits<float>::quiet_NaN();
        expect(!ops.quantise(x.data(), 0, 0, 352, q.view), "activations that are no number" + where);
        using Limits = std::numeric_limits<float>;
        const Floats extremes(352, at % 2 == 0 ? Limits::max() : Limits::denorm_min());
        expect(ops.quantise(extremes.data(), 0, 0, 352, q.view), "extreme activations" + where);
    }
}

Floats attend(const Ops& ops, const Floats& q, const Halves& keys, const Halves& values, int dim,
              std::int64_t positions, int count) {
    const std::int64_t stride = (positions + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
    Floats out(q.size()), scores(size(count * stride)), block(size(kKeyBlock * dim)), sums(size(count));
    Floats work(size(static_cast<std::int64_t>(count) * (dim + kQueryWork)));
    std::vector<AttentionQuery> queries;
    for (int i = 0; i < count; ++i) {
        const std::int64_t seen = positions - (count - 1 - i) > 0 ? positions - (count - 1 - i) : 1;
        queries.push_back({q.data() + i * dim, out.data() + i * dim, seen});
    }
    ops.attention({queries.data(), count, dim, keys.data(), values.data(), scores.data(), stride, block.data(),
                   work.data(), sums.data()});
    return out;
}

void check_attention(const Ops& ops, Random& random) {
    const Ops& scalar = *usable_variants().back();
    for (const int dim : {8, 104}) {
        for (const std::int64_t positions : {1, 7, 8, 64, 65, 129}) {
            for (const int count : {1, 2, 3, 4, 5, 6, 20}) {
                const Floats q = random.numbers(count * dim);
                const std::int64_t in_groups = (positions + kLanes - 1) / kLanes * kLanes;
                Halves keys(size(in_groups * dim)), values(size(positions * dim));
                const Floats source = random.numbers(in_groups * dim);
                expect(ops.to_half(source.data(), in_groups * dim, keys.data()), "halves of keys");
                expect(scalar.to_half(source.data(), positions * dim, values.data()), "halves of values");
                expect(same(attend(ops, q, keys, values, dim, positions, count),
                            attend(scalar, q, keys, values, dim, positions, count)),
                       std::string("attention of ") + ops.name);
            }
        }
    }
}

// --- whole models ---

struct TinyModel {
    TinyModel(QuantType type, QuantType embedding_type, std::int64_t context, Random& random) {
        const bool wide = has_sub_scales(type) || has_sub_scales(embedding_type);
        shape.layers = 2;
        shape.heads = 4;
        shape.kv_heads = 2;
        shape.head_dim = wide ? 64 : 24;
        shape.hidden = wide ? 256 : 96;
        shape.ffn = wide ? 256 : 160;
        shape.vocab = 77;
        shape.rms_eps = 1e-6f;
        shape.rope_base = 1e4;
        shape.rope_halves = wide;
        shape.rope_factors = wide ? Floats(32, 2.0f) : Floats{};
        shape.context = context;
        norm = random.numbers(shape.hidden);
        bytes.reserve(32);
        const auto keep = [&](Bytes made) { return bytes.emplace_back(std::move(made)).data(); };
        const auto linear = [&](std::int64_t n, std::int64_t k, bool biased) {
            const Bytes raw = random_matrix(type, n, k, random);
            Linear made{{type, n, k, keep(packed_matrix(type, raw, n, k))}, {}};
            if (biased) {
                made.bias = random.numbers((n + kColumns - 1) / kColumns * kColumns);
            }
            return made;
        };
        const int q_width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
        weights.embedding_type = embedding_type;
        if (embedding_type == QuantType::F32) {
            const Floats values = random.numbers(static_cast<std::int64_t>(shape.vocab) * shape.hidden);
            Bytes raw(values.size() * 4);
            std::memcpy(raw.data(), values.data(), raw.size());
            weights.embedding = keep(std::move(raw));
        } else {
            weights.embedding = keep(random_matrix(embedding_type, shape.vocab, shape.hidden, random));
        }
        for (int i = 0; i < shape.layers; ++i) {
            Layer layer;
            layer.attention_norm = layer.ffn_norm = norm.data();
            layer.q = linear(q_width, shape.hidden, true);
            layer.k = linear(kv_width, shape.hidden, true);
            layer.v = linear(kv_width, shape.hidden, false);
            layer.o = linear(shape.hidden, q_width, false);
            layer.gate = linear(shape.ffn, shape.hidden, false);
            layer.up = linear(shape.ffn, shape.hidden, false);
            layer.down = linear(shape.hidden, shape.ffn, false);
            weights.layers.push_back(std::move(layer));
        }
        weights.output_norm = norm.data();
        weights.head = linear(shape.vocab, shape.hidden, false);
    }
    ModelShape shape;
    Weights weights;
    Floats norm;
    std::vector<Bytes> bytes; // never grows past its reserve: weights point into it
};

std::vector<std::int32_t> some_tokens(int count, Random& random) {
    std::vector<std::int32_t> tokens(size(count));
    for (std::int32_t& token : tokens) {
        token = static_cast<std::int32_t>(random.bits() % 77);
    }
    return tokens;
}

// Logits after every token from position `from` on, in passes of `chunk` rows.
Floats logits_of(Model& model, const std::vector<std::int32_t>& tokens, std::int64_t from, int chunk) {
    const int vocab = model.shape().vocab;
    Floats all;
    for (std::int64_t at = from; at < static_cast<std::int64_t>(tokens.size()); at += chunk) {
        const std::int64_t left = static_cast<std::int64_t>(tokens.size()) - at;
        const int count = static_cast<int>(std::min<std::int64_t>(chunk, left));
        const std::vector<std::int32_t> part(tokens.begin() + at, tokens.begin() + at + count); // exactly the pass's
        std::vector<std::int32_t> ids(size(count));
        Floats logits(size(static_cast<std::int64_t>(count) * vocab));
        model.forward(part.data(), count, count, ids.data(), logits.data());
        all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
}

void refused(Failure::Kind kind, const std::string& what, const std::function<void()>& action) {
    try {
        action();
    } catch (const Failure& failure) {
        expect(failure.kind == kind && std::strlen(failure.what()) > 0, what + ": another error, " + failure.what());
        return;
    }
    expect(false, what + " is not refused");
}

void check_model(QuantType type, QuantType embedding_type, Random& random) {
    TinyModel tiny(type, embedding_type, 70, random);
    const std::vector<std::int32_t> tokens = some_tokens(70, random);
    Model first(tiny.shape, tiny.weights, 1, *usable_variants().back());
    const Floats truth = logits_of(first, tokens, 0, 64);
    const std::string where = facts(type).name;
    for (const Ops* ops : usable_variants()) {
        for (const int threads : {1, 2}) {
            if (ops == &first.ops() && threads == 1) {
                continue; // `first` itself
            }
            Model model(tiny.shape, tiny.weights, threads, *ops);
            expect(same(logits_of(model, tokens, 0, 64), truth), "wide passes of " + where + " on " + ops->name);
            model.truncate(33);
            const Floats rest = logits_of(model, tokens, 33, threads == 1 ? 3 : 17);
            expect(same(rest.data(), truth.data() + 33 * 77, 37 * 77), "after a cut, " + where + " on " + ops->name);
            Bytes copy(size(first.cache_bytes(41))); // exactly as large as is promised
            first.export_cache(41, copy.data());
            model.truncate(0);
            model.import_cache(41, copy.data());
            const Floats resumed = logits_of(model, tokens, 41, 16);
            expect(same(resumed.data(), truth.data() + 41 * 77, 29 * 77), "a cache put back, " + where);
        }
    }
}

void check_interrupts(Random& random) {
    TinyModel tiny(QuantType::Q8_0, QuantType::Q8_0, 64, random);
    const std::vector<std::int32_t> tokens = some_tokens(64, random);
    Model model(tiny.shape, tiny.weights, 2, *usable_variants().front());
    const Floats truth = logits_of(model, tokens, 0, 64);
    int cancelled = 0;
    for (int round = 0; round < 60; ++round) {
        model.truncate(0);
        std::atomic<bool> started{false};
        std::thread striker([&] {
            while (!started) {
            }
            for (std::atomic<int> spins{round * round * 8}; spins > 0; --spins) {
            }
            model.interrupt();
        });
        started = true;
        try {
            expect(same(logits_of(model, tokens, 0, 64), truth) && model.length() == 64, "a pass that ended");
        } catch (const Failure& failure) {
            expect(failure.kind == Failure::Kind::Cancelled && model.length() == 0, "a pass that was cut short");
            ++cancelled;
        }
        striker.join();
        refused(Failure::Kind::Cancelled, "a pass before resume", [&] { logits_of(model, tokens, 0, 64); });
        model.resume();
    }
    expect(cancelled > 0, "no pass was interrupted");
    model.truncate(0);
    expect(same(logits_of(model, tokens, 0, 64), truth), "the pass after all interrupts");
}

void check_refusals(Random& random) {
    const Ops& ops = *usable_variants().front();
    refused(Failure::Kind::Request, "an unknown variant", [] { find_variant("mmx"); });
    TinyModel tiny(QuantType::Q4_0, QuantType::Q4_0, 70, random);
    const std::vector<std::pair<const char*, std::function<void(ModelShape&)>>> shapes{
        {"no layers", [](ModelShape& s) { s.layers = 0; }},
        {"no vocabulary", [](ModelShape& s) { s.vocab = -1; }},
        {"no context", [](ModelShape& s) { s.context = 0; }},
        {"a head size", [](ModelShape& s) { s.head_dim = 20; }},
        {"a hidden size", [](ModelShape& s) { s.hidden = 100; }},
        {"a width inside", [](ModelShape& s) { s.ffn = 161; }},
        {"key heads", [](ModelShape& s) { s.kv_heads = 3; }},
    };
    for (const auto& [what, change] : shapes) {
        ModelShape shape = tiny.shape;
        change(shape);
        refused(Failure::Kind::Unsupported, what, [&] { Model(shape, tiny.weights, 1, ops); });
    }
    Model model(tiny.shape, tiny.weights, 2, ops);
    const std::vector<std::int32_t> tokens = some_tokens(65, random);
    std::vector<std::int32_t> ids(65);
    const auto pass = [&](int count, int heads) { model.forward(tokens.data(), count, heads, ids.data(), nullptr); };
    refused(Failure::Kind::Request, "no token", [&] { pass(0, 0); });
    refused(Failure::Kind::Request, "65 tokens", [&] { pass(65, 1); });
    refused(Failure::Kind::Request, "more heads than rows", [&] { pass(1, 2); });
    refused(Failure::Kind::Request, "a negative head", [&] { pass(1, -1); });
    for (const std::int32_t outside : {-1, 77, std::numeric_limits<std::int32_t>::max()}) {
        refused(Failure::Kind::Request, "a foreign id", [&] { model.forward(&outside, 1, 1, ids.data(), nullptr); });
    }
    pass(64, 0);
    refused(Failure::Kind::ContextOverflow, "a full context", [&] { pass(7, 1); });
    refused(Failure::Kind::Request, "a cut beyond the cache", [&] { model.truncate(65); });
    refused(Failure::Kind::Request, "a cut at -1", [&] { model.truncate(-1); });
    Bytes copy(size(model.cache_bytes(71)));
    refused(Failure::Kind::Request, "a copy of more than there is", [&] { model.export_cache(65, copy.data()); });
    refused(Failure::Kind::ContextOverflow, "a copy too long", [&] { model.import_cache(71, copy.data()); });
    expect(model.length() == 64, "a refused call leaves the cache alone");
    tiny.norm[3] = std::numeric_limits<float>::quiet_NaN();
    refused(Failure::Kind::Numerics, "a weight that is no number", [&] { pass(6, 1); });
    expect(model.length() == 64, "a failed pass leaves the cache alone");
}

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
