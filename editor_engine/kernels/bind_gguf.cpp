// Python face of gguf_reader: class GgufIndex over a buffer, and the two exceptions it raises.
//
// Knows nothing of models. Invariant: Python values are made only when asked for (an index over 300,000 strings makes
// none), and nothing outlives the buffer the index holds on to.
#include <cstring>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "gguf_reader.h"

namespace nb = nanobind;

namespace {

using redraft::gguf::ElementWalk;
using redraft::gguf::Error;
using redraft::gguf::Value;
using redraft::gguf::ValueType;
using Buffer = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object text(std::string_view bytes, const char* what) {
    PyObject* made = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "strict");
    if (made == nullptr) {
        PyErr_Clear();
        throw Error(Error::Kind::Damaged, std::string(what) + " is not UTF-8");
    }
    return nb::steal(made);
}

template <typename T> T load(const std::uint8_t* at) {
    T value; // GGUF is little endian, as every machine this builds for
    std::memcpy(&value, at, sizeof value);
    return value;
}

nb::object scalar(const std::uint8_t* at, ValueType type) {
    switch (type) {
    case ValueType::UInt8:
        return nb::int_(load<std::uint8_t>(at));
    case ValueType::Int8:
        return nb::int_(load<std::int8_t>(at));
    case ValueType::UInt16:
        return nb::int_(load<std::uint16_t>(at));
    case ValueType::Int16:
        return nb::int_(load<std::int16_t>(at));
    case ValueType::UInt32:
        return nb::int_(load<std::uint32_t>(at));
    case ValueType::Int32:
        return nb::int_(load<std::int32_t>(at));
    case ValueType::Float32:
        return nb::float_(load<float>(at));
    case ValueType::Bool:
        return nb::bool_(*at != 0);
    case ValueType::UInt64:
        return nb::int_(load<std::uint64_t>(at));
    case ValueType::Int64:
        return nb::int_(load<std::int64_t>(at));
    case ValueType::Float64:
        return nb::float_(load<double>(at));
    case ValueType::String:
    case ValueType::Array:
        break;
    }
    throw Error(Error::Kind::Damaged, "a metadata value is no scalar");
}

class GgufIndex {
  public:
    explicit GgufIndex(Buffer buffer)
        : buffer_(std::move(buffer)), file_(redraft::gguf::parse(buffer_.data(), buffer_.size())) {}

    nb::list keys() const {
        nb::list out;
        for (const auto& entry : file_.entries) out.append(text(entry.key, "a metadata key"));
        return out;
    }

    // The value of the metadata entry at `index` (the order of `keys`).
    nb::object value(std::size_t index) const {
        if (index >= file_.entries.size()) throw nb::index_error("no such metadata entry");
        return object(file_.entries[index].value, 0);
    }

    // Elements of the array at `index`, without making them; None for another value.
    nb::object array_length(std::size_t index) const {
        if (index >= file_.entries.size()) throw nb::index_error("no such metadata entry");
        const Value& value = file_.entries[index].value;
        if (value.type != ValueType::Array) return nb::none();
        return nb::int_(value.count);
    }

    // Rows (name, type name, dims in the file's order, offset, bytes).
    nb::list tensors() const {
        nb::list out;
        for (const auto& tensor : file_.tensors) {
            nb::list dims;
            for (const std::uint64_t dim : tensor.dims) dims.append(dim);
            out.append(nb::make_tuple(text(tensor.name, "a tensor's name"), tensor.type->name, nb::tuple(dims),
                                      tensor.offset, tensor.bytes));
        }
        return out;
    }

  private:
    nb::object object(const Value& value, int depth) const {
        const std::uint8_t* at = buffer_.data() + value.offset;
        if (value.type == ValueType::String)
            return text({reinterpret_cast<const char*>(at), static_cast<std::size_t>(value.bytes)}, "a metadata string");
        if (value.type != ValueType::Array) return scalar(at, value.type);
        nb::list out;
        const std::uint32_t width = redraft::gguf::scalar_bytes(value.element);
        ElementWalk walk(buffer_.data(), buffer_.size(), value, depth);
        for (std::uint64_t i = 0; i < value.count; ++i) {
            if (width)
                out.append(scalar(at + i * width, value.element));
            else if (value.element == ValueType::String)
                out.append(text(walk.next_string(), "a metadata string"));
            else
                out.append(object(walk.next_array(), depth + 1));
        }
        return out;
    }

    Buffer buffer_;
    redraft::gguf::File file_;
};

PyObject* new_exception(nb::module_& m, const char* name) {
    const std::string full = std::string("editor_engine.kernels._native.") + name;
    PyObject* made = PyErr_NewException(full.c_str(), PyExc_ValueError, nullptr);
    if (made == nullptr) throw nb::python_error();
    m.attr(name) = nb::borrow(made);
    return made;
}

} // namespace

void bind_gguf(nb::module_& m) {
    // Two Python classes for the two kinds of one C++ exception; never freed, like every type of the module.
    static PyObject* const damaged = new_exception(m, "GgufDamagedError");
    static PyObject* const unsupported = new_exception(m, "GgufUnsupportedError");
    nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
        try {
            std::rethrow_exception(pointer);
        } catch (const Error& error) {
            PyErr_SetString(error.kind() == Error::Kind::Damaged ? damaged : unsupported, error.what());
        }
    });

    nb::class_<GgufIndex>(m, "GgufIndex")
        .def(nb::init<Buffer>(), nb::arg("buffer"))
        .def("keys", &GgufIndex::keys)
        .def("value", &GgufIndex::value, nb::arg("index"))
        .def("array_length", &GgufIndex::array_length, nb::arg("index"))
        .def("tensors", &GgufIndex::tensors);
}
