// What the machine can do at most: bytes read per second from memory, multiply-adds per second in 8 bits and in fp32.
//
// The peaks of the floors in kernels/NOTES.md. Not part of the extension; built and run by hand:
//   c++ -std=c++20 -O2 -march=native -pthread machine_limits.cpp -o machine_limits && ./machine_limits 2
// Reads 256 MiB per thread with four streams of 32 bytes and 4 KiB of prefetch; multiplies in registers, an operation
// being one multiply or one add. Prints median and best of 9 runs, by the clock and by the processor time of the
// threads: where other work runs only the second says what the machine could do.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include <immintrin.h>

namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr std::int64_t kSteps = 24'000'000;
constexpr int kChains = 12;
constexpr int kRuns = 9;
std::atomic<int> sink{0}; // keeps the loops from being dropped

__m256i at(const std::uint8_t* bytes) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes)); }

void take(__m256i value) { sink.fetch_add(_mm256_extract_epi32(value, 0), std::memory_order_relaxed); }

void read_all(const std::uint8_t* bytes) {
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (std::size_t i = 0; i < kBytes; i += 128) {
        _mm_prefetch(reinterpret_cast<const char*>(bytes + std::min(i + 4096, kBytes - 1)), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(bytes + std::min(i + 4160, kBytes - 1)), _MM_HINT_T0);
        a = _mm256_or_si256(a, at(bytes + i));
        b = _mm256_or_si256(b, at(bytes + i + 32));
        c = _mm256_or_si256(c, at(bytes + i + 64));
        d = _mm256_or_si256(d, at(bytes + i + 96));
    }
    take(_mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d)));
}

// Twelve chains of `step`, enough to hide the latency of two such units. The empty asm keeps every step in the loop.
template <typename Vector, typename Step> void chains(const Step& step) {
    Vector sums[kChains] = {}, inputs[kChains] = {}, weights = {};
    for (Vector& input : inputs) {
        asm volatile("" : "+v"(input));
    }
    for (std::int64_t i = 0; i < kSteps / kChains; ++i) {
        asm volatile("" : "+v"(weights));
#pragma GCC unroll 12
        for (int c = 0; c < kChains; ++c) {
            sums[c] = step(sums[c], weights, inputs[c]);
        }
    }
    for (Vector& sum : sums) {
        asm volatile("" : "+v"(sum));
    }
}

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> rates) {
    std::sort(rates.begin(), rates.end());
    return rates[rates.size() / 2];
}

void report(const char* what, const char* unit, int threads, double amount, const std::function<void(int)>& work) {
    std::vector<double> wall, cpu;
    for (int run = 0; run < kRuns; ++run) {
        const auto begin = std::chrono::steady_clock::now();
        const double before = cpu_seconds();
        std::vector<std::thread> others;
        for (int t = 1; t < threads; ++t) {
            others.emplace_back(work, t);
        }
        work(0);
        for (std::thread& other : others) {
            other.join();
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        wall.push_back(amount * threads / took.count() / 1e9);
        cpu.push_back(amount * threads / (cpu_seconds() - before) * threads / 1e9);
    }
    std::printf("%-8s %d threads: wall median %6.1f, best %6.1f; by processor time median %6.1f, best %6.1f %s\n", what,
                threads, median(wall), *std::max_element(wall.begin(), wall.end()), median(cpu),
                *std::max_element(cpu.begin(), cpu.end()), unit);
}

} // namespace

int main(int argc, char** argv) {
    const int most = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
    std::vector<std::uint8_t*> buffers;
    for (int t = 0; t < most; ++t) {
        buffers.push_back(static_cast<std::uint8_t*>(std::aligned_alloc(4096, kBytes)));
        std::fill_n(buffers.back(), kBytes, static_cast<std::uint8_t>(t + 1));
    }
    for (int threads = 1; threads <= most; ++threads) {
        report("read", "GB/s", threads, static_cast<double>(kBytes), [&](int t) { read_all(buffers[size_t(t)]); });
        report("maddubs", "Gop/s", threads, 64.0 * kSteps, [](int) {
            chains<__m256i>([](__m256i sum, __m256i w, __m256i x) {
                return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x));
            });
        });
        report("fma 256", "Gop/s", threads, 16.0 * kSteps, [](int) {
            chains<__m256>([](__m256 sum, __m256 w, __m256 x) { return _mm256_fmadd_ps(w, x, sum); });
        });
#if defined(__AVX512F__)
        report("fma 512", "Gop/s", threads, 32.0 * kSteps, [](int) {
            chains<__m512>([](__m512 sum, __m512 w, __m512 x) { return _mm512_fmadd_ps(w, x, sum); });
        });
#endif
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
        report("vpdpbusd", "Gop/s", threads, 64.0 * kSteps, [](int) {
            chains<__m256i>([](__m256i sum, __m256i w, __m256i x) { return _mm256_dpbusd_epi32(sum, w, x); });
        });
#endif
    }
    for (std::uint8_t* buffer : buffers) {
        std::free(buffer);
    }
    return 0;
}
