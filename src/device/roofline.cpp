#include "device/roofline.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/parallel.h"

namespace limber {
namespace {

// Independent accumulators: enough to hide the latency of a multiply-add on two pipes.
constexpr int kChains = 12;
// Time for several runs of a probe, of which the best counts.
constexpr double kSecondsPerProbe = 0.04;

template <typename Vector>
constexpr int kLanes = sizeof(Vector) / sizeof(float);

// One multiply-add per chain and round; the compiler keeps all chains in registers.
template <typename Vector>
[[gnu::always_inline]] inline float multiply_add_rounds(int64_t rounds) {
  Vector chains[kChains];
  const Vector scale = Vector{} + 0.999F;
  const Vector step = Vector{} + 0.001F;
  for (int c = 0; c < kChains; ++c) chains[c] = step * static_cast<float>(c);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) chains[c] = chains[c] * scale + step;
  }
  Vector sum = chains[0];
  for (int c = 1; c < kChains; ++c) sum += chains[c];
  float total = 0;
  for (int lane = 0; lane < kLanes<Vector>; ++lane) total += sum[lane];
  return total;
}

using Float4 [[gnu::vector_size(16)]] = float;
using Float8 [[gnu::vector_size(32)]] = float;
using Float16 [[gnu::vector_size(64)]] = float;

struct FlopsProbe {
  float (*run)(int64_t rounds);
  int lanes;
};

#if defined(__x86_64__)
[[gnu::target("avx512f")]] float rounds_avx512(int64_t rounds) {
  return multiply_add_rounds<Float16>(rounds);
}
[[gnu::target("avx2,fma")]] float rounds_avx2(int64_t rounds) { return multiply_add_rounds<Float8>(rounds); }
#endif
float rounds_generic(int64_t rounds) { return multiply_add_rounds<Float4>(rounds); }

FlopsProbe widest_probe() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {rounds_avx512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {rounds_avx2, 8};
#endif
  return {rounds_generic, 4};
}

// Best of repeated runs within the time of one probe: the ceiling, not the average.
template <typename Body>
double best_seconds(const Body& body) {
  double best = 1e30;
  const double stop = now_seconds() + kSecondsPerProbe;
  for (int i = 0; i < 3 || now_seconds() < stop; ++i) {
    const double start = now_seconds();
    body();
    best = std::min(best, now_seconds() - start);
    if (i > 0 && now_seconds() > stop + 2 * kSecondsPerProbe) break;
  }
  return best;
}

double measure_flops(int threads) {
  // Times kChains: about a million cycles on two pipes, many of them within a probe.
  constexpr int64_t kRounds = 200'000;
  const FlopsProbe probe = widest_probe();
  std::vector<float> sink(static_cast<size_t>(threads));
  const double seconds = best_seconds([&] {
    parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sink[static_cast<size_t>(i)] = probe.run(kRounds);
    });
  });
  return 2.0 * kChains * probe.lanes * static_cast<double>(kRounds) * threads / seconds;
}

struct Streams {
  std::vector<float> a, b, c;
};

double measure_copy(Streams& s) {
  const auto count = static_cast<int64_t>(s.a.size());
  const double seconds = best_seconds([&] {
    parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
      std::memcpy(s.a.data() + begin, s.b.data() + begin, static_cast<size_t>(end - begin) * sizeof(float));
    });
  });
  return 2.0 * static_cast<double>(count) * sizeof(float) / seconds;
}

double measure_triad(Streams& s) {
  const auto count = static_cast<int64_t>(s.a.size());
  const double seconds = best_seconds([&] {
    parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
      float* a = s.a.data();
      const float* b = s.b.data();
      const float* c = s.c.data();
      for (int64_t i = begin; i < end; ++i) a[i] = b[i] + 0.5F * c[i];
    });
  });
  return 3.0 * static_cast<double>(count) * sizeof(float) / seconds;
}

}  // namespace

double Roofline::seconds(double work_flops, double work_bytes) const {
  return std::max(flops > 0 ? work_flops / flops : 0, bytes() > 0 ? work_bytes / bytes() : 0);
}

Roofline measure_roofline(int threads) {
  constexpr size_t kStreamFloats = size_t{4} << 20;  // 16 MiB each: beyond what one core has for itself
  const double start = now_seconds();
  const ThreadScope scope(threads);
  Roofline roofline;
  roofline.threads = std::max(1, threads);
  roofline.flops = measure_flops(roofline.threads);
  Streams streams{std::vector<float>(kStreamFloats, 1.F), std::vector<float>(kStreamFloats, 2.F),
                  std::vector<float>(kStreamFloats, 3.F)};
  roofline.copy_bytes = measure_copy(streams);
  roofline.triad_bytes = measure_triad(streams);
  roofline.measure_seconds = now_seconds() - start;
  return roofline;
}

}  // namespace limber
