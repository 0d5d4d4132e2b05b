// The CPU backend: oneDNN for convolution, matrix products and pooling, own vectorised kernels for the
// rest. This header names no oneDNN type; only this folder sees oneDNN's headers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/backend.h"

namespace limber {

struct CpuOptions {
  int threads = 1;         // kernels are chosen and built for this many
  bool tune = false;       // time the candidates of every layer; otherwise oneDNN's first choice
  std::string cache_file;  // where timings are kept between processes; empty: nowhere
};

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);
// What a cache file holds, of all machines; nothing when it cannot be read.
struct TuneCacheCounts {
  int64_t machines = 0, entries = 0;
};
std::optional<TuneCacheCounts> count_tune_cache(const std::string& cache_file);
std::string cpu_backend_version();  // "oneDNN 2.6.3 (avx512_core_amx)"

}  // namespace limber
