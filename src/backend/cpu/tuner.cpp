#include "backend/cpu/tuner.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "base/file.h"
#include "base/random.h"
#include "device/cpu.h"
#include "runtime/timing.h"

namespace limber {
namespace {

using nlohmann::json;

constexpr int kCacheVersion = 3;                     // of tune.json: goes up when entries mean something else
constexpr size_t kMaxCacheBytes = size_t{64} << 20;  // read of a file that anybody may have written

// The whole file, or an empty object when it is missing, damaged or of another version.
json read_cache(const std::string& file) {
  const auto text = os_files().read(file, kMaxCacheBytes);
  if (!text.ok()) return json::object();
  json data = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const bool ours = data.is_object() && data.contains("version") && data["version"] == kCacheVersion;
  return ours && data.contains("machines") && data["machines"].is_object() ? data : json::object();
}

std::optional<Timing> parse_timing(const json& row) {
  if (!row.is_array() || row.size() != 7) return std::nullopt;
  for (int i = 0; i < 5; ++i) {
    if (!row[static_cast<size_t>(i)].is_number_integer()) return std::nullopt;
  }
  if (!row[5].is_string() || !row[6].is_number()) return std::nullopt;
  const auto src = row[0].get<int64_t>(), dst = row[1].get<int64_t>();
  if (src < 0 || src > 3 || dst < 0 || dst > 3) return std::nullopt;
  // Variants (layers.h), implementations of one operation, tiers: numbers beyond these are nobody's.
  const auto variant = row[2].get<int64_t>(), index = row[3].get<int64_t>(), tier = row[4].get<int64_t>();
  if (variant < 0 || variant > 2 || index < 0 || index > 99 || tier < 0 || tier > 2) return std::nullopt;
  return Timing{static_cast<onednn::Format>(src),
                static_cast<onednn::Format>(dst),
                static_cast<int>(variant),
                static_cast<int>(index),
                static_cast<int>(tier),
                row[5].get<std::string>(),
                row[6].get<double>()};
}

// What is kept of each kind. A large network has some hundred layers and reorders; an entry takes some
// hundred bytes.
constexpr size_t kMostEntries = 50'000;

// Which one goes does not matter: it is measured again when it is wanted.
template <typename Map>
void limit(Map& entries) {
  while (entries.size() > kMostEntries) entries.erase(entries.begin());
}

}  // namespace

std::optional<TuneCacheCounts> count_tune_cache(const std::string& cache_file) {
  const json data = read_cache(cache_file);
  if (data.empty()) return std::nullopt;
  TuneCacheCounts counts;
  for (const json& machine : data.value("machines", json::object())) {
    ++counts.machines;
    for (const json& kind : machine) counts.entries += static_cast<int64_t>(kind.size());
  }
  return counts;
}

Tuner::Tuner(std::string cache_file, int threads)
    : file_(std::move(cache_file)),
      machine_(fmt::format("{} / {} threads / {}", cpu_info().name, threads, onednn::version())) {
  if (!file_.empty()) load();
}

Tuner::~Tuner() {
  if (changed_ && !file_.empty()) save();
}

void Tuner::load() {
  const json data = read_cache(file_);
  if (!data.contains("machines") || !data["machines"].contains(machine_)) return;
  const json& entries = data["machines"][machine_];
  if (!entries.is_object()) return;
  const json layers = entries.value("layers", json::object()),
             reorders = entries.value("reorders", json::object());
  for (const auto& [key, rows] : layers.items()) {
    std::vector<Timing> timings;
    if (!rows.is_array()) continue;
    for (const json& row : rows) {
      if (auto timing = parse_timing(row)) timings.push_back(*timing);
    }
    if (!timings.empty()) layers_[key] = std::move(timings);
  }
  const json choices = entries.value("plans", json::object());
  for (const auto& [key, choice] : choices.items()) {
    if (choice.is_number_integer()) choices_[key] = choice.get<int64_t>();
  }
  for (const auto& [key, seconds] : reorders.items()) {
    if (seconds.is_number()) reorders_[key] = seconds.get<double>();
  }
}

void Tuner::save() {
  json data = read_cache(file_);
  data["version"] = kCacheVersion;
  json& entries = data["machines"][machine_];
  if (!entries.is_object()) entries = json::object();
  for (const char* kind : {"layers", "reorders", "plans"}) {
    if (!entries[kind].is_object()) entries[kind] = json::object();
  }
  for (const auto& [key, timings] : layers_) {
    json rows = json::array();
    for (const Timing& t : timings) {
      rows.push_back(
          {static_cast<int>(t.src), static_cast<int>(t.dst), t.variant, t.index, t.tier, t.impl, t.seconds});
    }
    entries["layers"][key] = std::move(rows);
  }
  for (const auto& [key, seconds] : reorders_) entries["reorders"][key] = seconds;
  for (const auto& [key, choice] : choices_) entries["plans"][key] = choice;
  // Only a cache: when it cannot be written, the next process measures again.
  static_cast<void>(os_files().write(file_, data.dump()).ok());
}

std::optional<std::vector<Timing>> Tuner::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = layers_.find(key);
  return it == layers_.end() ? std::nullopt : std::optional(it->second);
}

void Tuner::keep(const std::string& key, std::vector<Timing> timings) {
  const std::lock_guard lock(mutex_);
  layers_[key] = std::move(timings);
  limit(layers_);
  changed_ = true;
}

std::optional<double> Tuner::find_reorder(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = reorders_.find(key);
  return it == reorders_.end() ? std::nullopt : std::optional(it->second);
}

void Tuner::keep_reorder(const std::string& key, double seconds) {
  const std::lock_guard lock(mutex_);
  reorders_[key] = seconds;
  limit(reorders_);
  changed_ = true;
}

std::optional<int64_t> Tuner::find_choice(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = choices_.find(key);
  return it == choices_.end() ? std::nullopt : std::optional(it->second);
}

void Tuner::keep_choice(const std::string& key, int64_t choice) {
  const std::lock_guard lock(mutex_);
  choices_[key] = choice;
  limit(choices_);
  changed_ = true;
}

namespace {

Result<std::shared_ptr<Buffer>> random_buffer(size_t bytes, uint64_t seed) {
  LIMBER_ASSIGN(auto buffer, Buffer::allocate(bytes));
  Random random(seed);
  auto* data = reinterpret_cast<float*>(buffer->data());
  // A short period is random enough for timing and much cheaper to make.
  constexpr size_t kPeriod = 4099;
  for (size_t i = 0; i < bytes / sizeof(float); ++i) {
    data[i] = i < kPeriod ? static_cast<float>(random.uniform(-1, 1)) : data[i - kPeriod];
  }
  return buffer;
}

struct Bench {
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<std::unique_ptr<BoundKernel>> kernels;  // the same one on several copies of the weights
};

Result<Bench> set_up(const onednn::Compiled& compiled, bool in_place, bool cold_weights) {
  constexpr size_t kColdBytes = size_t{48} << 20;  // of copies of weights: a run finds its own in no cache
  Bench bench;
  const auto make = [&](size_t bytes) -> Result<void*> {
    LIMBER_ASSIGN(auto buffer, random_buffer(bytes, bench.buffers.size()));
    bench.buffers.push_back(buffer);
    return static_cast<void*>(buffer->data());
  };
  KernelIo io;
  io.inputs.assign(std::max<size_t>(compiled.input_bytes.size(), 4), nullptr);
  for (size_t i = 0; i < compiled.input_bytes.size(); ++i) {
    if (compiled.input_bytes[i] > 0) {
      LIMBER_ASSIGN(io.inputs[i], make(compiled.input_bytes[i]));
    }
  }
  for (size_t bytes : compiled.output_bytes) {
    LIMBER_ASSIGN(void* output, make(bytes));
    io.outputs.push_back(output);
  }
  if (in_place) io.inputs[3] = io.outputs[0];
  LIMBER_ASSIGN(io.scratch, make(compiled.kernel->scratch_bytes()));
  const size_t weights = compiled.input_bytes.size() > 1 ? compiled.input_bytes[1] : 0;
  const size_t copies = weights == 0 || !cold_weights ? 1 : std::clamp<size_t>(kColdBytes / weights, 3, 64);
  for (size_t c = 0; c < copies; ++c) {
    if (c > 0) {
      LIMBER_ASSIGN(io.inputs[1], make(weights));
    }
    LIMBER_ASSIGN(auto bound, compiled.kernel->bind(io));
    bench.kernels.push_back(std::move(bound));
  }
  return bench;
}

}  // namespace

Result<double> time_kernel(const onednn::Compiled& compiled, bool in_place, bool cold_weights) {
  LIMBER_ASSIGN(Bench bench, set_up(compiled, in_place, cold_weights));
  size_t next = 0;
  const auto once = [&] {
    bench.kernels[next++ % bench.kernels.size()]->run();
    return Status();
  };
  // Hundreds of candidates are timed for one network: five runs of those that take long, 12 ms of the others.
  return time_quick(once, {.seconds = 0.012, .max_rounds = 60, .runs = 1, .warm_up = 1});
}

namespace {

// What one implementation makes of random data, weights and their gradient in plain layout.
Result<std::shared_ptr<Buffer>> result_of(onednn::Library& library, const onednn::Compiled& compiled,
                                          const TensorType& weights, bool gradient) {
  const Layout packed{compiled.weights_layout};
  const auto convert = [&](Layout from, const Buffer& src, Layout to, Buffer& dst) -> Status {
    LIMBER_ASSIGN(const onednn::Compiled reorder, library.reorder(weights, from, to));
    LIMBER_ASSIGN(const auto scratch, Buffer::allocate(reorder.kernel->scratch_bytes()));
    LIMBER_ASSIGN(const auto bound, reorder.kernel->bind({{src.data()}, {dst.data()}, scratch->data()}));
    bound->run();
    return {};
  };
  KernelIo io;
  io.inputs.assign(4, nullptr);
  std::vector<std::shared_ptr<Buffer>> kept;
  for (size_t i = 0; i < compiled.input_bytes.size(); ++i) {
    if (compiled.input_bytes[i] == 0) continue;
    const bool packs = i == 1 && !gradient && packed != kPlain;
    LIMBER_ASSIGN(auto buffer, random_buffer(packs ? weights.bytes() : compiled.input_bytes[i], 11 + i));
    if (packs) {
      LIMBER_ASSIGN(auto target, Buffer::allocate(compiled.input_bytes[i]));
      LIMBER_TRY(convert(kPlain, *buffer, packed, *target));
      buffer = std::move(target);
    }
    io.inputs[i] = buffer->data();
    kept.push_back(std::move(buffer));
  }
  LIMBER_ASSIGN(auto output, random_buffer(compiled.output_bytes[0], 13));
  LIMBER_ASSIGN(const auto scratch, Buffer::allocate(compiled.kernel->scratch_bytes()));
  io.outputs = {output->data()};
  io.scratch = scratch->data();
  LIMBER_ASSIGN(const auto bound, compiled.kernel->bind(std::move(io)));
  bound->run();
  if (!gradient || packed == kPlain) return output;
  LIMBER_ASSIGN(auto plain, Buffer::allocate(weights.bytes()));
  LIMBER_TRY(convert(packed, *output, kPlain, *plain));
  return plain;
}

}  // namespace

Result<double> difference(onednn::Library& library, const onednn::Compiled& a, const onednn::Compiled& b,
                          const TensorType& weights, bool gradient) {
  LIMBER_ASSIGN(const auto x_buffer, result_of(library, a, weights, gradient));
  LIMBER_ASSIGN(const auto y_buffer, result_of(library, b, weights, gradient));
  const size_t count = (gradient ? weights.bytes() : a.output_bytes[0]) / sizeof(float);
  double most = 0, largest = 0;
  const auto* x = reinterpret_cast<const float*>(x_buffer->data());
  const auto* y = reinterpret_cast<const float*>(y_buffer->data());
  for (size_t i = 0; i < count; ++i) {
    most = std::max(most, std::abs(static_cast<double>(x[i]) - y[i]));
    largest = std::max(largest, std::abs(static_cast<double>(y[i])));
  }
  return largest == 0 ? most : most / largest;
}

}  // namespace limber
