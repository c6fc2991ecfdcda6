// Eight fp32 lanes as two NEON vectors, and the pieces more than one file here needs; all static.
//
// Invariant: the same operations in the same order as scalar/rows.cpp, eight at a time.
#pragma once

#include <arm_neon.h>
#include <cstdint>

namespace redraft::neon {

struct Eight {
    float32x4_t low, high; // lanes 0-3 and 4-7
};

static inline Eight load8(const float* at) { return {vld1q_f32(at), vld1q_f32(at + 4)}; }

static inline void store8(float* at, Eight v) {
    vst1q_f32(at, v.low);
    vst1q_f32(at + 4, v.high);
}

static inline Eight spread8(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }

static inline Eight add8(Eight a, Eight b) { return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }

static inline Eight mul8(Eight a, Eight b) { return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }

static inline Eight negate8(Eight a) { return {vnegq_f32(a.low), vnegq_f32(a.high)}; }

// a * b + c, rounded once
static inline Eight fma8(Eight a, Eight b, Eight c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}

static inline Eight halves8(const std::uint16_t* at) {
    const float16x8_t half = vreinterpretq_f16_u16(vld1q_u16(at));
    return {vcvt_f32_f16(vget_low_f16(half)), vcvt_high_f32_f16(half)};
}

// ((l0+l4) + (l2+l6)) + ((l1+l5) + (l3+l7))
static inline float combine_lanes(Eight lanes) {
    const float32x4_t quad = vaddq_f32(lanes.low, lanes.high);
    const float32x2_t pair = vadd_f32(vget_low_f32(quad), vget_high_f32(quad));
    return vget_lane_f32(pair, 0) + vget_lane_f32(pair, 1);
}

static inline float square_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }

// The select keeps a NaN of x, as the scalar comparison does.
static inline float32x4_t exp4(float32x4_t x) {
    const float32x4_t magic = vdupq_n_f32(12582912.0f);
    const float32x4_t limit = vdupq_n_f32(88.0f);
    const float32x4_t top = vbslq_f32(vcltq_f32(limit, x), limit, x);
    const float32x4_t shifted = vfmaq_f32(magic, top, vdupq_n_f32(0x1.715476p+0f));
    const float32x4_t n = vsubq_f32(shifted, magic);
    const float32x4_t partial = vfmaq_f32(top, n, vdupq_n_f32(-0x1.62e4p-1f));
    const float32x4_t r = vfmaq_f32(partial, n, vdupq_n_f32(-0x1.7f7d1cp-20f));
    float32x4_t p = vdupq_n_f32(0x1.a01a02p-13f);
    p = vfmaq_f32(vdupq_n_f32(0x1.6c16c2p-10f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.111112p-7f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.555556p-5f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.555556p-3f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0.5f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    const uint32x4_t bits = vshlq_n_u32(vaddq_u32(vreinterpretq_u32_f32(shifted), vdupq_n_u32(127)), 23);
    const float32x4_t result = vmulq_f32(p, vreinterpretq_f32_u32(bits));
    return vbslq_f32(vcltq_f32(x, vdupq_n_f32(-87.0f)), vdupq_n_f32(0.0f), result);
}

// All bits set in the lanes that are finite.
static inline uint32x4_t finite4(float32x4_t x) { return vcaleq_f32(x, vdupq_n_f32(0x1.fffffep+127f)); }

} // namespace redraft::neon
