// The CPU backend: oneDNN for convolution, matrix products and pooling, own vectorised kernels for the
// rest. This header names no oneDNN type; only this folder sees oneDNN's headers.
#pragma once

#include <memory>
#include <string>

#include "runtime/backend.h"

namespace limber {

struct CpuOptions {
  int threads = 1;         // kernels are chosen and built for this many
  bool tune = false;       // time the candidates of every layer; otherwise oneDNN's first choice
  std::string cache_file;  // where timings are kept between processes; empty: nowhere
};

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);
std::string cpu_backend_version();  // "oneDNN 2.6.3 (avx512_core_amx)"

}  // namespace limber
