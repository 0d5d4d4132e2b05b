// From a model's name to a plan: what the public API and the commands share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/model.h"
#include "runtime/compile.h"
#include "runtime/session.h"

namespace limber {

struct LoadSpec {
  std::map<std::string, std::vector<int64_t>> shapes;  // input -> dimensions; -1 keeps the file's
  std::map<std::string, int64_t> symbols;              // named dimension -> value
  int64_t batch = 0;  // also replaces a first dimension that the file fixes; 0: leave it
  // Such a dimension is left open instead, where the model can be: what is saved of it takes any batch then.
  bool open_batch = false;
};

// A file, or "builtin:NAME".
Result<Model> load_model(const std::string& name, const LoadSpec& spec = {});
// The same model, with its weights as they are now, for another spec; reads nothing. `name` is for messages.
Result<Model> change_shapes(const Model& model, const std::string& name, const LoadSpec& spec);

// How a model is compiled, and with which backends: all cores, and less memory than a training may take,
// since the model may be anybody's.
struct BuildSpec : CompileSettings {
  BuildSpec() {
    threads = 0;
    max_bytes = size_t{16} << 30;
  }
  bool tune = false;
  std::string tune_cache;
  bool reference = false;  // only the slow, obvious kernels
};

// In the order compile() asks them.
std::vector<std::shared_ptr<Backend>> make_backends(const BuildSpec& spec);
Result<std::shared_ptr<const Plan>> build_plan(const Model& model, const BuildSpec& spec);

// $XDG_CACHE_HOME/limber/tune.json or ~/.cache/limber/tune.json; empty when neither is set.
std::string default_tune_cache();

int64_t parameter_elements(const Model& model);
std::vector<std::string> input_names(const Graph& graph);  // in order

// The candidate closest to `wrong`, or nothing when none is close: for "did you mean".
std::string closest(std::string_view wrong, const std::vector<std::string>& candidates);
// "no input named 'imge' (known: image, mask). Did you mean 'image'?"
Status no_such(std::string_view what, std::string_view wrong, const std::vector<std::string>& names);

}  // namespace limber
