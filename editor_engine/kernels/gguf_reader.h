// Reads the table of contents of a GGUF file: header, metadata, tensor table.
//
// Knows nothing of Python, of models or of what a key means, and never copies tensor data. Invariant: whatever the bytes
// are, `parse` either throws Error or returns records whose every range [offset, offset + bytes) lies inside the buffer;
// no length from the file is used before it was checked against the bytes that are left.
//
// Format: the public GGUF specification, versions 2 and 3, little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redraft::gguf {

// What is wrong with a file: one clear sentence (without the file's name, which the caller knows).
class Error : public std::runtime_error {
  public:
    // Damaged: bytes that contradict themselves. Unsupported: a healthy file of a kind this reader does not read.
    enum class Kind { Damaged, Unsupported };
    Error(Kind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
    Kind kind() const { return kind_; }

  private:
    Kind kind_;
};

enum class ValueType : std::uint32_t {
    UInt8 = 0,
    Int8 = 1,
    UInt16 = 2,
    Int16 = 3,
    UInt32 = 4,
    Int32 = 5,
    Float32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    UInt64 = 10,
    Int64 = 11,
    Float64 = 12,
};

// Where a metadata value lies. For an array, `offset` is its first element and `count` its number of elements.
struct Value {
    ValueType type;
    ValueType element;    // of an array; else equal to `type`
    std::uint64_t count;  // elements of an array; else 1
    std::uint64_t offset; // bytes from the start of the file
    std::uint64_t bytes;  // of the payload, without type tags and counts in front of it
};

struct Entry {
    std::string_view key; // into the buffer
    Value value;
};

// ggml's name of a tensor type and its block: `elements` weights in `bytes` bytes.
struct TypeTraits {
    std::uint32_t id;
    const char* name;
    std::uint32_t elements;
    std::uint32_t bytes;
};

struct Tensor {
    std::string_view name;              // into the buffer
    const TypeTraits* type;
    std::vector<std::uint64_t> dims;    // 1 to 4, as in the file: the contiguous dimension first; never 0
    std::uint64_t offset;               // bytes from the start of the file
    std::uint64_t bytes;
};

struct File {
    std::uint32_t version;
    std::uint64_t alignment;
    std::uint64_t data_offset;
    std::vector<Entry> entries;
    std::vector<Tensor> tensors;
};

// Traits of a ggml type id, or nullptr.
const TypeTraits* find_type(std::uint32_t id);

// Bytes of one scalar of `type`; 0 for String and Array.
std::uint32_t scalar_bytes(ValueType type);

// Parses the whole table. The buffer must outlive the result. Throws Error.
File parse(const std::uint8_t* data, std::size_t size);

// Walks the elements of a parsed array whose elements are not scalars. `data` and `size` are the buffer given to parse.
class ElementWalk {
  public:
    // `depth` counts the arrays around this one, 0 at the top.
    ElementWalk(const std::uint8_t* data, std::size_t size, const Value& array, int depth = 0);
    // The next element of an array of strings. Throws Error past the end.
    std::string_view next_string();
    // The next element of an array of arrays. Throws Error past the end.
    Value next_array();

  private:
    const std::uint8_t* data_;
    std::uint64_t size_;
    std::uint64_t position_;
    int depth_;
};

} // namespace redraft::gguf
