// See model.h. `walk` is the whole forward pass; every worker runs it, and the phases share out the work.
#include "model.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "failure.h"
#include "formats.h"
#include "model_pass.h"
#include "pack.h"
#include "rope_table.h"

namespace redraft {

namespace {

constexpr std::int64_t kRopeChunk = 256; // positions worked out at once
constexpr std::int64_t kFfnChunk = 1024; // inputs of one SwiGLU task, a multiple of kBlock
constexpr int kNoFault = std::numeric_limits<int>::max();

constexpr const char* kPlaces[kPlaceCount] = {"the input of attention", "the keys or values", "the output of attention",
                                   "the input of the feed-forward part", "the inside of the feed-forward part",
                                   "the input of the head", "the logits"};

std::size_t rows_of(std::int64_t n) { return static_cast<std::size_t>(kMaxRows * round_up(n, kColumns)); }

// What the kernels cannot run is refused before any memory is asked for.
ModelShape checked(ModelShape shape) {
    const int least = std::min({shape.layers, shape.hidden, shape.heads, shape.kv_heads, shape.head_dim, shape.ffn,
                                shape.vocab});
    if (least < 1 || shape.context < 1) {
        throw Failure(Failure::Kind::Unsupported, "A size of the model is zero or negative.");
    }
    const std::int64_t q_width = static_cast<std::int64_t>(shape.heads) * shape.head_dim;
    if (shape.head_dim % 8 != 0 || shape.hidden % kBlock != 0 || shape.ffn % kBlock != 0 || q_width % kBlock != 0) {
        throw Failure(Failure::Kind::Unsupported,
                      "The kernels take heads of a multiple of 8 and layers of a multiple of 32 inputs; this model has "
                      "heads of " + std::to_string(shape.head_dim) + ", a hidden size of " +
                          std::to_string(shape.hidden) + " and a feed-forward size of " + std::to_string(shape.ffn) +
                          ".");
    }
    if (shape.heads % shape.kv_heads != 0) {
        throw Failure(Failure::Kind::Unsupported, "The query heads are not a multiple of the key/value heads.");
    }
    return shape;
}

} // namespace

Model::Model(ModelShape shape, Weights weights, int threads, const Ops& ops)
    : shape_(checked(std::move(shape))), weights_(std::move(weights)), ops_(ops), pool_(threads), fault_(kNoFault),
      cosines_(static_cast<std::size_t>(round_up(shape_.context, kRopeChunk) * (shape_.head_dim / 2)) * 4, "positions"),
      sines_(static_cast<std::size_t>(round_up(shape_.context, kRopeChunk) * (shape_.head_dim / 2)) * 4, "positions"),
      cache_(shape_.layers, shape_.kv_heads, shape_.head_dim, shape_.context),
      logits_(rows_of(shape_.vocab) * 4, "logits") {
    frequencies_ = rope_frequencies(shape_.head_dim, shape_.rope_base,
                                    shape_.rope_factors.empty() ? nullptr : shape_.rope_factors.data());
    const std::int64_t q_width = static_cast<std::int64_t>(shape_.heads) * shape_.head_dim;
    const std::int64_t kv_width = static_cast<std::int64_t>(shape_.kv_heads) * shape_.head_dim;
    x_.resize(rows_of(shape_.hidden));
    normed_.resize(rows_of(shape_.hidden));
    q_.resize(rows_of(q_width));
    k_.resize(rows_of(kv_width));
    v_.resize(rows_of(kv_width));
    attended_.resize(rows_of(q_width));
    gate_.resize(rows_of(shape_.ffn));
    up_.resize(rows_of(shape_.ffn));
    const std::size_t widest = rows_of(std::max<std::int64_t>({shape_.hidden, q_width, shape_.ffn}));
    quants_.resize(widest);
    quant_scale_.resize(widest / kBlock);
    quant_sum_.resize(widest / kBlock);
    quant_sum32_.resize(widest / kBlock);
    quant_sum16_.resize(widest / 16);
    for (int worker = 0; worker < threads; ++worker) {
        scratch_.push_back(std::make_unique<AttentionScratch>(shape_.head_dim, shape_.context));
    }
}

Model::~Model() = default;

void Model::check_pass(const std::int32_t* tokens, int count, int head_rows) const {
    if (interrupted_.load()) {
        throw Failure(Failure::Kind::Cancelled, "The request was cancelled.");
    }
    if (count < 1 || count > kMaxRows || head_rows < 0 || head_rows > count) {
        throw Failure(Failure::Kind::Request, "A pass takes 1 to " + std::to_string(kMaxRows) +
                                                  " tokens and at most as many head rows.");
    }
    if (length_ + count > shape_.context) {
        throw Failure(Failure::Kind::ContextOverflow,
                      "The context holds " + std::to_string(shape_.context) + " tokens; " + std::to_string(length_) +
                          " are in it and " + std::to_string(count) + " more do not fit.");
    }
    for (int i = 0; i < count; ++i) {
        if (tokens[i] < 0 || tokens[i] >= shape_.vocab) {
            throw Failure(Failure::Kind::Request, "The token " + std::to_string(tokens[i]) + " is outside the vocabulary of " +
                                                      std::to_string(shape_.vocab) + ".");
        }
    }
}

void Model::fill_rope(std::int64_t end) {
    while (rope_filled_ < end) {
        const std::int64_t half = shape_.head_dim / 2;
        rope_table(frequencies_, rope_filled_, rope_filled_ + kRopeChunk, cosines_.as<float>() + rope_filled_ * half,
                   sines_.as<float>() + rope_filled_ * half);
        rope_filled_ += kRopeChunk;
    }
}

void Model::forward(const std::int32_t* tokens, int count, int head_rows, std::int32_t* ids, float* logits) {
    const std::lock_guard<std::mutex> lock(pass_mutex_);
    check_pass(tokens, count, head_rows);
    fill_rope(length_ + count);
    const auto view = [&](std::int64_t k) {
        return QuantRows{quants_.data(), quant_scale_.data(), quant_sum_.data(), quant_sum32_.data(),
                         quant_sum16_.data(), k};
    };
    const Pass pass{tokens, count, length_, head_rows, ids, view(shape_.hidden),
                    view(static_cast<std::int64_t>(shape_.heads) * shape_.head_dim), view(shape_.ffn)};
    fault_ = kNoFault;
    pool_.run([&](int worker) { walk(pass, worker); });
    if (pool_.stop_requested()) {
        throw Failure(Failure::Kind::Cancelled, "The request was cancelled.");
    }
    if (const int fault = fault_; fault != kNoFault) {
        const int layer = fault / kPlaceCount;
        const std::string where = layer == shape_.layers ? "after the last layer" : "layer " + std::to_string(layer);
        throw Failure(Failure::Kind::Numerics,
                      std::string("NaN or infinity came up in ") + kPlaces[fault % kPlaceCount] + ", " + where +
                          "; the weights may be damaged: `redraft models verify` checks them.");
    }
    if (logits != nullptr) {
        const std::int64_t stride = round_up(shape_.vocab, kColumns);
        for (int r = 0; r < head_rows; ++r) {
            std::memcpy(logits + static_cast<std::int64_t>(r) * shape_.vocab, logits_.as<float>() + r * stride,
                        static_cast<std::size_t>(shape_.vocab) * 4);
        }
    }
    length_ += count;
}

void Model::walk(const Pass& pass, int worker) {
    if (!embed(pass, worker)) {
        return;
    }
    for (int layer = 0; layer < shape_.layers; ++layer) {
        if (!attention_half(pass, worker, layer) || !ffn_half(pass, worker, layer)) {
            return;
        }
    }
    if (pass.head_rows > 0) {
        choose(pass, worker);
    }
}

bool Model::embed(const Pass& pass, int worker) {
    const std::int64_t n = shape_.hidden;
    const TypeFacts& fact = facts(weights_.embedding_type);
    const std::int64_t row_bytes = n / fact.inputs * fact.bytes;
    return pool_.phase(pass.rows, worker, [&](std::int64_t r, int) {
        dequantise_row(weights_.embedding_type, weights_.embedding + pass.tokens[r] * row_bytes, n, x_.data() + r * n);
    });
}

bool Model::ffn_half(const Pass& pass, int worker, int index) {
    const Layer& layer = weights_.layers[static_cast<std::size_t>(index)];
    const std::int64_t n = shape_.hidden;
    const std::int64_t f = shape_.ffn;
    const Target wide[] = {{&layer.gate, gate_.data(), f, false}, {&layer.up, up_.data(), f, false}};
    const Target out[] = {{&layer.down, x_.data(), n, true}};
    const std::int64_t chunks = (f + kFfnChunk - 1) / kFfnChunk;
    return pool_.phase(pass.rows, worker,
                       [&](std::int64_t r, int) {
                           ops_.rmsnorm(x_.data() + r * n, layer.ffn_norm, n, shape_.rms_eps, normed_.data() + r * n);
                           if (!ops_.quantise(normed_.data() + r * n, r, 0, n, pass.hidden)) {
                               note_fault(index, kFfnInput);
                           }
                       }) &&
           linears(pass, worker, wide, 2, pass.hidden) &&
           pool_.phase(pass.rows * chunks, worker,
                       [&](std::int64_t task, int) {
                           const std::int64_t r = task / chunks;
                           const std::int64_t begin = task % chunks * kFfnChunk;
                           const std::int64_t end = std::min(f, begin + kFfnChunk);
                           float* gate = gate_.data() + r * f;
                           ops_.swiglu(gate + begin, up_.data() + r * f + begin, end - begin, gate + begin);
                           if (!ops_.quantise(gate, r, begin, end, pass.ffn)) {
                               note_fault(index, kFfnInside);
                           }
                       }) &&
           linears(pass, worker, out, 1, pass.ffn);
}

bool Model::choose(const Pass& pass, int worker) {
    const std::int64_t n = shape_.hidden;
    const std::int64_t stride = round_up(shape_.vocab, kColumns);
    const std::int64_t first = pass.rows - pass.head_rows;
    const Target head[] = {{&weights_.head, logits_.as<float>(), stride, false}};
    Pass top = pass; // the head's rows alone, numbered from 0
    top.rows = pass.head_rows;
    return pool_.phase(top.rows, worker,
                       [&](std::int64_t r, int) {
                           float* normed = normed_.data() + r * n;
                           ops_.rmsnorm(x_.data() + (first + r) * n, weights_.output_norm, n, shape_.rms_eps, normed);
                           if (!ops_.quantise(normed, r, 0, n, top.hidden)) {
                               note_fault(shape_.layers, kHeadInput);
                           }
                       }) &&
           linears(top, worker, head, 1, top.hidden) && pool_.phase(top.rows, worker, [&](std::int64_t r, int) {
               if (!ops_.argmax(logits_.as<float>() + r * stride, shape_.vocab, pass.ids + r)) {
                   note_fault(shape_.layers, kLogits);
               }
           });
}

// Several linears over the same activations, as one phase. A task is a few groups of columns for all rows.
bool Model::linears(const Pass& pass, int worker, const Target* targets, int count, const QuantRows& x) {
    std::int64_t groups = 0;
    for (int t = 0; t < count; ++t) {
        groups += (targets[t].linear->weight.n + kColumns - 1) / kColumns;
    }
    // Small enough to share evenly and to stop within milliseconds, large enough to keep the counter quiet.
    const std::int64_t most = pass.rows > kMaxRows / 8 ? 8 : 32;
    const std::int64_t chunk = std::clamp<std::int64_t>(groups / (pool_.threads() * 8), 1, most);
    std::int64_t tasks = 0;
    for (int t = 0; t < count; ++t) {
        tasks += ((targets[t].linear->weight.n + kColumns - 1) / kColumns + chunk - 1) / chunk;
    }
    return pool_.phase(tasks, worker, [&](std::int64_t task, int) {
        for (const Target* target = targets;; ++target) {
            const Packed& weight = target->linear->weight;
            const std::int64_t own = (weight.n + kColumns - 1) / kColumns;
            const std::int64_t own_tasks = (own + chunk - 1) / chunk;
            if (task >= own_tasks) {
                task -= own_tasks;
                continue;
            }
            const std::vector<float>& bias = target->linear->bias;
            const LinearCall call{weight.data, group_bytes(weight.type, weight.k), task * chunk,
                                  std::min(own, (task + 1) * chunk), 0, pass.rows,
                                  bias.empty() ? nullptr : bias.data(), target->out, target->stride, target->add};
            ops_.linear[static_cast<int>(weight.type)](call, x);
            return;
        }
    });
}

// Keeps the earliest fault of the pass, whichever worker meets one first.
void Model::note_fault(int layer, int place) {
    const int fault = layer * kPlaceCount + place;
    int known = fault_.load();
    while (fault < known && !fault_.compare_exchange_weak(known, fault)) {
    }
}

void Model::check_length(const std::string& verb, std::int64_t length) const {
    if (length < 0 || length > length_) {
        throw Failure(Failure::Kind::Request, "A cache of " + std::to_string(length_) + " tokens cannot be " + verb + " to " +
                                                  std::to_string(length) + ".");
    }
}

void Model::truncate(std::int64_t length) {
    const std::lock_guard<std::mutex> lock(pass_mutex_);
    check_length("cut", length);
    length_ = length;
}

void Model::export_cache(std::int64_t length, std::uint8_t* out) {
    const std::lock_guard<std::mutex> lock(pass_mutex_);
    check_length("copied up", length);
    cache_.save(length, out);
}

void Model::import_cache(std::int64_t length, const std::uint8_t* from) {
    const std::lock_guard<std::mutex> lock(pass_mutex_);
    if (length > shape_.context) {
        throw Failure(Failure::Kind::ContextOverflow, "The context holds " + std::to_string(shape_.context) +
                                                          " tokens; the copy has " + std::to_string(length) + ".");
    }
    cache_.restore(length, from);
    length_ = length;
}

void Model::interrupt() {
    interrupted_ = true;
    pool_.request_stop();
}

void Model::resume() {
    const std::lock_guard<std::mutex> lock(pass_mutex_); // a pass being stopped must first have stopped everywhere
    pool_.clear_stop();
    interrupted_ = false;
}

} // namespace redraft
