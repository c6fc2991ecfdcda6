// Half precision in software, for files built for the baseline.
//
// Functions are static, so each file has its own copy. Invariant: round to nearest even, denormals kept, the same
// values as the hardware conversion.
#pragma once

#include <cstdint>
#include <cstring>

namespace redraft {

static inline float half_to_float(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    const std::uint32_t exponent = (half >> 10) & 31u;
    const std::uint32_t fraction = half & 1023u;
    std::uint32_t bits;
    if (exponent == 31) {
        bits = sign | 0x7f800000u | (fraction << 13);
    } else if (exponent != 0) {
        bits = sign | ((exponent + 112u) << 23) | (fraction << 13);
    } else {
        const float tiny = static_cast<float>(fraction) * 0x1p-24f; // exact
        std::memcpy(&bits, &tiny, 4);
        bits |= sign;
    }
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

// Finite values beyond the largest half become infinity, as rounding to nearest says.
static inline std::uint16_t float_to_half(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return static_cast<std::uint16_t>(sign | 0x7e00u);
    }
    if (magnitude >= 0x477ff000u) { // 65520 and up
        return static_cast<std::uint16_t>(sign | 0x7c00u);
    }
    const std::uint32_t exponent = magnitude >> 23;
    if (exponent < 113) { // below the smallest normal half: a multiple of 2^-24
        if (exponent < 102) {
            return static_cast<std::uint16_t>(sign);
        }
        const std::uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
        const std::uint32_t shift = 126u - exponent;
        const std::uint32_t kept = fraction >> shift;
        const std::uint32_t rest = fraction & ((1u << shift) - 1u);
        const std::uint32_t half_way = 1u << (shift - 1u);
        const std::uint32_t up = (rest > half_way || (rest == half_way && (kept & 1u) != 0)) ? 1u : 0u;
        return static_cast<std::uint16_t>(sign | (kept + up));
    }
    const std::uint32_t rebased = magnitude - (112u << 23);
    const std::uint32_t rounded = rebased + 0xfffu + ((rebased >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

} // namespace redraft
