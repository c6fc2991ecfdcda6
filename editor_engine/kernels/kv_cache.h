// Keys and values of every layer, fp16, and copies of their first tokens.
//
//   keys     [layer][key/value head][group of 8 positions][head_dim][position in the group], so that attention scores
//            eight keys at a time without moving lanes
//   values   [layer][key/value head][position][head_dim]
//
// Knows nothing of passes or of how many positions are filled. Invariant: a saved beginning that is restored has the
// bytes it had; of what comes after, at most the rest of its last group is touched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "contract.h"
#include "lazy_pages.h"

namespace redraft {

class KvCache {
  public:
    KvCache(int layers, int heads, int head_dim, std::int64_t context); // throws Failure(OutOfMemory)

    std::uint16_t* keys(int layer, int head) const { return strip(keys_, layer, head); }
    std::uint16_t* values(int layer, int head) const { return strip(values_, layer, head); }

    // Where a key's first dimension goes; the next ones follow kLanes halves apart.
    std::uint16_t* key_at(int layer, int head, std::int64_t position) const {
        return keys(layer, head) + position / kLanes * kLanes * head_dim_ + position % kLanes;
    }
    std::uint16_t* value_at(int layer, int head, std::int64_t position) const {
        return values(layer, head) + position * head_dim_;
    }

    // Bytes that `save` writes and `restore` reads for so many tokens: whole groups of positions.
    std::int64_t bytes(std::int64_t tokens) const { return 2 * strips_ * strip_bytes(tokens); }
    void save(std::int64_t tokens, std::uint8_t* out) const;
    void restore(std::int64_t tokens, const std::uint8_t* from);

  private:
    static constexpr std::int64_t kHalf = sizeof(std::uint16_t);
    std::int64_t strip_bytes(std::int64_t tokens) const {
        return (tokens + kLanes - 1) / kLanes * kLanes * head_dim_ * kHalf;
    }
    // Calls copy(place in the cache, place in the copy, bytes) for each strip's first `tokens` positions.
    template <typename Copy> void each_strip(std::int64_t tokens, const Copy& copy) const;
    std::uint16_t* strip(const LazyPages& pages, int layer, int head) const {
        return pages.as<std::uint16_t>() + (static_cast<std::int64_t>(layer) * heads_ + head) * stride_;
    }

    const std::int64_t heads_;
    const std::int64_t strips_; // of keys, and as many of values
    const std::int64_t head_dim_;
    const std::int64_t stride_; // halves of a strip, whole blocks of keys
    LazyPages keys_, values_;
};

} // namespace redraft
