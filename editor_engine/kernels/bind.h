// What the binding files share: array types, new arrays, and the checks on what Python passes in.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "contract.h"
#include "failure.h"
#include "formats.h"
#include "pack.h"

namespace redraft {

namespace nb = nanobind;

template <typename T, std::size_t dims>
using In = nb::ndarray<const T, nb::ndim<dims>, nb::c_contig, nb::device::cpu>;
template <typename T> using Out = nb::ndarray<nb::numpy, T>;

// A new zeroed numpy array that owns its memory.
template <typename T> Out<T> new_array(std::initializer_list<std::size_t> shape) {
    std::size_t count = 1;
    for (const std::size_t n : shape) {
        count *= n;
    }
    T* data = new T[count](); // owned by the capsule from the next line on
    nb::capsule owner(data, [](void* at) noexcept { delete[] static_cast<T*>(at); });
    return Out<T>(data, shape, owner);
}

[[noreturn]] inline void refuse(Failure::Kind kind, const std::string& sentence) { throw Failure(kind, sentence); }

// `sentence` is a clause: whoever knows the tensor's name makes a sentence of it (models/native/load.py).
inline void require(bool condition, const std::string& sentence) {
    if (!condition) {
        refuse(Failure::Kind::ModelFile, sentence);
    }
}

// The type of that name, e.g. "Q4_K"; Failure(Unsupported) for any other.
inline QuantType type_named(const std::string& name) {
    for (int t = 0; t < kTypes; ++t) {
        if (name == facts(static_cast<QuantType>(t)).name) {
            return static_cast<QuantType>(t);
        }
    }
    refuse(Failure::Kind::Unsupported, "There are no kernels for tensors of the type " + name + ".");
}

inline QuantType packable_type(const std::string& name) {
    const QuantType type = type_named(name);
    if (static_cast<int>(type) >= kPackable) {
        refuse(Failure::Kind::Unsupported, "There are no kernels for linear layers of the type " + name + ".");
    }
    return type;
}

// Both sizes positive and k whole blocks; keeps every later product far from overflow.
inline void check_size(QuantType type, std::int64_t n, std::int64_t k) {
    require(n > 0 && k > 0 && n < (1LL << 31) && k < (1LL << 31), "a tensor size is out of range");
    require(k % facts(type).inputs == 0, std::to_string(k) + " inputs are not whole blocks of " + facts(type).name);
}

inline void check_threads(int threads) {
    if (threads < 1 || threads > 1024) {
        refuse(Failure::Kind::Request, "There may be 1 to 1024 threads, not " + std::to_string(threads) + ".");
    }
}

inline std::int64_t raw_bytes(QuantType type, std::int64_t n, std::int64_t k) {
    return n * (k / facts(type).inputs) * facts(type).bytes;
}

} // namespace redraft
