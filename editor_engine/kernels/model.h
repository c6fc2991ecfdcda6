// A llama-family model: tensors, KV cache and one pass over up to 64 tokens.
//
// Knows nothing of Python, files, drafting or text. Invariants: the greedy id and the logits after a token depend on
// the tokens up to it alone, not on the rows of a pass, the threads or the variant; a pass that fails or is stopped
// leaves the cache as it was. Tensors are borrowed: their memory must outlive the model.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "contract.h"
#include "kv_cache.h"
#include "lazy_pages.h"
#include "pool.h"

namespace redraft {

struct ModelShape {
    int layers = 0;
    int hidden = 0;
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    int ffn = 0;
    int vocab = 0;
    float rms_eps = 0.0f;
    double rope_base = 0.0;
    bool rope_halves = true;         // rotate (i, i + head_dim/2); false: (2i, 2i+1)
    std::vector<float> rope_factors; // head_dim/2 divisors of the frequencies, or empty
    std::int64_t context = 0;        // most tokens in the cache
};

struct Packed {
    QuantType type = QuantType::Q4_0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    const std::uint8_t* data = nullptr;
};

struct Linear {
    Packed weight;
    std::vector<float> bias; // empty, or padded with zeros to whole groups of columns
};

struct Layer {
    const float* attention_norm = nullptr;
    Linear q, k, v, o;
    const float* ffn_norm = nullptr;
    Linear gate, up, down;
};

struct Weights {
    QuantType embedding_type = QuantType::F32;
    const std::uint8_t* embedding = nullptr; // vocab rows of hidden inputs, GGUF bytes
    std::vector<Layer> layers;
    const float* output_norm = nullptr;
    Linear head;
};

struct AttentionScratch; // model_pass.h

class Model {
  public:
    // Throws Failure(Unsupported) for sizes the kernels do not take, Failure(OutOfMemory).
    Model(ModelShape shape, Weights weights, int threads, const Ops& ops);
    ~Model();

    // Appends `count` tokens (1 to kMaxRows). `ids` gets the greedy id after each of the last `head_rows` tokens, and
    // `logits`, unless null, their `vocab` logits each. Throws Failure.
    void forward(const std::int32_t* tokens, int count, int head_rows, std::int32_t* ids, float* logits);

    void truncate(std::int64_t length); // throws Failure(Request) when longer than the cache

    // A copy of the cache's first `length` tokens, `cache_bytes(length)` bytes, and back: the cache is then those
    // tokens. Throws Failure(Request) for more tokens than there are, Failure(ContextOverflow) for more than fit.
    std::int64_t cache_bytes(std::int64_t length) const { return cache_.bytes(length); }
    void export_cache(std::int64_t length, std::uint8_t* out);
    void import_cache(std::int64_t length, const std::uint8_t* from);

    void interrupt();                   // from any thread
    void resume();                      // waits for a pass that is being stopped
    std::int64_t length() const { return length_.load(); }
    const ModelShape& shape() const { return shape_; }
    const Ops& ops() const { return ops_; }

  private:
    struct Pass;
    struct Target; // a linear and where its outputs go

    void check_pass(const std::int32_t* tokens, int count, int head_rows) const;
    void fill_rope(std::int64_t end);
    bool linears(const Pass& pass, int worker, const Target* targets, int count, const QuantRows& x);
    bool embed(const Pass& pass, int worker);
    bool attention_half(const Pass& pass, int worker, int layer);
    bool ffn_half(const Pass& pass, int worker, int layer);
    bool choose(const Pass& pass, int worker);
    void rotate_and_store(const Pass& pass, int layer, std::int64_t begin, std::int64_t end, int worker);
    void attend(const Pass& pass, int layer, std::int64_t task, std::int64_t per_task, int worker);
    void walk(const Pass& pass, int worker);
    void note_fault(int layer, int place);
    void check_length(const std::string& verb, std::int64_t length) const;

    const ModelShape shape_;
    const Weights weights_;
    const Ops& ops_;
    Pool pool_;
    std::mutex pass_mutex_;
    std::atomic<bool> interrupted_{false};
    std::atomic<std::int64_t> length_{0};
    std::atomic<int> fault_;

    std::vector<double> frequencies_;
    std::int64_t rope_filled_ = 0;
    LazyPages cosines_, sines_;
    KvCache cache_;

    // Activations of one pass, kMaxRows rows each.
    std::vector<float> x_, normed_, q_, k_, v_, attended_, gate_, up_;
    std::vector<std::int8_t> quants_;
    std::vector<float> quant_scale_, quant_sum_;
    std::vector<std::int32_t> quant_sum32_, quant_sum16_;
    LazyPages logits_;

    std::vector<std::unique_ptr<AttentionScratch>> scratch_; // of each worker
};

} // namespace redraft
