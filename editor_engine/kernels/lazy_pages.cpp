// See lazy_pages.h.
#include "lazy_pages.h"

#include <sys/mman.h>

#include <string>

#include "failure.h"

namespace redraft {

LazyPages::LazyPages(std::size_t bytes, const char* what) : bytes_(bytes) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
    flags |= MAP_NORESERVE;
#endif
    at_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at_ == MAP_FAILED) {
        throw Failure(Failure::Kind::OutOfMemory, std::string("There is no room for ") + what + " (" +
                                                      std::to_string(bytes >> 20) +
                                                      " MiB); take a shorter context (--context-length).");
    }
}

LazyPages::~LazyPages() { munmap(at_, bytes_); }

} // namespace redraft
