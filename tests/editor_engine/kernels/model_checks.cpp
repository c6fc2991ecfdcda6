// Whole models of two layers: the same logits however passes, threads and variants are chosen, cut short or refused.
#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "checks.h"
#include "failure.h"
#include "model.h"

namespace redraft {
namespace {

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

} // namespace

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

} // namespace redraft
