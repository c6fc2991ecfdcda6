// Attention of a few queries over one key/value head, in tiles that stay in registers; every vector variant uses it.
//
//   scores   6 queries x 2 vectors of keys: lane l of each sum is a chain over the dimensions l, l+8, ..; the eight
//            chains run one after another and are added by the contract's tree, without a shuffle
//   values   6 queries x 2 vectors of dimensions, over the keys of a block in order
//
// Keys and values are widened to fp32 once per block of 64 keys and used by every query of the call; terms are made
// from the scores block by block, just before they are used. `Floats` is a variant's vectors. Everything has internal
// linkage, so that the linker never picks a vector copy for the baseline. Invariant: bit for bit scalar/attention.cpp.
#pragma once

#include <cstdint>

#include "contract.h"

namespace redraft {

namespace {

constexpr int kTileVectors = 2;

constexpr std::int64_t lesser(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// Up to kQueryTile queries of a call that are worked on together.
struct Tile {
    const AttentionQuery* queries;
    int first; // index of the first in the call
    int count;
    std::int64_t most; // keys the one that sees most of them sees
};

// The next block of keys or values on its way to the second cache, a few lines at a time, while this one is worked on:
// the processor's own prefetching stops where the reading of a block does.
class Ahead {
  public:
    // `shares`: about how often fetch() will be called
    Ahead(const std::uint16_t* begin, std::int64_t halves, std::int64_t shares)
        : at_(begin), end_(begin + halves), step_(rounded_up(halves / shares + 1, kLine)) {}
    void fetch() {
        const std::uint16_t* stop = end_ - at_ > step_ ? at_ + step_ : end_;
        for (; at_ < stop; at_ += kLine) {
            __builtin_prefetch(at_, 0, 2);
        }
    }

  private:
    static constexpr std::int64_t kLine = 32; // halves
    const std::uint16_t* at_;
    const std::uint16_t* end_;
    std::int64_t step_;
};

// What the queries of a call keep between blocks, in call.work.
struct Work {
    float* packed; // per tile [dimension][query]
    float* peaks;  // per query 16 floats: the largest scores so far, lane by lane
    float* lanes;  // per query 8 floats: the sum of its terms, key j in lane j mod 8
};

template <typename Floats, int queries> struct Sums {
    typename Floats::Vector at[queries][kTileVectors];
};

// One lane of the dot products: the dimensions lane, lane + 8, ..
template <typename Floats, int queries>
Sums<Floats, queries> lane_chain(const float* packed, const float* keys, int lane, int head_dim) {
    Sums<Floats, queries> sums;
#pragma GCC unroll 6
    for (int i = 0; i < queries; ++i) {
        sums.at[i][0] = sums.at[i][1] = Floats::spread(0.0f);
    }
    for (int d = lane; d < head_dim; d += kLanes) {
        const float* key = keys + d * kKeyBlock;
        const typename Floats::Vector low = Floats::load(key), high = Floats::load(key + Floats::kWidth);
#pragma GCC unroll 6
        for (int i = 0; i < queries; ++i) {
            const typename Floats::Vector q = Floats::spread(packed[d * queries + i]);
            sums.at[i][0] = Floats::fma(q, low, sums.at[i][0]);
            sums.at[i][1] = Floats::fma(q, high, sums.at[i][1]);
        }
    }
    return sums;
}

template <typename Floats, int queries>
Sums<Floats, queries> added(const Sums<Floats, queries>& a, const Sums<Floats, queries>& b) {
    Sums<Floats, queries> sums;
#pragma GCC unroll 6
    for (int i = 0; i < queries; ++i) {
        sums.at[i][0] = Floats::add(a.at[i][0], b.at[i][0]);
        sums.at[i][1] = Floats::add(a.at[i][1], b.at[i][1]);
    }
    return sums;
}

// Scores of 2 vectors of keys of the widened block.
template <typename Floats, int queries>
void score_keys(const float* packed, const float* keys, int head_dim, float scaling, float* scores,
                std::int64_t stride, Ahead& ahead) {
    const auto lanes = [&](int lane) { // l and l + 4
        ahead.fetch();
        const auto low = lane_chain<Floats, queries>(packed, keys, lane, head_dim);
        return added(low, lane_chain<Floats, queries>(packed, keys, lane + 4, head_dim));
    };
    const auto zero = lanes(0);
    const auto even = added(zero, lanes(2));
    const auto one = lanes(1);
    const auto dots = added(even, added(one, lanes(3)));
#pragma GCC unroll 6
    for (int i = 0; i < queries; ++i) {
        Floats::store(scores + i * stride, Floats::mul(dots.at[i][0], Floats::spread(scaling)));
        Floats::store(scores + i * stride + Floats::kWidth, Floats::mul(dots.at[i][1], Floats::spread(scaling)));
    }
}

// out += terms * values over `keys` keys in order, for `vectors` vectors of the head's dimensions.
template <typename Floats, int queries, int vectors>
void add_values(const float* terms, const float* values, std::int64_t keys, int head_dim, const AttentionQuery* query,
                int d) {
    typename Floats::Vector sums[queries][vectors];
#pragma GCC unroll 6
    for (int i = 0; i < queries; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
            sums[i][v] = Floats::load(query[i].out + d + v * Floats::kWidth);
        }
    }
    for (std::int64_t j = 0; j < keys; ++j) {
        typename Floats::Vector value[vectors];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
            value[v] = Floats::load(values + j * head_dim + v * Floats::kWidth);
        }
#pragma GCC unroll 6
        for (int i = 0; i < queries; ++i) {
            const typename Floats::Vector term = Floats::spread(terms[i * kKeyBlock + j]);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) {
                sums[i][v] = Floats::fma(term, value[v], sums[i][v]);
            }
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < queries; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
            Floats::store(query[i].out + d + v * Floats::kWidth, sums[i][v]);
        }
    }
}

// The tile's scores of the block that begins at key `first`. Keys a query does not see score -infinity: they are no
// peak and their terms are 0, which added to a sum changes no bit of it.
template <typename Floats, int queries>
void score_tile(const AttentionCall& call, const Tile& tile, std::int64_t first, float scaling, const Work& work,
                Ahead& ahead) {
    constexpr int kStep = kTileVectors * Floats::kWidth;
    const std::int64_t keys = rounded_up(lesser(tile.most - first, kKeyBlock), kStep);
    float* scores = call.scores + tile.first * call.score_stride + first;
    for (std::int64_t j = 0; j < keys; j += kStep) {
        score_keys<Floats, queries>(work.packed + tile.first * call.head_dim, call.block + j, call.head_dim, scaling,
                                    scores + j, call.score_stride, ahead);
    }
    for (int i = 0; i < queries; ++i, scores += call.score_stride) {
        const std::int64_t seen = tile.queries[i].keys - first;
        for (std::int64_t j = seen < 0 ? 0 : seen; j < keys; ++j) {
            scores[j] = -__builtin_inff();
        }
        float* peaks = work.peaks + (tile.first + i) * 16;
        typename Floats::Vector top = Floats::load(peaks);
        for (std::int64_t j = 0; j < keys; j += Floats::kWidth) {
            top = Floats::max(top, Floats::load(scores + j));
        }
        Floats::store(peaks, top);
    }
}

// The tile's terms of that block, and their products with its values.
template <typename Floats, int queries>
void add_tile(const AttentionCall& call, const Tile& tile, std::int64_t first, const Work& work, Ahead& ahead) {
    alignas(64) float terms[queries * kKeyBlock];
    const std::int64_t seen = lesser(tile.most - first, kKeyBlock);
    const std::int64_t keys = rounded_up(seen, kTileVectors * Floats::kWidth);
    for (int i = 0; i < queries; ++i) {
        const float* scores = call.scores + (tile.first + i) * call.score_stride + first;
        const auto shift = Floats::spread(-work.peaks[(tile.first + i) * 16]);
        for (std::int64_t j = 0; j < keys; j += Floats::kWidth) {
            Floats::store(terms + i * kKeyBlock + j, Floats::exp(Floats::add(Floats::load(scores + j), shift)));
        }
        ahead.fetch();
        Floats::add_lanes(work.lanes + (tile.first + i) * kLanes, terms + i * kKeyBlock, keys);
    }
    for (int i = 0; i < queries; ++i) { // the next tile's scores: more rows than the processor follows by itself
        const float* scores = call.scores + (tile.first + queries + i) * call.score_stride + first;
        for (std::int64_t j = 0; j < kKeyBlock; j += 16) {
            __builtin_prefetch(scores + j);
        }
    }
    using Narrow = typename Floats::Narrow;
    constexpr int kStep = kTileVectors * Floats::kWidth;
    int d = 0;
    for (; d + kStep <= call.head_dim; d += kStep) {
        ahead.fetch();
        add_values<Floats, queries, kTileVectors>(terms, call.block + d, seen, call.head_dim, tile.queries, d);
    }
    for (; d < call.head_dim; d += kLanes) {
        add_values<Narrow, queries, kLanes / Narrow::kWidth>(terms, call.block + d, seen, call.head_dim, tile.queries,
                                                             d);
    }
}

// work<queries>() of the tile's own number of them
template <typename Work, int queries = kQueryTile> void by_size(int count, const Work& work) {
    if constexpr (queries > 0) {
        if (count == queries) {
            work.template operator()<queries>();
        } else {
            by_size<Work, queries - 1>(count, work);
        }
    }
}

// Calls work(tile) for all queries in tiles of nearly one size.
template <typename Each> void each_tile(const AttentionCall& call, const Each& each) {
    const int tiles = (call.count + kQueryTile - 1) / kQueryTile;
    for (int t = 0, first = 0; t < tiles; ++t) {
        const int count = call.count / tiles + (t < call.count % tiles ? 1 : 0);
        Tile tile{call.queries + first, first, count, 0};
        for (int i = 0; i < count; ++i) {
            tile.most = tile.queries[i].keys > tile.most ? tile.queries[i].keys : tile.most;
        }
        each(tile);
        first += count;
    }
}

// [group][dimension][8 keys] -> [dimension][kKeyBlock keys]
template <typename Floats> void widen_keys(const std::uint16_t* halves, std::int64_t keys, int head_dim, float* block) {
    const std::int64_t groups = (keys + kLanes - 1) / kLanes;
    for (int d = 0; d < head_dim; ++d) {
        for (std::int64_t g = 0; g < groups; ++g) {
            Floats::widen8(halves + (g * head_dim + d) * kLanes, block + d * kKeyBlock + g * kLanes);
        }
    }
}

template <typename Floats> void widen_values(const std::uint16_t* halves, std::int64_t n, float* block) {
    for (std::int64_t i = 0; i < n; i += kLanes) {
        Floats::widen8(halves + i, block + i);
    }
}

// A dozen shares a tile: about how often its scores, or its terms and products, fetch.
inline Ahead block_after(const AttentionCall& call, const std::uint16_t* halves, std::int64_t first, std::int64_t most) {
    const std::int64_t next = first + kKeyBlock;
    const std::int64_t keys = next < most ? lesser(most - next, kKeyBlock) : 0;
    return {halves + next * call.head_dim, keys * call.head_dim, 12 * ((call.count + kQueryTile - 1) / kQueryTile)};
}

template <typename Floats> void tiled_attention(const AttentionCall& call, float scaling) {
    const int n = call.head_dim;
    const Work work{call.work, call.work + call.count * n, call.work + call.count * (n + 16)};
    std::int64_t most = 0;
    each_tile(call, [&](const Tile& tile) {
        most = tile.most > most ? tile.most : most;
        for (int i = 0; i < tile.count; ++i) {
            for (int d = 0; d < n; ++d) {
                work.packed[tile.first * n + d * tile.count + i] = tile.queries[i].q[d];
                tile.queries[i].out[d] = 0.0f;
            }
            for (int lane = 0; lane < 16; ++lane) {
                work.peaks[(tile.first + i) * 16 + lane] = -__builtin_inff();
            }
            for (int lane = 0; lane < kLanes; ++lane) {
                work.lanes[(tile.first + i) * kLanes + lane] = 0.0f;
            }
        }
    });
    for (std::int64_t first = 0; first < most; first += kKeyBlock) {
        widen_keys<Floats>(call.keys + first * n, lesser(most - first, kKeyBlock), n, call.block);
        Ahead ahead = block_after(call, call.keys, first, most);
        each_tile(call, [&](const Tile& tile) {
            if (tile.most > first) {
                by_size(tile.count, [&]<int queries>() {
                    score_tile<Floats, queries>(call, tile, first, scaling, work, ahead);
                });
            }
        });
    }
    for (int i = 0; i < call.count; ++i) {
        float* peaks = work.peaks + i * 16;
        for (int lane = 1; lane < Floats::kWidth; ++lane) {
            peaks[0] = peaks[lane] > peaks[0] ? peaks[lane] : peaks[0];
        }
    }
    for (std::int64_t first = 0; first < most; first += kKeyBlock) {
        widen_values<Floats>(call.values + first * n, lesser(most - first, kKeyBlock) * n, call.block);
        Ahead ahead = block_after(call, call.values, first, most);
        each_tile(call, [&](const Tile& tile) {
            if (tile.most > first) {
                by_size(tile.count, [&]<int queries>() {
                    add_tile<Floats, queries>(call, tile, first, work, ahead);
                });
            }
        });
    }
    using Narrow = typename Floats::Narrow;
    for (int i = 0; i < call.count; ++i) {
        call.sums[i] = Floats::sum_lanes(work.lanes + i * kLanes);
        float* out = call.queries[i].out;
        for (int d = 0; d < n; d += Narrow::kWidth) {
            Narrow::store(out + d, Narrow::div(Narrow::load(out + d), Narrow::spread(call.sums[i])));
        }
    }
}

} // namespace

} // namespace redraft
