// NEON attention in tiles (tiled_attention.h) of vectors of four.
#include "lanes.h"

#include "../tiled_attention.h"
#include "../vector.h"

namespace redraft::neon {

namespace {

struct Floats4 {
    using Vector = float32x4_t;
    using Narrow = Floats4;
    static constexpr int kWidth = 4;
    static Vector load(const float* at) { return vld1q_f32(at); }
    static void store(float* at, Vector v) { vst1q_f32(at, v); }
    static Vector spread(float x) { return vdupq_n_f32(x); }
    static Vector add(Vector a, Vector b) { return vaddq_f32(a, b); }
    static Vector mul(Vector a, Vector b) { return vmulq_f32(a, b); }
    static Vector div(Vector a, Vector b) { return vdivq_f32(a, b); }
    static Vector max(Vector a, Vector b) { return vmaxq_f32(a, b); }
    static Vector fma(Vector a, Vector b, Vector c) { return vfmaq_f32(c, a, b); }
    static Vector exp(Vector x) { return exp4(x); }
    static void widen8(const std::uint16_t* halves, float* out) { store8(out, halves8(halves)); }
    static void add_lanes(float* lanes, const float* terms, std::int64_t n) {
        Eight sum = load8(lanes);
        for (std::int64_t j = 0; j < n; j += kLanes) {
            sum = add8(sum, load8(terms + j));
        }
        store8(lanes, sum);
    }
    static float sum_lanes(const float* lanes) { return combine_lanes(load8(lanes)); }
};

} // namespace

void attention(const AttentionCall& call) {
    tiled_attention<Floats4>(call, 1.0f / square_root(static_cast<float>(call.head_dim)));
}

} // namespace redraft::neon
