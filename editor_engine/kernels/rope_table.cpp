// See rope_table.h.
#include "rope_table.h"

#include <cstring>

namespace redraft {

namespace {

constexpr double kLn2High = 0x1.62e42fefa38p-1; // 42 bits: a small integer times it is exact
constexpr double kLn2Low = 0x1.ef35793c7673p-45;
constexpr double kHalfPiHigh = 0x1.921fb544p+0; // 33 bits: an integer up to 2^20 times it is exact
constexpr double kHalfPiMiddle = 0x1.0b4611a6p-34;
constexpr double kHalfPiLow = 0x1.3198a2e037073p-69;

std::int64_t nearest_integer(double x) {
    return static_cast<std::int64_t>(x < 0.0 ? x - 0.5 : x + 0.5); // the cast truncates
}

// x > 0: x = 2^e m, 1 <= m < 2; ln m = 2 artanh((m-1)/(m+1)) by its series
double natural_log(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, 8);
    const int exponent = static_cast<int>(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL;
    double m;
    std::memcpy(&m, &bits, 8);
    const double t = (m - 1.0) / (m + 1.0);
    const double square = t * t;
    double sum = 0.0;
    for (int n = 41; n >= 1; n -= 2) { // t <= 1/3: the first term left out is below 1e-21
        sum = sum * square + 1.0 / static_cast<double>(n);
    }
    const double e = static_cast<double>(exponent);
    return e * kLn2High + (e * kLn2Low + 2.0 * t * sum);
}

// |x| < 700: x = n ln2 + r, the Taylor series in r, times 2^n
double exponential(double x) {
    const std::int64_t n = nearest_integer(x / (kLn2High + kLn2Low));
    const double r = (x - static_cast<double>(n) * kLn2High) - static_cast<double>(n) * kLn2Low;
    double sum = 1.0;
    for (int k = 18; k >= 1; --k) {
        sum = 1.0 + sum * r / static_cast<double>(k);
    }
    const std::uint64_t bits = static_cast<std::uint64_t>(n + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, 8);
    return sum * power;
}

// |x| <= pi/4 and a little
double sine(double x) {
    const double square = x * x;
    double sum = 1.0;
    for (int k = 20; k >= 2; k -= 2) {
        sum = 1.0 - sum * square / static_cast<double>(k * (k + 1));
    }
    return x * sum;
}

double cosine(double x) {
    const double square = x * x;
    double sum = 1.0;
    for (int k = 21; k >= 1; k -= 2) {
        sum = 1.0 - sum * square / static_cast<double>(k * (k + 1));
    }
    return sum;
}

} // namespace

std::vector<double> rope_frequencies(int head_dim, double base, const float* factors) {
    std::vector<double> frequencies(static_cast<std::size_t>(head_dim / 2));
    const double log_base = natural_log(base);
    for (int i = 0; i < head_dim / 2; ++i) {
        const double exponent = static_cast<double>(2 * i) / static_cast<double>(head_dim);
        double frequency = exponential(-(exponent * log_base));
        if (factors != nullptr) {
            frequency = frequency / static_cast<double>(factors[i]);
        }
        frequencies[static_cast<std::size_t>(i)] = frequency;
    }
    return frequencies;
}

void rope_table(const std::vector<double>& frequencies, std::int64_t begin, std::int64_t end, float* cosines,
                float* sines) {
    for (std::int64_t position = begin; position < end; ++position) {
        for (const double frequency : frequencies) {
            const double angle = static_cast<double>(position) * frequency;
            const std::int64_t quarter = nearest_integer(angle / (kHalfPiHigh + kHalfPiMiddle));
            const double n = static_cast<double>(quarter);
            const double r = ((angle - n * kHalfPiHigh) - n * kHalfPiMiddle) - n * kHalfPiLow;
            const double c = cosine(r);
            const double s = sine(r);
            const int turn = static_cast<int>(quarter & 3);
            const double cos_angle = turn == 0 ? c : (turn == 1 ? -s : (turn == 2 ? -c : s));
            const double sin_angle = turn == 0 ? s : (turn == 1 ? c : (turn == 2 ? -s : -c));
            *cosines++ = static_cast<float>(cos_angle);
            *sines++ = static_cast<float>(sin_angle);
        }
    }
}

} // namespace redraft
