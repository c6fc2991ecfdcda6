// Zeroed pages from the system, paid for when first touched.
//
// Knows nothing of what is kept in them. Invariant: the address stays the same for the object's life.
#pragma once

#include <cstddef>

namespace redraft {

class LazyPages {
  public:
    LazyPages(std::size_t bytes, const char* what); // throws Failure(OutOfMemory)
    ~LazyPages();
    LazyPages(const LazyPages&) = delete;
    LazyPages& operator=(const LazyPages&) = delete;
    template <typename T> T* as() const { return static_cast<T*>(at_); }

  private:
    void* at_;
    std::size_t bytes_;
};

} // namespace redraft
