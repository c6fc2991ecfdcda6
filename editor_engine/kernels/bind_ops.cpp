// Python face of the single operations, for tests and benchmarks: arrays in, new arrays out, the variant by name.
//
// The model does not come through here. Invariant: every call runs under the contract's floating-point environment.
#include <cmath>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "activations.h"
#include "bind.h"
#include "dispatch.h"
#include "pool.h"
#include "rope_table.h"

namespace redraft {

namespace {

using Vector = In<float, 1>;
using Matrix = In<float, 2>;

std::int64_t dim(const Matrix& x, int i) { return static_cast<std::int64_t>(x.shape(static_cast<std::size_t>(i))); }

void require_finite(bool finite, const char* what) {
    if (!finite) {
        refuse(Failure::Kind::Numerics, std::string("NaN or infinity in ") + what);
    }
}

Activations quantised(const Matrix& x, const Ops& ops) {
    require(dim(x, 1) % kBlock == 0, "inputs must be a multiple of 32");
    Activations rows(dim(x, 0), dim(x, 1));
    bool finite = true;
    for (std::int64_t r = 0; r < dim(x, 0); ++r) {
        finite = ops.quantise(x.data() + r * dim(x, 1), r, 0, dim(x, 1), rows.view) && finite;
    }
    require_finite(finite, "the activations");
    return rows;
}

template <typename T> Out<T> as_array(const std::vector<T>& values, std::size_t rows) {
    Out<T> out = new_array<T>({rows, rows == 0 ? 0 : values.size() / rows});
    std::copy(values.begin(), values.end(), out.data());
    return out;
}

std::tuple<Out<std::int8_t>, Out<float>, Out<std::int32_t>> quantise_rows(const Matrix& x, const std::string& isa) {
    const FloatEnvironment environment;
    const Activations rows = quantised(x, find_variant(isa));
    return {as_array(rows.q, x.shape(0)), as_array(rows.scale, x.shape(0)), as_array(rows.sum16, x.shape(0))};
}

Out<float> linear(const std::string& name, const In<std::uint8_t, 1>& packed, std::int64_t n, const Matrix& x,
                  std::optional<Vector> bias, const std::string& isa, int threads) {
    const FloatEnvironment environment;
    const QuantType type = packable_type(name);
    const std::int64_t k = dim(x, 1);
    check_size(type, n, k);
    require(static_cast<std::int64_t>(packed.size()) == packed_bytes(type, n, k), "the packed buffer has the wrong size");
    require(!bias || static_cast<std::int64_t>(bias->size()) == n, "the bias has the wrong size");
    check_threads(threads);
    const Ops& ops = find_variant(isa);
    const Activations rows = quantised(x, ops);
    const std::int64_t groups = (n + kColumns - 1) / kColumns;
    std::vector<float> padded(static_cast<std::size_t>(groups * kColumns));
    if (bias) {
        std::copy(bias->data(), bias->data() + n, padded.begin());
    }
    std::vector<float> wide(x.shape(0) * padded.size());
    {
        const nb::gil_scoped_release released;
        Pool pool(threads);
        pool.run([&](int worker) {
            pool.phase(groups, worker, [&](std::int64_t g, int) {
                const LinearCall call{packed.data(), group_bytes(type, k), g, g + 1, 0, dim(x, 0),
                                      bias ? padded.data() : nullptr, wide.data(), groups * kColumns, false};
                ops.linear[static_cast<int>(type)](call, rows.view);
            });
        });
    }
    Out<float> out = new_array<float>({x.shape(0), static_cast<std::size_t>(n)});
    for (std::int64_t r = 0; r < dim(x, 0); ++r) {
        std::copy_n(wide.data() + r * groups * kColumns, n, out.data() + r * n);
    }
    return out;
}

Out<float> rmsnorm(const Matrix& x, const Vector& weight, float eps, const std::string& isa) {
    const FloatEnvironment environment;
    require(dim(x, 1) % kLanes == 0 && weight.size() == x.shape(1), "the norm's sizes do not fit");
    Out<float> out = new_array<float>({x.shape(0), x.shape(1)});
    for (std::int64_t r = 0; r < dim(x, 0); ++r) {
        find_variant(isa).rmsnorm(x.data() + r * dim(x, 1), weight.data(), dim(x, 1), eps, out.data() + r * dim(x, 1));
    }
    return out;
}

Out<float> rope(const Matrix& x, const Matrix& cosines, const Matrix& sines, bool halves, const std::string& isa) {
    const FloatEnvironment environment;
    const std::int64_t half = dim(x, 1) / 2;
    require(dim(x, 1) % 8 == 0 && dim(cosines, 1) == half && dim(sines, 1) == half &&
                cosines.shape(0) == x.shape(0) && sines.shape(0) == x.shape(0), "the rotation's sizes do not fit");
    Out<float> out = new_array<float>({x.shape(0), x.shape(1)});
    std::copy_n(x.data(), x.size(), out.data());
    const Ops& ops = find_variant(isa);
    for (std::int64_t r = 0; r < dim(x, 0); ++r) {
        (halves ? ops.rope_halves : ops.rope_pairs)(out.data() + r * dim(x, 1), cosines.data() + r * half,
                                                    sines.data() + r * half, static_cast<int>(dim(x, 1)));
    }
    return out;
}

std::pair<Out<float>, Out<float>> table(int head_dim, double base, std::optional<Vector> factors, std::int64_t begin,
                                        std::int64_t end) {
    const FloatEnvironment environment;
    require(head_dim > 0 && head_dim % 2 == 0 && begin >= 0 && end >= begin, "the table's sizes do not fit");
    require(!factors || static_cast<int>(factors->size()) == head_dim / 2, "the factors have the wrong size");
    const auto rows = static_cast<std::size_t>(end - begin);
    Out<float> cosines = new_array<float>({rows, static_cast<std::size_t>(head_dim / 2)});
    Out<float> sines = new_array<float>({rows, static_cast<std::size_t>(head_dim / 2)});
    rope_table(rope_frequencies(head_dim, base, factors ? factors->data() : nullptr), begin, end, cosines.data(),
               sines.data());
    return {cosines, sines};
}

// [position][width] -> the layout of AttentionCall::keys
std::vector<std::uint16_t> in_groups(const std::uint16_t* keys, std::size_t positions, std::size_t width) {
    std::vector<std::uint16_t> made((positions + kLanes - 1) / kLanes * kLanes * width);
    for (std::size_t j = 0; j < positions; ++j) {
        for (std::size_t d = 0; d < width; ++d) {
            made[(j / kLanes * width + d) * kLanes + j % kLanes] = keys[j * width + d];
        }
    }
    return made;
}

// q [rows, heads, dim]; keys, values [kv_heads, positions, dim] as the bits of halves; row r sees keys 0 .. start + r
Out<float> attention(const In<float, 3>& q, const In<std::uint16_t, 3>& keys, const In<std::uint16_t, 3>& values,
                     std::int64_t start, const std::string& isa) {
    const FloatEnvironment environment;
    const std::size_t rows = q.shape(0), heads = q.shape(1), width = q.shape(2), kv_heads = keys.shape(0);
    require(width % 8 == 0 && kv_heads > 0 && heads % kv_heads == 0 && keys.shape(2) == width &&
                values.shape(0) == kv_heads && values.shape(1) == keys.shape(1) && values.shape(2) == width &&
                start >= 0 && static_cast<std::size_t>(start) + rows <= keys.shape(1),
            "the attention's sizes do not fit");
    Out<float> out = new_array<float>({rows, heads, width});
    const std::size_t grouped = heads / kv_heads;
    const std::int64_t stride = (start + static_cast<std::int64_t>(rows) + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
    std::vector<float> scores(rows * grouped * static_cast<std::size_t>(stride)), block(kKeyBlock * width);
    std::vector<float> work(rows * grouped * (width + kQueryWork)), sums(rows * grouped);
    std::vector<AttentionQuery> queries(rows * grouped);
    for (std::size_t head = 0; head < kv_heads; ++head) {
        for (std::size_t i = 0; i < queries.size(); ++i) {
            const std::size_t at = (i / grouped * heads + head * grouped + i % grouped) * width;
            queries[i] = {q.data() + at, out.data() + at, start + static_cast<std::int64_t>(i / grouped) + 1};
        }
        const std::size_t from = head * keys.shape(1) * width;
        const std::vector<std::uint16_t> grouped_keys = in_groups(keys.data() + from, keys.shape(1), width);
        find_variant(isa).attention({queries.data(), static_cast<int>(queries.size()), static_cast<int>(width),
                                     grouped_keys.data(), values.data() + from, scores.data(), stride, block.data(),
                                     work.data(), sums.data()});
    }
    return out;
}

Out<float> swiglu(const Vector& gate, const Vector& up, const std::string& isa) {
    const FloatEnvironment environment;
    require(gate.size() == up.size() && gate.size() % 8 == 0, "gate and up must have one size, a multiple of 8");
    Out<float> out = new_array<float>({gate.size()});
    find_variant(isa).swiglu(gate.data(), up.data(), static_cast<std::int64_t>(gate.size()), out.data());
    return out;
}

Out<float> exponential(const Vector& x, const std::string& isa) {
    const FloatEnvironment environment;
    Out<float> out = new_array<float>({x.size()});
    find_variant(isa).exponential(x.data(), static_cast<std::int64_t>(x.size()), out.data());
    return out;
}

std::int32_t argmax(const Vector& x, const std::string& isa) {
    const FloatEnvironment environment;
    require(x.size() > 0, "argmax of nothing");
    std::int32_t best = 0;
    require_finite(find_variant(isa).argmax(x.data(), static_cast<std::int64_t>(x.size()), &best), "the logits");
    return best;
}

Out<std::uint16_t> to_half(const Vector& x, const std::string& isa) {
    const FloatEnvironment environment;
    require(x.size() % 8 == 0, "halves are made eight at a time");
    Out<std::uint16_t> out = new_array<std::uint16_t>({x.size()});
    require_finite(find_variant(isa).to_half(x.data(), static_cast<std::int64_t>(x.size()), out.data()), "the keys");
    return out;
}

// a b + c with one rounding, element by element: the one primitive numpy lacks for the reference twins
Out<float> fused_multiply_add(const Vector& a, const Vector& b, const Vector& c) {
    const FloatEnvironment environment;
    require(a.size() == b.size() && a.size() == c.size(), "the three arrays differ in size");
    Out<float> out = new_array<float>({a.size()});
    for (std::size_t i = 0; i < a.size(); ++i) {
        out.data()[i] = std::fma(a.data()[i], b.data()[i], c.data()[i]);
    }
    return out;
}

std::vector<std::string> variant_names() {
    std::vector<std::string> names;
    for (const Ops* ops : usable_variants()) {
        names.emplace_back(ops->name);
    }
    return names;
}

} // namespace

void bind_ops(nb::module_& module) {
    module.def("variants", &variant_names);
    module.def("variant_notes", [] { return variant_notes(); });
    module.def("quantise_rows", &quantise_rows, nb::arg("x"), nb::arg("isa"));
    module.def("linear", &linear, nb::arg("type"), nb::arg("packed"), nb::arg("n"), nb::arg("x"),
               nb::arg("bias").none(), nb::arg("isa"), nb::arg("threads"));
    module.def("rmsnorm", &rmsnorm, nb::arg("x"), nb::arg("weight"), nb::arg("eps"), nb::arg("isa"));
    module.def("rope", &rope, nb::arg("x"), nb::arg("cosines"), nb::arg("sines"), nb::arg("halves"), nb::arg("isa"));
    module.def("rope_table", &table, nb::arg("head_dim"), nb::arg("base"), nb::arg("factors").none(),
               nb::arg("begin"), nb::arg("end"));
    module.def("attention", &attention, nb::arg("q"), nb::arg("keys"), nb::arg("values"), nb::arg("start"),
               nb::arg("isa"));
    module.def("swiglu", &swiglu, nb::arg("gate"), nb::arg("up"), nb::arg("isa"));
    module.def("exponential", &exponential, nb::arg("x"), nb::arg("isa"));
    module.def("argmax", &argmax, nb::arg("x"), nb::arg("isa"));
    module.def("to_half", &to_half, nb::arg("x"), nb::arg("isa"));
    module.def("fma", &fused_multiply_add, nb::arg("a"), nb::arg("b"), nb::arg("c"));
}

} // namespace redraft
