// The file that names the applications of a server: apps.toml, as docs/scheduling.md describes it.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/followed_model.h"
#include "jobs/source.h"

namespace limber {

struct ServedApp {
  std::string name;
  std::string model;                                           // as ServedFolderOptions::path, of one model
  ImageOptions image;                                          // for models that have no record of their own
  double latency_s = std::numeric_limits<double>::infinity();  // budget of a request
  double importance = 1;
  double minimum_accuracy = 0;
  ServeAdaptOptions adapt;
  // What is written of it but importance and minimum: where that is another text, it is served anew.
  std::string served_as;
};

struct ServedApps {
  double window_s = 30;  // between two decisions at most, who may learn
  std::vector<ServedApp> apps;
};

inline constexpr size_t kMaxServedApps = 64;

// Messages name `path`, line, application, key, value, and what was expected. Paths in the text are relative
// to the folder of `path`; models and data must be there.
Result<ServedApps> parse_apps(std::string_view text, const std::string& path);
Result<ServedApps> read_apps(const std::string& path);

}  // namespace limber
