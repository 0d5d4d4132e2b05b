#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <variant>

#include "backend/cpu/formats.h"
#include "backend/cpu/layers.h"
#include "backend/cpu/simd/own_kernels.h"
#include "base/clock.h"
#include "base/parallel.h"

namespace limber {
namespace {

using onednn::Format;

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : options_(options), tuner_(options.cache_file, options.threads) {}

  std::string_view name() const override { return "cpu"; }

  void begin(const Graph&, const std::vector<bool>& statics) override { statics_ = statics; }

  bool supports(const Graph& g, NodeId n) const override {
    const Node& node = g.node(n);
    return is_view(node) || own_supports(g, node) ||
           describe_layer(g, node, weights_static(node)).has_value() ||
           plain_pooling(g, node, library_).has_value();
  }

  Result<std::vector<Candidate>> candidates(const Graph& g, NodeId n,
                                            std::span<const Layout> nearby) override {
    const Node& node = g.node(n);
    if (const auto layer = describe_layer(g, node, weights_static(node)))
      return layer_candidates(node, *layer);
    std::vector<Candidate> out;
    const double seconds = node_bytes(g, n) / (1e10 * options_.threads) + 1e-6;
    if (is_view(node)) {
      out.push_back(plain_candidate(node, "view", 0));
      out.back().view = true;
    } else if (own_supports(g, node)) {
      out.push_back(plain_candidate(node, "simd", seconds));
      out.back().may_alias = own_may_alias(g, node);
    }
    if (auto way = plain_pooling(g, node, library_); way && !own_supports(g, node))
      add(out, std::move(*way), seconds * 2);
    for (Layout near : formats_among(nearby)) {
      for (FormatWay& way : format_ways(g, node, static_cast<Format>(near.id), library_))
        add(out, std::move(way), seconds);
    }
    if (out.empty()) return unsupported("no kernel for {}", op_name(node.op));
    return out;
  }

  Status prepare(const Graph&, NodeId, Candidate& candidate) override {
    if (candidate.token == 0) return {};
    auto* layer = std::get_if<LayerRecipe>(&recipes_[candidate.token - 1]);
    if (layer == nullptr) return {};
    LIMBER_ASSIGN(const auto compiled, make_layer(layer->layer, layer->timing, library_));
    const bool gradient = pass_of(layer->layer) == onednn::Pass::kBackwardWeights;
    (gradient ? candidate.outputs[0] : candidate.inputs[1]) = Layout{compiled.weights_layout};
    candidate.impl = compiled.impl;
    return {};
  }

  Result<std::unique_ptr<Kernel>> compile(const Graph& g, NodeId n, const Candidate& candidate) override {
    const Node& node = g.node(n);
    if (candidate.token == 0)
      return is_view(node) ? reorder(g.type(node.inputs[0]), kPlain, kPlain) : own_kernel(g, node);
    if (const auto* layer = std::get_if<LayerRecipe>(&recipes_[candidate.token - 1])) {
      LIMBER_ASSIGN(const auto compiled, make_layer(layer->layer, layer->timing, library_));
      return shared_kernel(compiled.kernel);
    }
    return std::get<FormatWay>(recipes_[candidate.token - 1]).make();
  }

  bool measures() const override { return options_.tune; }
  std::optional<int64_t> recall(const std::string& key) const override { return tuner_.find_choice(key); }
  void remember(const std::string& key, int64_t choice) override { tuner_.keep_choice(key, choice); }

  size_t bytes(const TensorType& type, Layout layout) const override { return library_.bytes(type, layout); }
  std::string layout_name(Layout layout) const override { return library_.layout_name(layout); }

  double reorder_seconds(const TensorType& type, Layout from, Layout to) override {
    const double guess = 2.0 * static_cast<double>(type.bytes()) / (8e9 * options_.threads) + 2e-6;
    if (!is_reorderable(type, from, to)) return 1;  // never chosen
    const std::string key = fmt::format("{} {}>{}", type.to_string(), layout_name(from), layout_name(to));
    if (const auto known = tuner_.find_reorder(key)) return *known;
    if (!options_.tune) return guess;
    const auto measured = time_reorder(type, from, to);
    const double seconds = measured.ok() ? *measured : guess;
    tuner_.keep_reorder(key, seconds);
    return seconds;
  }

  Result<std::unique_ptr<Kernel>> reorder(const TensorType& type, Layout from, Layout to) override {
    if (from == to) {
      const size_t size = bytes(type, from);
      return make_kernel([size](const KernelIo& io) {
        std::copy_n(static_cast<const std::byte*>(io.inputs[0]), size,
                    static_cast<std::byte*>(io.outputs[0]));
      });
    }
    return library_.reorder(type, from, to);
  }

 private:
  struct LayerRecipe {
    Layer layer;
    Timing timing;
  };

  static bool is_view(const Node& node) {
    return node.op == OpKind::kReshape || node.op == OpKind::kIdentity;
  }

  bool weights_static(const Node& node) const {
    if (node.inputs.size() < 2 || node.inputs[1] == kNoValue) return false;
    return node.inputs[1].index < statics_.size() && statics_[node.inputs[1].index];
  }

  // Formats only mean something for images; packed weights are nobody's neighbour.
  static std::vector<Layout> formats_among(std::span<const Layout> nearby) {
    std::vector<Layout> out;
    for (Layout l : nearby) {
      if (l != kPlain && l.id < onednn::kFirstPacked) out.push_back(l);
    }
    // A permutation may start or end a channels-last stretch by being free.
    const Layout last{static_cast<uint32_t>(Format::kChannelsLast)};
    if (std::find(out.begin(), out.end(), last) == out.end()) out.push_back(last);
    return out;
  }

  static bool is_reorderable(const TensorType& type, Layout from, Layout to) {
    if (from == to) return true;
    return type.dtype == DType::kF32 && type.rank() >= 3 && type.rank() <= 5 && type.shape.elements() > 0;
  }

  void add(std::vector<Candidate>& out, FormatWay way, double seconds) {
    Candidate c;
    c.impl = way.impl;
    c.inputs = way.inputs;
    c.outputs = way.outputs;
    c.seconds = way.view ? 0 : seconds;
    c.view = way.view;
    c.may_alias = way.may_alias;
    c.token = keep(std::move(way));
    out.push_back(std::move(c));
  }

  Result<std::vector<Candidate>> layer_candidates(const Node& node, const Layer& layer) {
    const ThreadScope threads(options_.threads);
    LIMBER_ASSIGN(const auto timings,
                  layer_timings(layer, library_, tuner_, options_.tune, options_.threads));
    std::vector<Candidate> out;
    for (const Timing& t : timings) {
      Candidate c = plain_candidate(node, t.impl, t.seconds);
      const Layout src{static_cast<uint32_t>(t.src)}, dst{static_cast<uint32_t>(t.dst)};
      const onednn::Pass pass = pass_of(layer);
      c.inputs[0] = pass == onednn::Pass::kBackwardData ? dst : src;
      if (pass == onednn::Pass::kBackwardWeights) {
        c.inputs[1] = dst;
      } else {
        c.outputs[0] = pass == onednn::Pass::kBackwardData ? src : dst;
      }
      if (layer.has_residual) {
        c.inputs[3] = dst;
        c.must_alias = 3;
      }
      c.tier = t.tier;
      c.token = keep(LayerRecipe{layer, t});
      out.push_back(std::move(c));
    }
    return out;
  }

  template <typename T>
  uint64_t keep(T recipe) {
    recipes_.push_back(std::move(recipe));
    return recipes_.size();
  }

  Result<double> time_reorder(const TensorType& type, Layout from, Layout to) {
    const ThreadScope threads(options_.threads);
    LIMBER_ASSIGN(auto kernel, reorder(type, from, to));
    onednn::Compiled compiled;
    compiled.kernel = std::shared_ptr<const Kernel>(std::move(kernel));
    compiled.input_bytes = {bytes(type, from)};
    compiled.output_bytes = {bytes(type, to)};
    return time_kernel(compiled, /*in_place=*/false, /*cold_weights=*/false);
  }

  const CpuOptions options_;
  mutable onednn::Library library_;
  Tuner tuner_;
  std::vector<bool> statics_;                                  // of the graph at hand, by value
  std::vector<std::variant<LayerRecipe, FormatWay>> recipes_;  // by candidate token - 1
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

std::string cpu_backend_version() { return onednn::version(); }

}  // namespace limber
