// See gguf_reader.h. Every read goes through Cursor, which is the only place that touches the buffer.
#include "gguf_reader.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace redraft::gguf {
namespace {

constexpr std::uint64_t kMaxKeyBytes = 65535;  // the specification's limit
constexpr std::uint64_t kMaxTensorName = 64;   // the specification's limit
constexpr std::uint32_t kMaxDims = 4;          // ggml's limit
constexpr std::uint64_t kMaxAlignment = 1u << 20; // far above any in use
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr int kMaxDepth = 4; // arrays inside arrays; bounds the recursion
constexpr std::uint64_t kMinEntryBytes = 8 + 4 + 1;          // key length, type, one byte
constexpr std::uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8; // name length, dims, one dim, type, offset

// Block sizes as ggml defines them.
constexpr TypeTraits kTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},        {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},     {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},  {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},  {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},  {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},        {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},       {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},  {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
};

[[noreturn]] void damaged(const std::string& what) { throw Error(Error::Kind::Damaged, what); }
[[noreturn]] void unsupported(const std::string& what) { throw Error(Error::Kind::Unsupported, what); }

// A name from the file, made safe to print.
std::string shown(std::string_view name) {
    std::string out = "'";
    for (unsigned char c : name.substr(0, 80)) out += (c >= 0x20 && c < 0x7f) ? static_cast<char>(c) : '?';
    return out + "'";
}

class Cursor {
  public:
    Cursor(const std::uint8_t* data, std::uint64_t size, std::uint64_t position)
        : data_(data), size_(size), position_(position) {}

    std::uint64_t position() const { return position_; }
    std::uint64_t left() const { return size_ - position_; }

    // Moves on by `bytes`; the position never passes the end.
    void skip(std::uint64_t bytes, const char* what) {
        if (bytes > left()) damaged(std::string("it ends inside ") + what);
        position_ += bytes;
    }

    std::uint32_t u32(const char* what) { return static_cast<std::uint32_t>(little_endian(4, what)); }
    std::uint64_t u64(const char* what) { return little_endian(8, what); }

    std::string_view string(std::uint64_t limit, const char* what) {
        const std::uint64_t length = u64(what);
        if (length > limit) damaged(std::string(what) + " has a length of " + std::to_string(length) + " bytes");
        const std::uint64_t start = position_;
        skip(length, what);
        return {reinterpret_cast<const char*>(data_ + start), static_cast<std::size_t>(length)};
    }

  private:
    std::uint64_t little_endian(int bytes, const char* what) {
        const std::uint64_t start = position_;
        skip(static_cast<std::uint64_t>(bytes), what);
        std::uint64_t value = 0;
        for (int i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(data_[start + i]) << (8 * i);
        return value;
    }

    const std::uint8_t* data_;
    std::uint64_t size_;
    std::uint64_t position_;
};

ValueType value_type(std::uint32_t id) {
    if (id > static_cast<std::uint32_t>(ValueType::Float64))
        damaged("a metadata value has the unknown type " + std::to_string(id));
    return static_cast<ValueType>(id);
}

Value read_value(Cursor& cursor, ValueType type, int depth, const std::uint8_t* data);

// Element type and count of an array, then past its elements.
Value read_array(Cursor& cursor, int depth, const std::uint8_t* data) {
    if (depth >= kMaxDepth) damaged("metadata arrays are nested too deeply");
    const ValueType element = value_type(cursor.u32("a metadata array"));
    const std::uint64_t count = cursor.u64("a metadata array");
    const std::uint64_t start = cursor.position();
    const std::uint32_t width = scalar_bytes(element);
    // The shortest string takes 8 bytes, the shortest array 12: a count beyond that cannot be true.
    const std::uint64_t least = width ? width : element == ValueType::String ? 8 : 12;
    if (count > cursor.left() / least) damaged("a metadata array claims " + std::to_string(count) + " elements");
    if (element == ValueType::Bool) {
        for (std::uint64_t i = 0; i < count; ++i)
            if (data[start + i] > 1) damaged("a metadata flag is neither true nor false");
    }
    if (width) {
        cursor.skip(count * width, "a metadata array");
    } else if (element == ValueType::String) {
        for (std::uint64_t i = 0; i < count; ++i) cursor.string(cursor.left(), "a metadata string");
    } else {
        for (std::uint64_t i = 0; i < count; ++i) read_value(cursor, ValueType::Array, depth + 1, data);
    }
    return {ValueType::Array, element, count, start, cursor.position() - start};
}

Value read_value(Cursor& cursor, ValueType type, int depth, const std::uint8_t* data) {
    if (type == ValueType::Array) return read_array(cursor, depth, data);
    if (type == ValueType::String) {
        const std::string_view text = cursor.string(cursor.left(), "a metadata string");
        return {type, type, 1, cursor.position() - text.size(), text.size()};
    }
    const std::uint64_t start = cursor.position();
    cursor.skip(scalar_bytes(type), "a metadata value");
    if (type == ValueType::Bool && data[start] > 1) damaged("a metadata flag is neither true nor false");
    return {type, type, 1, start, scalar_bytes(type)};
}

std::uint64_t read_alignment(const File& file, const std::uint8_t* data, std::uint64_t size) {
    for (const Entry& entry : file.entries) {
        if (entry.key != "general.alignment") continue;
        if (entry.value.type != ValueType::UInt32) damaged("general.alignment is not a 32-bit number");
        const std::uint64_t value = Cursor(data, size, entry.value.offset).u32("general.alignment");
        if (value < 8 || value > kMaxAlignment || (value & (value - 1)) != 0)
            damaged("general.alignment is " + std::to_string(value));
        return value;
    }
    return kDefaultAlignment;
}

// One row of the tensor table; `offset` is still relative to the data section.
Tensor read_tensor(Cursor& cursor) {
    Tensor tensor;
    tensor.name = cursor.string(kMaxTensorName, "a tensor's name");
    const std::string name = shown(tensor.name);
    const std::uint32_t dims = cursor.u32("the tensor table");
    if (dims < 1 || dims > kMaxDims) damaged("tensor " + name + " has " + std::to_string(dims) + " dimensions");
    std::uint64_t elements = 1;
    for (std::uint32_t i = 0; i < dims; ++i) {
        const std::uint64_t dim = cursor.u64("the tensor table");
        if (dim == 0) damaged("tensor " + name + " has an empty dimension");
        if (dim > UINT64_MAX / 8 / elements) damaged("tensor " + name + " is impossibly large");
        elements *= dim;
        tensor.dims.push_back(dim);
    }
    const std::uint32_t type = cursor.u32("the tensor table");
    tensor.type = find_type(type);
    if (!tensor.type) unsupported("tensor " + name + " has the unknown type " + std::to_string(type));
    if (tensor.dims[0] % tensor.type->elements != 0)
        damaged("tensor " + name + " has rows of " + std::to_string(tensor.dims[0]) + " weights, which " +
                tensor.type->name + " cannot hold");
    // No overflow: elements <= 2^61 and no type takes more than 8 bytes a weight.
    tensor.bytes = elements / tensor.type->elements * tensor.type->bytes;
    tensor.offset = cursor.u64("the tensor table");
    return tensor;
}

void place_tensors(File& file, std::uint64_t size) {
    std::vector<const Tensor*> order;
    for (Tensor& tensor : file.tensors) {
        const std::uint64_t space = size - file.data_offset;
        if (tensor.offset % file.alignment != 0) damaged("tensor " + shown(tensor.name) + " is not aligned");
        if (tensor.offset > space || tensor.bytes > space - tensor.offset)
            damaged("tensor " + shown(tensor.name) + " reaches past the end of the file");
        tensor.offset += file.data_offset;
        order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
        if (order[i]->offset - order[i - 1]->offset < order[i - 1]->bytes)
            damaged("tensors " + shown(order[i - 1]->name) + " and " + shown(order[i]->name) + " overlap");
    }
}

} // namespace

const TypeTraits* find_type(std::uint32_t id) {
    for (const TypeTraits& traits : kTypes)
        if (traits.id == id) return &traits;
    return nullptr;
}

std::uint32_t scalar_bytes(ValueType type) {
    switch (type) {
    case ValueType::UInt8:
    case ValueType::Int8:
    case ValueType::Bool:
        return 1;
    case ValueType::UInt16:
    case ValueType::Int16:
        return 2;
    case ValueType::UInt32:
    case ValueType::Int32:
    case ValueType::Float32:
        return 4;
    case ValueType::UInt64:
    case ValueType::Int64:
    case ValueType::Float64:
        return 8;
    case ValueType::String:
    case ValueType::Array:
        return 0;
    }
    return 0;
}

File parse(const std::uint8_t* data, std::size_t size) {
    if (size < 4 || std::memcmp(data, "GGUF", 4) != 0) damaged("it does not begin like a GGUF file");
    Cursor cursor(data, size, 4);
    File file;
    file.version = cursor.u32("the header");
    if (file.version != 0 && (file.version & 0xffffu) == 0) unsupported("it is a big-endian GGUF file");
    if (file.version != 2 && file.version != 3)
        unsupported("it is GGUF version " + std::to_string(file.version) + "; versions 2 and 3 can be read");
    const std::uint64_t tensors = cursor.u64("the header");
    const std::uint64_t entries = cursor.u64("the header");
    if (entries > cursor.left() / kMinEntryBytes) damaged("it claims " + std::to_string(entries) + " metadata entries");
    if (tensors > cursor.left() / kMinTensorBytes) damaged("it claims " + std::to_string(tensors) + " tensors");

    std::unordered_set<std::string_view> seen;
    file.entries.reserve(entries);
    for (std::uint64_t i = 0; i < entries; ++i) {
        Entry entry;
        entry.key = cursor.string(kMaxKeyBytes, "a metadata key");
        if (!seen.insert(entry.key).second) damaged("metadata " + shown(entry.key) + " is there twice");
        const ValueType type = value_type(cursor.u32("the metadata"));
        entry.value = read_value(cursor, type, 0, data);
        file.entries.push_back(entry);
    }
    file.alignment = read_alignment(file, data, size);

    seen.clear();
    file.tensors.reserve(tensors);
    for (std::uint64_t i = 0; i < tensors; ++i) {
        file.tensors.push_back(read_tensor(cursor));
        const std::string_view name = file.tensors.back().name;
        if (!seen.insert(name).second) damaged("tensor " + shown(name) + " is there twice");
    }
    const std::uint64_t padding = (file.alignment - cursor.position() % file.alignment) % file.alignment;
    if (tensors != 0) cursor.skip(padding, "the padding before the weights");
    file.data_offset = cursor.position();
    place_tensors(file, size);
    return file;
}

ElementWalk::ElementWalk(const std::uint8_t* data, std::size_t size, const Value& array, int depth)
    : data_(data), size_(size), position_(array.offset), depth_(depth) {}

std::string_view ElementWalk::next_string() {
    Cursor cursor(data_, size_, position_);
    const std::string_view text = cursor.string(cursor.left(), "a metadata string");
    position_ = cursor.position();
    return text;
}

Value ElementWalk::next_array() {
    Cursor cursor(data_, size_, position_);
    const Value value = read_array(cursor, depth_ + 1, data_);
    position_ = cursor.position();
    return value;
}

} // namespace redraft::gguf
