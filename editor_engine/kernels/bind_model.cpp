// Python face of Model: tensors by their GGUF names in, greedy ids out.
//
// Invariants: every tensor's shape and bytes are checked against the model's sizes before the model exists; arrays are
// borrowed and kept alive, never copied; the interpreter lock is free during a pass.
#include <memory>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "dispatch.h"
#include "model.h"

namespace redraft {

namespace {

using Bytes = In<std::uint8_t, 1>;

// Looks tensors up in the dictionary Python passed and checks them.
class Shelf {
  public:
    explicit Shelf(nb::dict tensors) : tensors_(std::move(tensors)) {}

    const float* vector(const std::string& name, std::int64_t n) const {
        const auto array = nb::cast<In<float, 1>>(find(name));
        require(static_cast<std::int64_t>(array.size()) == n, name + " has the wrong size");
        return array.data();
    }

    std::pair<QuantType, const std::uint8_t*> raw(const std::string& name, std::int64_t n, std::int64_t k) const {
        const auto [type_name, data] = nb::cast<std::pair<std::string, Bytes>>(find(name));
        const QuantType type = type_named(type_name);
        check_size(type, n, k);
        require(static_cast<std::int64_t>(data.size()) == raw_bytes(type, n, k), name + " has the wrong size");
        return {type, data.data()};
    }

    Linear linear(const std::string& stem, std::int64_t n, std::int64_t k) const {
        const std::string name = stem + ".weight";
        const auto [type_name, data] = nb::cast<std::pair<std::string, Bytes>>(find(name));
        const QuantType type = packable_type(type_name);
        check_size(type, n, k);
        require(static_cast<std::int64_t>(data.size()) == packed_bytes(type, n, k), name + " has the wrong size");
        Linear made{{type, n, k, data.data()}, {}};
        const std::string bias = stem + ".bias";
        if (tensors_.contains(bias.c_str())) {
            const float* values = vector(bias, n);
            made.bias.assign(static_cast<std::size_t>((n + kColumns - 1) / kColumns * kColumns), 0.0f);
            std::copy(values, values + n, made.bias.begin());
        }
        return made;
    }

  private:
    nb::object find(const std::string& name) const {
        require(tensors_.contains(name.c_str()), "the model lacks the tensor " + name);
        return tensors_[name.c_str()];
    }
    nb::dict tensors_;
};

Weights gather(const ModelShape& shape, const nb::dict& tensors) {
    const Shelf shelf(tensors);
    const std::int64_t n = shape.hidden;
    const std::int64_t q_width = static_cast<std::int64_t>(shape.heads) * shape.head_dim;
    const std::int64_t kv_width = static_cast<std::int64_t>(shape.kv_heads) * shape.head_dim;
    Weights weights;
    std::tie(weights.embedding_type, weights.embedding) = shelf.raw("token_embd.weight", shape.vocab, n);
    for (int i = 0; i < shape.layers; ++i) {
        const std::string at = "blk." + std::to_string(i) + ".";
        Layer layer;
        layer.attention_norm = shelf.vector(at + "attn_norm.weight", n);
        layer.q = shelf.linear(at + "attn_q", q_width, n);
        layer.k = shelf.linear(at + "attn_k", kv_width, n);
        layer.v = shelf.linear(at + "attn_v", kv_width, n);
        layer.o = shelf.linear(at + "attn_output", n, q_width);
        layer.ffn_norm = shelf.vector(at + "ffn_norm.weight", n);
        layer.gate = shelf.linear(at + "ffn_gate", shape.ffn, n);
        layer.up = shelf.linear(at + "ffn_up", shape.ffn, n);
        layer.down = shelf.linear(at + "ffn_down", n, shape.ffn);
        weights.layers.push_back(std::move(layer));
    }
    weights.output_norm = shelf.vector("output_norm.weight", n);
    weights.head = shelf.linear("output", shape.vocab, n);
    return weights;
}

class BoundModel {
  public:
    BoundModel(ModelShape shape, nb::dict tensors, int threads, const std::string& isa) : tensors_(std::move(tensors)) {
        check_threads(threads);
        Weights weights = gather(shape, tensors_);
        model_ = std::make_unique<Model>(std::move(shape), std::move(weights), threads, find_variant(isa));
    }

    std::vector<std::int32_t> forward(const std::vector<std::int32_t>& tokens, int head_rows) {
        return run(tokens, head_rows, nullptr);
    }

    std::pair<std::vector<std::int32_t>, Out<float>> forward_logits(const std::vector<std::int32_t>& tokens,
                                                                    int head_rows) {
        Out<float> logits = new_array<float>({static_cast<std::size_t>(head_rows < 0 ? 0 : head_rows),
                                              static_cast<std::size_t>(model_->shape().vocab)});
        return {run(tokens, head_rows, logits.data()), logits};
    }

    Model& model() const { return *model_; }

    std::int64_t cache_bytes(std::int64_t length) const {
        check_tokens(length);
        return model_->cache_bytes(length);
    }

    void export_cache(std::int64_t length, const nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig>& out) {
        check_copy(length, out.size());
        const nb::gil_scoped_release released;
        model_->export_cache(length, out.data());
    }

    void import_cache(std::int64_t length, const Bytes& from) {
        check_copy(length, from.size());
        const nb::gil_scoped_release released;
        model_->import_cache(length, from.data());
    }

  private:
    static void check_tokens(std::int64_t length) {
        if (length < 0 || length >= (1LL << 31)) {
            refuse(Failure::Kind::Request, "A copy of the cache cannot have " + std::to_string(length) + " tokens.");
        }
    }

    void check_copy(std::int64_t length, std::size_t bytes) const {
        check_tokens(length);
        if (static_cast<std::int64_t>(bytes) != model_->cache_bytes(length)) {
            refuse(Failure::Kind::Request, "A copy of " + std::to_string(length) + " tokens of this model's cache has " +
                                               std::to_string(model_->cache_bytes(length)) + " bytes, not " +
                                               std::to_string(bytes) + ".");
        }
    }

    std::vector<std::int32_t> run(const std::vector<std::int32_t>& tokens, int head_rows, float* logits) {
        std::vector<std::int32_t> ids(static_cast<std::size_t>(head_rows < 0 ? 0 : head_rows));
        const nb::gil_scoped_release released;
        model_->forward(tokens.data(), static_cast<int>(tokens.size()), head_rows, ids.data(), logits);
        return ids;
    }

    nb::dict tensors_; // keeps the borrowed memory alive
    std::unique_ptr<Model> model_;
};

void build(BoundModel* self, int layers, int hidden, int heads, int kv_heads, int head_dim, int ffn, int vocab,
           float rms_eps, double rope_base, bool rope_halves, const std::optional<std::vector<float>>& rope_factors,
           std::int64_t context, nb::dict tensors, int threads, const std::string& isa) {
    ModelShape shape{layers, hidden, heads, kv_heads, head_dim, ffn, vocab, rms_eps, rope_base, rope_halves,
                     rope_factors.value_or(std::vector<float>{}), context};
    if (!shape.rope_factors.empty() && static_cast<int>(shape.rope_factors.size()) != head_dim / 2) {
        refuse(Failure::Kind::ModelFile, "rope_freqs.weight has the wrong size");
    }
    new (self) BoundModel(std::move(shape), std::move(tensors), threads, isa);
}

} // namespace

void bind_model(nb::module_& module) {
    nb::class_<BoundModel>(module, "Model")
        .def("__init__", &build, nb::kw_only(), nb::arg("layers"), nb::arg("hidden"), nb::arg("heads"),
             nb::arg("kv_heads"), nb::arg("head_dim"), nb::arg("ffn"), nb::arg("vocab"), nb::arg("rms_eps"),
             nb::arg("rope_base"), nb::arg("rope_halves"), nb::arg("rope_factors").none(), nb::arg("context"),
             nb::arg("tensors"), nb::arg("threads"), nb::arg("isa"))
        .def("forward", &BoundModel::forward, nb::arg("tokens"), nb::arg("head_rows"))
        .def("forward_logits", &BoundModel::forward_logits, nb::arg("tokens"), nb::arg("head_rows"))
        .def("truncate", [](BoundModel& self, std::int64_t length) { self.model().truncate(length); },
             nb::arg("length"), nb::call_guard<nb::gil_scoped_release>())
        .def("cache_bytes", &BoundModel::cache_bytes, nb::arg("length"))
        .def("export_cache", &BoundModel::export_cache, nb::arg("length"), nb::arg("out"))
        .def("import_cache", &BoundModel::import_cache, nb::arg("length"), nb::arg("source"))
        .def("interrupt", [](BoundModel& self) { self.model().interrupt(); })
        .def("resume", [](BoundModel& self) { self.model().resume(); }, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("length", [](const BoundModel& self) { return self.model().length(); })
        .def_prop_ro("isa", [](const BoundModel& self) { return self.model().ops().name; });
}

} // namespace redraft
