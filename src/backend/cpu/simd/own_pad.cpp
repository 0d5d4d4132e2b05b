#include "backend/cpu/simd/indexed_rows.h"

namespace limber::own {
namespace {

// Which input index an output index reads when the axis begins `before` elements early.
std::vector<int64_t> source_indices(int64_t in, int64_t out, int64_t before, const std::string& mode) {
  std::vector<int64_t> table(static_cast<size_t>(out), kFill);
  for (int64_t i = 0; i < out; ++i) {
    int64_t s = i - before;
    if (mode == "edge") {
      s = std::clamp<int64_t>(s, 0, in - 1);
    } else if (mode == "reflect") {
      const int64_t period = std::max<int64_t>(1, 2 * (in - 1));
      s = ((s % period) + period) % period;
      s = s < in ? s : period - s;
    } else if (mode == "wrap") {
      s = ((s % in) + in) % in;
    }
    table[static_cast<size_t>(i)] = s >= 0 && s < in ? s : kFill;
  }
  return table;
}

}  // namespace

KernelPtr make_pad(const Graph& graph, const Node& node) {
  const TensorType &x = input_type(graph, node, 0), &y = output_type(graph, node);
  const std::string mode = node.attrs.s("mode", "constant");
  const bool constant = mode == "constant";
  if (y.rank() == 0 || (!constant && mode != "edge" && mode != "reflect" && mode != "wrap")) return nullptr;
  if (y.shape.elements() == 0) return make_kernel([](const KernelIo&) {});
  if (!constant && x.shape.elements() == 0) return nullptr;
  if (x.shape.dim(x.rank() - 1) > INT32_MAX) return nullptr;
  std::vector<std::vector<int64_t>> sources;
  for (int d = 0; d < y.rank(); ++d) {
    const int64_t before = node.attrs.ints("pads")[static_cast<size_t>(d)];
    sources.push_back(source_indices(x.shape.dim(d), y.shape.dim(d), before, mode));
  }
  return make_indexed_copy(IndexedRows(x.shape, sources), x.dtype, node.attrs.f("value", 0.0));
}

}  // namespace limber::own
