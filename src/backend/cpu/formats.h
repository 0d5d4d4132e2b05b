// Operators that are not convolutions, run in the layouts convolutions like, so that no reorder is
// needed between them.
#pragma once

#include <functional>
#include <optional>

#include "backend/cpu/onednn.h"

namespace limber {

// A way to run a node in some layouts; `make` builds the kernel.
struct FormatWay {
  std::vector<Layout> inputs, outputs;
  std::string impl;
  bool view = false;
  int may_alias = -1;
  double cost_factor = 1;
  std::function<Result<std::unique_ptr<Kernel>>()> make;
};

// Ways to run `node` in which an activation has format `format` (never kPlain). Empty when there is none.
std::vector<FormatWay> format_ways(const Graph& graph, const Node& node, onednn::Format format,
                                   onednn::Library& library);

// `node` in `layout`, in which tensors of the type of input 0 have `elements` numbers, padding included: see
// Backend::element_wise.
std::optional<FormatWay> element_wise_way(const Graph& graph, const Node& node, Layout layout,
                                          int64_t elements);

// Pooling in plain layout, which oneDNN also does.
std::optional<FormatWay> plain_pooling(const Graph& graph, const Node& node, onednn::Library& library);

// A kernel that may be used by several plans.
std::unique_ptr<Kernel> shared_kernel(std::shared_ptr<const Kernel> kernel);

}  // namespace limber
