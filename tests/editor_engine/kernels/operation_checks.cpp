// Single operations: every variant, number of rows and number of threads gives the scalar twin's bits.
#include <limits>
#include <string>

#include "checks.h"
#include "pool.h"

namespace redraft {

Activations quantised(const Ops& ops, const Floats& x, std::int64_t rows, std::int64_t k) {
    Activations made(rows, k);
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t cut = k / 2 / kBlock * kBlock; // two parts, as the feed-forward part of a pass does
        const float* row = x.data() + r * k;
        expect(ops.quantise(row, r, 0, cut, made.view) && ops.quantise(row, r, cut, k, made.view),
               "finite activations are refused");
    }
    return made;
}

void check_packing(QuantType type, std::int64_t n, std::int64_t k, Random& random) {
    Bytes raw = random_matrix(type, n, k, random);
    const Bytes packed = packed_matrix(type, raw, n, k);
    Floats a(size(k)), b(size(k));
    const std::int64_t row_bytes = static_cast<std::int64_t>(raw.size()) / n;
    for (std::int64_t column = 0; column < n; ++column) {
        dequantise_row(type, raw.data() + column * row_bytes, k, a.data());
        unpack_column(type, packed.data(), column, k, b.data());
        expect(same(a, b), std::string("unpacking loses bits of ") + facts(type).name);
    }
    for (const std::uint8_t high : {0x7c, 0xfc, 0x7e}) { // the last block's scale infinite, negative infinite, NaN
        Bytes broken = raw;
        const std::size_t at = broken.size() - size(facts(type).bytes) + (type == QuantType::Q6_K ? 208 : 0);
        broken[at] = 0;
        broken[at + 1] = high;
        Bytes out(packed.size());
        expect(!pack_group(type, broken.data(), n, k, (n - 1) / kColumns, out.data()), "a scale that is no number");
    }
}

void check_linear(QuantType type, std::int64_t n, std::int64_t k, Random& random) {
    const Bytes packed = packed_matrix(type, random_matrix(type, n, k, random), n, k);
    const std::int64_t groups = (n + kColumns - 1) / kColumns;
    const std::int64_t stride = groups * kColumns;
    const Floats x = random.numbers(kMaxRows * k);
    const Floats bias = random.numbers(stride);
    const Floats residual = random.numbers(kMaxRows * stride);
    const auto run = [&](const Ops& ops, const Activations& q, std::int64_t begin, std::int64_t end, Pool* pool) {
        Floats out(residual.begin(), residual.begin() + static_cast<std::ptrdiff_t>(end * stride));
        const LinearCall call{packed.data(), group_bytes(type, k), 0,      groups, begin, end,
                              bias.data(),   out.data(),           stride, true};
        if (pool == nullptr) {
            ops.linear[static_cast<int>(type)](call, q.view);
            return out;
        }
        pool->run([&](int worker) {
            pool->phase(groups, worker, [&](std::int64_t g, int) {
                LinearCall part = call;
                part.group_begin = g;
                part.group_end = g + 1;
                ops.linear[static_cast<int>(type)](part, q.view);
            });
        });
        return out;
    };
    const Ops& scalar = *usable_variants().back();
    const Floats truth = run(scalar, quantised(scalar, x, kMaxRows, k), 0, kMaxRows, nullptr);
    for (const Ops* ops : usable_variants()) {
        const std::string where = std::string(ops->name) + " " + facts(type).name;
        // The scalar twin has no tiles of rows to get wrong, and is slow under the sanitizers.
        const std::int64_t step = ops == &scalar ? 21 : 1;
        for (std::int64_t rows = 1; rows <= kMaxRows; rows += step) {
            const Activations q = quantised(*ops, x, rows, k); // exactly as many rows: one read too far is seen
            expect(same(run(*ops, q, 0, rows, nullptr).data(), truth.data(), rows * stride), "rows, " + where);
            const Floats last = run(*ops, q, rows - 1, rows, nullptr);
            const std::int64_t at = (rows - 1) * stride;
            expect(same(last.data() + at, truth.data() + at, stride), "a row, " + where);
        }
        Pool pool(3);
        expect(same(run(*ops, quantised(*ops, x, kMaxRows, k), 0, kMaxRows, &pool), truth), "threads, " + where);
    }
}

void check_elementwise(const Ops& ops, Random& random) {
    const Ops& scalar = *usable_variants().back();
    const std::string where = std::string(" of ") + ops.name;
    for (std::int64_t n = 1; n <= 75; ++n) {
        const Floats x = random.numbers(n), w = random.numbers(n);
        Floats a(size(n)), b(size(n));
        scalar.exponential(x.data(), n, a.data());
        ops.exponential(x.data(), n, b.data());
        expect(same(a, b), "exp" + where);
        std::int32_t best_a = -1, best_b = -1;
        expect(scalar.argmax(x.data(), n, &best_a) && ops.argmax(x.data(), n, &best_b) && best_a == best_b,
               "argmax" + where);
        for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
            Floats broken = x;
            broken[size(n / 2)] = bad;
            expect(!ops.argmax(broken.data(), n, &best_b), "argmax takes what is no number" + where);
        }
        if (n % kLanes != 0) {
            continue;
        }
        scalar.rmsnorm(x.data(), w.data(), n, 1e-6f, a.data());
        ops.rmsnorm(x.data(), w.data(), n, 1e-6f, b.data());
        expect(same(a, b), "norm" + where);
        scalar.swiglu(x.data(), w.data(), n, a.data());
        ops.swiglu(x.data(), w.data(), n, b.data());
        expect(same(a, b), "swiglu" + where);
        const Floats cosines = random.numbers(n / 2), sines = random.numbers(n / 2);
        for (const auto rotate : {&Ops::rope_halves, &Ops::rope_pairs}) {
            a = b = x;
            (scalar.*rotate)(a.data(), cosines.data(), sines.data(), static_cast<int>(n));
            (ops.*rotate)(b.data(), cosines.data(), sines.data(), static_cast<int>(n));
            expect(same(a, b), "rotation" + where);
        }
        Halves ha(size(n)), hb(size(n));
        expect(scalar.to_half(x.data(), n, ha.data()) && ops.to_half(x.data(), n, hb.data()) && same(ha, hb),
               "halves" + where);
        a[size(n - 1)] = 65520.0f;
        expect(!ops.to_half(a.data(), n, hb.data()), "a half that would be infinite" + where);
    }
    Activations q(1, 352);
    for (const std::int64_t at : {0, 31, 32, 351}) {
        Floats x = random.numbers(352);
        x[size(at)] = std::numeric_limits<float>::quiet_NaN();
        expect(!ops.quantise(x.data(), 0, 0, 352, q.view), "activations that are no number" + where);
        using Limits = std::numeric_limits<float>;
        const Floats extremes(352, at % 2 == 0 ? Limits::max() : Limits::denorm_min());
        expect(ops.quantise(extremes.data(), 0, 0, 352, q.view), "extreme activations" + where);
    }
}

Floats attend(const Ops& ops, const Floats& q, const Halves& keys, const Halves& values, int dim,
              std::int64_t positions, int count) {
    const std::int64_t stride = (positions + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
    Floats out(q.size()), scores(size(count * stride)), block(size(kKeyBlock * dim)), sums(size(count));
    Floats work(size(static_cast<std::int64_t>(count) * (dim + kQueryWork)));
    std::vector<AttentionQuery> queries;
    for (int i = 0; i < count; ++i) {
        const std::int64_t seen = positions - (count - 1 - i) > 0 ? positions - (count - 1 - i) : 1;
        queries.push_back({q.data() + i * dim, out.data() + i * dim, seen});
    }
    ops.attention({queries.data(), count, dim, keys.data(), values.data(), scores.data(), stride, block.data(),
                   work.data(), sums.data()});
    return out;
}

void check_attention(const Ops& ops, Random& random) {
    const Ops& scalar = *usable_variants().back();
    for (const int dim : {8, 104}) {
        for (const std::int64_t positions : {1, 7, 8, 64, 65, 129}) {
            for (const int count : {1, 2, 3, 4, 5, 6, 20}) {
                const Floats q = random.numbers(count * dim);
                const std::int64_t in_groups = (positions + kLanes - 1) / kLanes * kLanes;
                Halves keys(size(in_groups * dim)), values(size(positions * dim));
                const Floats source = random.numbers(in_groups * dim);
                expect(ops.to_half(source.data(), in_groups * dim, keys.data()), "halves of keys");
                expect(scalar.to_half(source.data(), positions * dim, values.data()), "halves of values");
                expect(same(attend(ops, q, keys, values, dim, positions, count),
                            attend(scalar, q, keys, values, dim, positions, count)),
                       std::string("attention of ") + ops.name);
            }
        }
    }
}

} // namespace redraft
