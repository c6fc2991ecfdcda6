// Keys and values of every layer, fp16, and copies of their first tokens.
//
//   [layer][key/value head][position][head_dim], once for the keys, once for the values
//
// Knows nothing of passes or of how many positions are filled. Invariant: a saved beginning that is restored has the
// bytes it had; nothing beyond it is touched.
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

    // Bytes that `save` writes and `restore` reads for so many tokens.
    std::int64_t bytes(std::int64_t tokens) const { return 2 * strips_ * tokens * head_dim_ * kHalf; }
    void save(std::int64_t tokens, std::uint8_t* out) const;
    void restore(std::int64_t tokens, const std::uint8_t* from);

  private:
    static constexpr std::int64_t kHalf = sizeof(std::uint16_t);
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
