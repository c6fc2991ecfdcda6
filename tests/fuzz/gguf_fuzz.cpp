// Feeds mutated files to the GGUF reader: gguf_fuzz SEED COUNT FILE...
//
// Built alone with -fsanitize=address,undefined, which is what finds a fault. Invariant checked here as well: a file is
// either refused with a gguf::Error, or every range it reports lies inside it. Deterministic in SEED and COUNT.
// Prints how many were refused and how many were accepted; exit 1 on a broken invariant.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gguf_reader.h"

namespace {

using Bytes = std::vector<std::uint8_t>;
using namespace redraft::gguf;

std::uint64_t below(std::mt19937_64& random, std::uint64_t limit) { return limit ? random() % limit : 0; }

void put(Bytes& bytes, std::size_t at, std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
        bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

// One change; the interesting numbers are those that overflow a sum or a product.
void mutate(Bytes& bytes, const Bytes& other, std::mt19937_64& random) {
    static constexpr std::uint64_t kNumbers[] = {
        0, 1, 2, 7, 8, 31, 32, 33, 255, 256, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x1fffffffffffffff,
        0x2000000000000000, 0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffff8, 0xffffffffffffffff};
    if (bytes.empty()) return;
    const std::size_t at = below(random, bytes.size());
    switch (below(random, 8)) {
    case 0: // a bit
        bytes[at] ^= static_cast<std::uint8_t>(1u << below(random, 8));
        return;
    case 1: // a byte
        bytes[at] = static_cast<std::uint8_t>(random());
        return;
    case 2: // a number
    case 3:
        put(bytes, at, kNumbers[below(random, std::size(kNumbers))], random() % 2 ? 8 : 4);
        return;
    case 4: // a small change of a number
        put(bytes, at, bytes[at] + below(random, 17) - 8, 1);
        return;
    case 5: // cut
        bytes.resize(at);
        return;
    case 6: { // remove or repeat a run
        const std::size_t length = below(random, std::min<std::size_t>(64, bytes.size() - at));
        if (random() % 2)
            bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                        bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
        else {
            const Bytes run(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                            bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
            bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), run.begin(), run.end());
        }
        return;
    }
    default: { // a run of another file
        const std::size_t from = below(random, other.size());
        const std::size_t length = std::min({other.size() - from, bytes.size() - at, std::size_t{48}});
        std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from), length,
                    bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
    }
}

bool inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
    return offset <= size && bytes <= size - offset;
}

// Reads every byte a value covers, so that the sanitizer sees a range that is wrong.
std::uint64_t touch(const std::uint8_t* data, std::size_t size, const Value& value, int depth) {
    if (!inside(value.offset, value.bytes, size)) {
        std::fprintf(stderr, "a metadata value lies outside the file\n");
        std::exit(1);
    }
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < value.bytes; ++i) sum += data[value.offset + i];
    if (value.type != ValueType::Array || scalar_bytes(value.element)) return sum;
    ElementWalk walk(data, size, value, depth);
    for (std::uint64_t i = 0; i < value.count; ++i) {
        if (value.element == ValueType::String)
            for (const char c : walk.next_string()) sum += static_cast<unsigned char>(c);
        else
            sum += touch(data, size, walk.next_array(), depth + 1);
    }
    return sum;
}

std::uint64_t touch(const std::uint8_t* data, std::size_t size, const File& file) {
    std::uint64_t sum = 0;
    for (const Entry& entry : file.entries) {
        for (const char c : entry.key) sum += static_cast<unsigned char>(c);
        sum += touch(data, size, entry.value, 0);
    }
    for (const Tensor& tensor : file.tensors) {
        if (!inside(tensor.offset, tensor.bytes, size)) {
            std::fprintf(stderr, "a tensor lies outside the file\n");
            std::exit(1);
        }
        long double exact = tensor.type->bytes;
        for (const std::uint64_t dim : tensor.dims) exact *= static_cast<long double>(dim);
        if (exact != static_cast<long double>(tensor.bytes) * tensor.type->elements) {
            std::fprintf(stderr, "a tensor's bytes do not hold its weights\n");
            std::exit(1);
        }
        for (std::uint64_t i = 0; i < tensor.bytes; ++i) sum += data[tensor.offset + i];
    }
    return sum;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: gguf_fuzz SEED COUNT FILE...\n");
        return 2;
    }
    std::mt19937_64 random(std::strtoull(argv[1], nullptr, 10));
    const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
    std::vector<Bytes> seeds;
    for (int i = 3; i < argc; ++i) {
        std::ifstream stream(argv[i], std::ios::binary);
        seeds.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    }
    std::uint64_t refused = 0, accepted = 0, sum = 0;
    for (std::uint64_t round = 0; round < count; ++round) {
        Bytes bytes = seeds[below(random, seeds.size())];
        for (std::uint64_t changes = 1 + below(random, 4); changes; --changes)
            mutate(bytes, seeds[below(random, seeds.size())], random);
        // An allocation of exactly the file's size: the sanitizer sees the first byte read past it.
        const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[bytes.size()]);
        std::copy(bytes.begin(), bytes.end(), exact.get());
        try {
            sum += touch(exact.get(), bytes.size(), parse(exact.get(), bytes.size()));
            ++accepted;
        } catch (const Error&) {
            ++refused;
        }
    }
    std::printf("%llu refused, %llu accepted, sum %llu\n", static_cast<unsigned long long>(refused),
                static_cast<unsigned long long>(accepted), static_cast<unsigned long long>(sum));
    return 0;
}
