// One group of 8 columns or, with AVX-512 VNNI, two of them side by side, under one set of names: what linear.cpp and
// widths.h need of integers beside the floats of floats.h.
//
// `at` is a place in the first group's data and `gap` how many bytes further the same place of the second group is.
// Invariant: a lane of two groups does what the lane of one does, so both give the same bits.
#pragma once

#include "floats.h"

#include "../vector.h"

#include <immintrin.h>

namespace redraft::REDRAFT_ISA {

namespace {

struct OneGroup {
    using Ints = __m256i;
    using Floats = Floats8;
    static constexpr int kGroups = 1;
    static Ints load(const std::uint8_t* at, std::int64_t) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    }
    static __m256 halves(const std::uint8_t* at, std::int64_t) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    }
    static __m256 unsigned_bytes(const std::uint8_t* at, std::int64_t) {
        return to_floats(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
    }
    static __m256 signed_bytes(const std::uint8_t* at, std::int64_t) {
        return to_floats(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
    }
    static Ints bytes(char x) { return _mm256_set1_epi8(x); }
    static Ints spread(std::int32_t x) { return _mm256_set1_epi32(x); }
    static Ints zero() { return _mm256_setzero_si256(); }
    static Ints both(Ints a, Ints b) { return _mm256_and_si256(a, b); }
    static Ints either(Ints a, Ints b) { return _mm256_or_si256(a, b); }
    static Ints differ(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
    static Ints sub(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
    template <int bits> static Ints left16(Ints a) { return _mm256_slli_epi16(a, bits); }
    template <int bits> static Ints right16(Ints a) { return _mm256_srli_epi16(a, bits); }
    template <int bits> static Ints left32(Ints a) { return _mm256_slli_epi32(a, bits); }
    static __m256 to_floats(Ints a) { return _mm256_cvtepi32_ps(a); }
    // sum + four products per lane, of unsigned weights with signed activations
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    static Ints add_dot(Ints sum, Ints w, Ints x) { return _mm256_dpbusd_epi32(sum, w, x); }
#elif defined(__AVXVNNI__)
    static Ints add_dot(Ints sum, Ints w, Ints x) { return _mm256_dpbusd_avx_epi32(sum, w, x); }
#endif
};

#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
struct TwoGroups {
    using Ints = __m512i;
    using Floats = Floats16;
    static constexpr int kGroups = 2;
    static Ints load(const std::uint8_t* at, std::int64_t gap) {
        return _mm512_inserti64x4(_mm512_castsi256_si512(OneGroup::load(at, 0)), OneGroup::load(at + gap, 0), 1);
    }
    static __m512 halves(const std::uint8_t* at, std::int64_t gap) {
        const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + gap));
        return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1));
    }
    static __m512 unsigned_bytes(const std::uint8_t* at, std::int64_t gap) {
        return to_floats(_mm512_cvtepu8_epi32(sixteen(at, gap)));
    }
    static __m512 signed_bytes(const std::uint8_t* at, std::int64_t gap) {
        return to_floats(_mm512_cvtepi8_epi32(sixteen(at, gap)));
    }
    static Ints bytes(char x) { return _mm512_set1_epi8(x); }
    static Ints spread(std::int32_t x) { return _mm512_set1_epi32(x); }
    static Ints zero() { return _mm512_setzero_si512(); }
    static Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
    static Ints either(Ints a, Ints b) { return _mm512_or_si512(a, b); }
    static Ints differ(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
    static Ints sub(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
    template <int bits> static Ints left16(Ints a) { return _mm512_slli_epi16(a, bits); }
    template <int bits> static Ints right16(Ints a) { return _mm512_srli_epi16(a, bits); }
    template <int bits> static Ints left32(Ints a) { return _mm512_slli_epi32(a, bits); }
    static __m512 to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
    static Ints add_dot(Ints sum, Ints w, Ints x) { return _mm512_dpbusd_epi32(sum, w, x); }

private:
    static __m128i sixteen(const std::uint8_t* at, std::int64_t gap) {
        const __m128i first = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
        const __m128i second = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at + gap));
        return _mm_unpacklo_epi64(first, second);
    }
};
#endif

} // namespace

} // namespace redraft::REDRAFT_ISA
