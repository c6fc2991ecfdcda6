// Attention in tiles (tiled_attention.h) of the widest vectors the variant has.
#include "floats.h"
#include "lanes.h"

#include "../tiled_attention.h"
#include "../vector.h"

namespace redraft::REDRAFT_ISA {

namespace {

struct Attention : Widest {
    using Narrow = Floats8;
    static Vector exp(Vector x) { return exponential_of<Widest>(x); }
    static void widen8(const std::uint16_t* halves, float* out) {
        _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves))));
    }
    static void add_lanes(float* lanes, const float* terms, std::int64_t n) {
        __m256 sum = _mm256_loadu_ps(lanes);
        for (std::int64_t j = 0; j < n; j += kLanes) {
            sum = _mm256_add_ps(sum, _mm256_loadu_ps(terms + j));
        }
        _mm256_storeu_ps(lanes, sum);
    }
    static float sum_lanes(const float* lanes) { return combine_lanes(_mm256_loadu_ps(lanes)); }
};

} // namespace

void attention(const AttentionCall& call) {
    const __m128 root = _mm_sqrt_ss(_mm_set_ss(static_cast<float>(call.head_dim)));
    tiled_attention<Attention>(call, _mm_cvtss_f32(_mm_div_ss(_mm_set_ss(1.0f), root)));
}

} // namespace redraft::REDRAFT_ISA
