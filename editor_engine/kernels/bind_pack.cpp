// Python face of formats and packing.
//
// Invariant: sizes are checked against the buffers before a byte is touched.
#include <atomic>

#include <nanobind/stl/string.h>

#include "bind.h"
#include "pool.h"

namespace redraft {

namespace {

using Bytes = In<std::uint8_t, 1>;

std::int64_t checked_packed_bytes(const std::string& name, std::int64_t n, std::int64_t k) {
    const QuantType type = packable_type(name);
    check_size(type, n, k);
    return packed_bytes(type, n, k);
}

void pack_into(const std::string& name, const Bytes& raw, std::int64_t n, std::int64_t k,
               nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> out, int threads) {
    const std::int64_t size = checked_packed_bytes(name, n, k);
    const QuantType type = packable_type(name);
    require(static_cast<std::int64_t>(raw.size()) == raw_bytes(type, n, k),
            "a tensor has " + std::to_string(raw.size()) + " bytes where its shape needs " +
                std::to_string(raw_bytes(type, n, k)));
    require(static_cast<std::int64_t>(out.size()) == size, "the packed buffer has the wrong size");
    check_threads(threads);
    std::uint8_t* to = out.data();
    const std::uint8_t* from = raw.data();
    std::atomic<bool> finite{true};
    {
        const nb::gil_scoped_release released;
        Pool pool(threads);
        pool.run([&](int worker) {
            pool.phase((n + kColumns - 1) / kColumns, worker, [&](std::int64_t group, int) {
                if (!pack_group(type, from, n, k, group, to)) {
                    finite = false;
                }
            });
        });
    }
    require(finite, "a block scale is NaN or infinite");
}

Out<float> unpack(const std::string& name, const Bytes& packed, std::int64_t n, std::int64_t k) {
    require(static_cast<std::int64_t>(packed.size()) == checked_packed_bytes(name, n, k),
            "the packed buffer has the wrong size");
    Out<float> out = new_array<float>({static_cast<std::size_t>(n), static_cast<std::size_t>(k)});
    for (std::int64_t column = 0; column < n; ++column) {
        unpack_column(packable_type(name), packed.data(), column, k, out.data() + column * k);
    }
    return out;
}

bool finite(const std::string& name, const Bytes& raw, std::int64_t n, std::int64_t k) {
    const QuantType type = type_named(name);
    check_size(type, n, k);
    require(static_cast<std::int64_t>(raw.size()) == raw_bytes(type, n, k), "the raw buffer has the wrong size");
    const nb::gil_scoped_release released;
    bool fine = true;
    for (std::int64_t row = 0; row < n && fine; ++row) {
        fine = finite_row(type, raw.data() + row * raw_bytes(type, 1, k), k);
    }
    return fine;
}

Out<float> dequantise(const std::string& name, const Bytes& raw, std::int64_t n, std::int64_t k) {
    const QuantType type = type_named(name);
    check_size(type, n, k);
    require(static_cast<std::int64_t>(raw.size()) == raw_bytes(type, n, k), "the raw buffer has the wrong size");
    Out<float> out = new_array<float>({static_cast<std::size_t>(n), static_cast<std::size_t>(k)});
    for (std::int64_t row = 0; row < n; ++row) {
        dequantise_row(type, raw.data() + row * raw_bytes(type, 1, k), k, out.data() + row * k);
    }
    return out;
}

} // namespace

void bind_pack(nb::module_& module) {
    module.def("packed_bytes", &checked_packed_bytes, nb::arg("type"), nb::arg("n"), nb::arg("k"));
    module.def("pack_into", &pack_into, nb::arg("type"), nb::arg("raw"), nb::arg("n"), nb::arg("k"), nb::arg("out"),
               nb::arg("threads"));
    module.def("unpack", &unpack, nb::arg("type"), nb::arg("packed"), nb::arg("n"), nb::arg("k"));
    module.def("finite", &finite, nb::arg("type"), nb::arg("raw"), nb::arg("n"), nb::arg("k"));
    module.def("dequantise", &dequantise, nb::arg("type"), nb::arg("raw"), nb::arg("n"), nb::arg("k"));
}

} // namespace redraft
