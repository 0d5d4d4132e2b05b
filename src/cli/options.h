// Options that several commands have, and what they lead to.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/engine.h"

namespace limber {

enum class Tuning : uint8_t { kAuto, kOn, kOff };

struct CommonOptions {
  std::string model;
  int threads = 0;
  int64_t batch = 0;
  std::map<std::string, int64_t> dims;
  std::map<std::string, std::vector<int64_t>> shapes;
  bool json = false;
  uint64_t seed = 0;
  Tuning tune = Tuning::kAuto;
  std::string tune_cache = default_tune_cache();
  bool reference = false;
  bool optimize = true;
};

// MODEL, --json, --log-level.
void add_model_options(CLI::App& command, CommonOptions& options);
// --threads, --batch, --dim, --shape, --tune, --tune-cache, --backend, --seed.
void add_build_options(CLI::App& command, CommonOptions& options);

Result<Model> load(const CommonOptions& options);
// `auto_tunes`: what --tune auto means for this command.
Result<std::shared_ptr<const Plan>> build(const Model& model, const CommonOptions& options, bool auto_tunes);
// Uniform in [0, 1) for floats, small non-negative numbers for integers; the same for a seed.
void fill_random(Session& session, uint64_t seed);

// "1x3x224x224" or "1,3,224,224"; "?" or "-1" for a dimension that stays. Throws CLI::ValidationError.
std::vector<int64_t> parse_dims(const std::string& text);
// "NAME=REST" -> {NAME, REST}. Throws CLI::ValidationError.
std::pair<std::string, std::string> parse_assignment(const std::string& option, const std::string& text);

}  // namespace limber
