// See kv_cache.h.
#include "kv_cache.h"

#include <cstring>
#include <initializer_list>

namespace redraft {

KvCache::KvCache(int layers, int heads, int head_dim, std::int64_t context)
    : heads_(heads), strips_(static_cast<std::int64_t>(layers) * heads), head_dim_(head_dim),
      stride_((context + kKeyBlock - 1) / kKeyBlock * kKeyBlock * head_dim),
      keys_(static_cast<std::size_t>(strips_ * stride_ * kHalf), "keys"),
      values_(static_cast<std::size_t>(strips_ * stride_ * kHalf), "values") {}

template <typename Copy> void KvCache::each_strip(std::int64_t tokens, const Copy& copy) const {
    const std::int64_t size = strip_bytes(tokens);
    std::int64_t at = 0;
    for (const LazyPages* pages : {&keys_, &values_}) {
        for (std::int64_t strip = 0; strip < strips_; ++strip, at += size) {
            copy(pages->as<std::uint16_t>() + strip * stride_, at, static_cast<std::size_t>(size));
        }
    }
}

void KvCache::save(std::int64_t tokens, std::uint8_t* out) const {
    each_strip(tokens, [&](const std::uint16_t* here, std::int64_t at, std::size_t size) {
        std::memcpy(out + at, here, size);
    });
}

void KvCache::restore(std::int64_t tokens, const std::uint8_t* from) {
    each_strip(tokens, [&](std::uint16_t* here, std::int64_t at, std::size_t size) {
        std::memcpy(here, from + at, size);
    });
}

} // namespace redraft
