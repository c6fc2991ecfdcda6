// The attention half of a layer: projections, rotation, the cache, and how the queries are shared out.
//
// A task is one key/value head and some of the queries that read it: enough of them that widening a block of keys is
// paid for, few enough that their scores stay in the second cache and that a stop is seen within milliseconds.
#include <algorithm>

#include "model_pass.h"

namespace redraft {

namespace {

constexpr std::int64_t kMostQueries = 60; // of a task
constexpr std::int64_t kScoreBytes = 1 << 20;
constexpr std::int64_t kLeastQueries = 24; // of a task cut for its scores, however long the context
constexpr std::int64_t kScorePad = 16;     // floats; rows of scores must not all begin at the same place of a page

std::size_t bytes_of(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }

std::int64_t score_stride(std::int64_t keys) { return round_up(keys, kKeyBlock) + kScorePad; }

std::int64_t most_queries(std::int64_t keys) {
    const std::int64_t fitting = kScoreBytes / static_cast<std::int64_t>(bytes_of(score_stride(keys)));
    return std::clamp(fitting / kQueryTile * kQueryTile, kLeastQueries, kMostQueries);
}

// Queries of a task: whole tiles when there are many, else a task for every worker.
std::int64_t queries_per_task(std::int64_t queries, std::int64_t kv_heads, std::int64_t keys, std::int64_t threads) {
    const std::int64_t share = (threads + kv_heads - 1) / kv_heads; // of a head
    return std::min(most_queries(keys), (queries + share - 1) / share);
}

std::int64_t most_scores(std::int64_t context) {
    std::int64_t most = 0;
    for (std::int64_t keys = kKeyBlock; keys < context + kKeyBlock; keys += kKeyBlock) {
        most = std::max(most, most_queries(keys) * score_stride(keys));
    }
    return most;
}

} // namespace

AttentionScratch::AttentionScratch(int head_dim, std::int64_t context)
    : scores(bytes_of(most_scores(context)), "attention scores"),
      block(bytes_of(kKeyBlock * static_cast<std::int64_t>(head_dim)), "a block of keys"),
      work(bytes_of(kMostQueries * (head_dim + kQueryWork)), "queries"), sums(bytes_of(kMostQueries), "sums"),
      key(static_cast<std::size_t>(head_dim) * sizeof(std::uint16_t), "a key") {}

bool Model::attention_half(const Pass& pass, int worker, int index) {
    const Layer& layer = weights_.layers[static_cast<std::size_t>(index)];
    const std::int64_t n = shape_.hidden;
    const std::int64_t q_width = pass.attended.k;
    const std::int64_t kv_width = static_cast<std::int64_t>(shape_.kv_heads) * shape_.head_dim;
    const Target qkv[] = {{&layer.q, q_.data(), q_width, false},
                          {&layer.k, k_.data(), kv_width, false},
                          {&layer.v, v_.data(), kv_width, false}};
    const Target out[] = {{&layer.o, x_.data(), n, true}};
    const std::int64_t queries = pass.rows * (shape_.heads / shape_.kv_heads); // per key/value head
    const std::int64_t per_task = queries_per_task(queries, shape_.kv_heads, pass.start + pass.rows,
                                                   pool_.threads());
    const std::int64_t tasks = (queries + per_task - 1) / per_task * shape_.kv_heads;
    const std::int64_t first_group = pass.start / kLanes;
    const std::int64_t groups = (pass.start + pass.rows - 1) / kLanes - first_group + 1;
    return pool_.phase(pass.rows, worker,
                       [&](std::int64_t r, int) {
                           ops_.rmsnorm(x_.data() + r * n, layer.attention_norm, n, shape_.rms_eps,
                                        normed_.data() + r * n);
                           if (!ops_.quantise(normed_.data() + r * n, r, 0, n, pass.hidden)) {
                               note_fault(index, kAttentionInput);
                           }
                       }) &&
           linears(pass, worker, qkv, 3, pass.hidden) &&
           pool_.phase(groups, worker,
                       [&](std::int64_t group, int w) { // whole groups: their keys share cache lines
                           const std::int64_t first = (first_group + group) * kLanes;
                           rotate_and_store(pass, index, std::max(first, pass.start),
                                            std::min(first + kLanes, pass.start + pass.rows), w);
                       }) &&
           pool_.phase(tasks, worker,
                       [&](std::int64_t task, int w) { attend(pass, index, task, per_task, w); }) &&
           pool_.phase(pass.rows, worker,
                       [&](std::int64_t r, int) {
                           if (!ops_.quantise(attended_.data() + r * q_width, r, 0, q_width, pass.attended)) {
                               note_fault(index, kAttentionOutput);
                           }
                       }) &&
           linears(pass, worker, out, 1, pass.attended);
}

// The positions [begin, end).
void Model::rotate_and_store(const Pass& pass, int layer, std::int64_t begin, std::int64_t end, int worker) {
    const int dim = shape_.head_dim;
    const auto rotate = shape_.rope_halves ? ops_.rope_halves : ops_.rope_pairs;
    std::uint16_t* halves = scratch_[static_cast<std::size_t>(worker)]->key.as<std::uint16_t>();
    bool fine = true;
    for (std::int64_t position = begin; position < end; ++position) {
        const std::int64_t row = position - pass.start;
        const float* cosines = cosines_.as<float>() + position * (dim / 2);
        const float* sines = sines_.as<float>() + position * (dim / 2);
        float* q = q_.data() + row * shape_.heads * dim;
        for (int h = 0; h < shape_.heads; ++h) {
            rotate(q + h * dim, cosines, sines, dim);
        }
        for (int h = 0; h < shape_.kv_heads; ++h) {
            float* k = k_.data() + (row * shape_.kv_heads + h) * dim;
            rotate(k, cosines, sines, dim);
            fine = ops_.to_half(k, dim, halves) && fine;
            std::uint16_t* key = cache_.key_at(layer, h, position);
            for (int d = 0; d < dim; ++d) {
                key[d * kLanes] = halves[d];
            }
            const float* v = v_.data() + (row * shape_.kv_heads + h) * dim;
            fine = ops_.to_half(v, dim, cache_.value_at(layer, h, position)) && fine;
        }
    }
    if (!fine) {
        note_fault(layer, kKeysOrValues);
    }
}

// One key/value head and up to `per_task` of the queries that read it, rows in order.
void Model::attend(const Pass& pass, int layer, std::int64_t task, std::int64_t per_task, int worker) {
    const int dim = shape_.head_dim;
    const std::int64_t grouped = shape_.heads / shape_.kv_heads;
    const std::int64_t queries = pass.rows * grouped;
    const std::int64_t per_head = (queries + per_task - 1) / per_task;
    const int head = static_cast<int>(task / per_head);
    const std::int64_t begin = task % per_head * per_task;
    const std::int64_t end = std::min(queries, begin + per_task);
    AttentionQuery list[kMostQueries];
    for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = i / grouped;
        const std::int64_t at = (row * shape_.heads + head * grouped + i % grouped) * dim;
        list[i - begin] = {q_.data() + at, attended_.data() + at, pass.start + row + 1};
    }
    const AttentionScratch& scratch = *scratch_[static_cast<std::size_t>(worker)];
    ops_.attention({list, static_cast<int>(end - begin), dim, cache_.keys(layer, head), cache_.values(layer, head),
                    scratch.scores.as<float>(), score_stride(pass.start + pass.rows), scratch.block.as<float>(),
                    scratch.work.as<float>(), scratch.sums.as<float>()});
}

} // namespace redraft
