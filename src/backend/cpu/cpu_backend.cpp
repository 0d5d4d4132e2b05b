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

// What all compiles with one backend share. Thread-safe.
struct Shared {
  const CpuOptions options;
  onednn::Library library;
  Tuner tuner;
};

Result<std::unique_ptr<Kernel>> make_reorder(Shared& shared, const TensorType& type, Layout from, Layout to) {
  if (from == to) {
    const size_t size = shared.library.bytes(type, from);
    return make_kernel([size](const KernelIo& io) {
      std::copy_n(static_cast<const std::byte*>(io.inputs[0]), size, static_cast<std::byte*>(io.outputs[0]));
    });
  }
  LIMBER_ASSIGN(const auto compiled, shared.library.reorder(type, from, to));
  return shared_kernel(compiled.kernel);
}

class CpuNodeCompiler : public NodeCompiler {
 public:
  CpuNodeCompiler(Shared& shared, const Graph& graph, const std::vector<bool>& statics)
      : shared_(shared), graph_(graph), statics_(statics) {}

  bool supports(NodeId n) override {
    const Node& node = graph_.node(n);
    return is_view(node) || own_supports(graph_, node) ||
           describe_layer(graph_, node, weights_static(node)).has_value() ||
           plain_pooling(graph_, node, shared_.library).has_value();
  }

  Result<std::vector<Candidate>> candidates(NodeId n, std::span<const Layout> nearby) override {
    const Node& node = graph_.node(n);
    if (const auto layer = describe_layer(graph_, node, weights_static(node)))
      return layer_candidates(node, *layer);
    std::vector<Candidate> out;
    const double seconds = element_seconds(n);
    if (is_view(node)) {
      out.push_back(plain_candidate(node, "view", 0));
      out.back().view = true;
    } else if (own_supports(graph_, node)) {
      out.push_back(plain_candidate(node, "simd", seconds));
      out.back().may_alias = own_may_alias(graph_, node);
    }
    // Counted twice: any format nearby is preferred.
    if (auto way = plain_pooling(graph_, node, shared_.library); way && !own_supports(graph_, node))
      add(out, std::move(*way), seconds * 2);
    for (Layout near : formats_among(nearby)) {
      for (FormatWay& way : format_ways(graph_, node, static_cast<Format>(near.id), shared_.library))
        add(out, std::move(way), seconds);
    }
    if (out.empty()) return unsupported("no kernel for {}", op_name(node.op));
    return out;
  }

  std::optional<Candidate> element_wise(NodeId n, Layout layout) override {
    const Node& node = graph_.node(n);
    if (node.inputs.empty() || node.inputs[0] == kNoValue || !shared_.library.keeps_elements(layout))
      return std::nullopt;
    const TensorType& type = graph_.type(node.inputs[0]);
    if (type.dtype != DType::kF32) return std::nullopt;
    const auto elements = static_cast<int64_t>(shared_.library.bytes(type, layout) / sizeof(float));
    auto way = element_wise_way(graph_, node, layout, elements);
    if (!way) return std::nullopt;
    std::vector<Candidate> out;
    add(out, std::move(*way), element_seconds(n));
    return std::move(out.front());
  }

  Status prepare(NodeId, Candidate& candidate) override {
    if (candidate.token == 0) return {};
    auto* recipe = std::get_if<LayerRecipe>(&recipes_[candidate.token - 1]);
    if (recipe == nullptr) return {};
    LIMBER_ASSIGN(recipe->compiled, make_layer(recipe->layer, recipe->timing, shared_.library));
    const bool gradient = pass_of(recipe->layer) == onednn::Pass::kBackwardWeights;
    (gradient ? candidate.outputs[0] : candidate.inputs[1]) = Layout{recipe->compiled.weights_layout};
    candidate.impl = recipe->compiled.impl;
    return {};
  }

  Result<std::unique_ptr<Kernel>> compile(NodeId n, const Candidate& candidate) override {
    const Node& node = graph_.node(n);
    if (candidate.token == 0)
      return is_view(node) ? make_reorder(shared_, graph_.type(node.inputs[0]), kPlain, kPlain)
                           : own_kernel(graph_, node);
    if (const auto* layer = std::get_if<LayerRecipe>(&recipes_[candidate.token - 1]))
      return shared_kernel(layer->compiled.kernel);
    return std::get<FormatWay>(recipes_[candidate.token - 1]).make();
  }

 private:
  struct LayerRecipe {
    Layer layer;
    Timing timing;
    onednn::Compiled compiled;  // once prepared; keeps the layout of its weights alive
  };

  static bool is_view(const Node& node) {
    return node.op == OpKind::kReshape || node.op == OpKind::kIdentity;
  }

  bool weights_static(const Node& node) const {
    if (node.inputs.size() < 2 || node.inputs[1] == kNoValue) return false;
    return statics_[node.inputs[1].index];
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

  // Of a node that is limited by memory: 10 GB/s for each thread, and a microsecond to start. Rough numbers
  // of a server's core: what counts is how they relate to those of layers and reorders.
  double element_seconds(NodeId n) const {
    return node_bytes(graph_, n) / (1e10 * shared_.options.threads) + 1e-6;
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
    const ThreadScope threads(shared_.options.threads);
    LIMBER_ASSIGN(const auto timings, layer_timings(layer, shared_.library, shared_.tuner,
                                                    shared_.options.tune, shared_.options.threads));
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

  Shared& shared_;
  const Graph& graph_;
  const std::vector<bool>& statics_;                           // by value
  std::vector<std::variant<LayerRecipe, FormatWay>> recipes_;  // by candidate token - 1
};

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : shared_{options, {}, Tuner(options.cache_file, options.threads)} {}

  std::string_view name() const override { return "cpu"; }

  std::unique_ptr<NodeCompiler> begin(const Graph& graph, const std::vector<bool>& statics) override {
    return std::make_unique<CpuNodeCompiler>(shared_, graph, statics);
  }

  bool measures() const override { return shared_.options.tune; }
  std::optional<int64_t> recall(const std::string& key) const override {
    return shared_.tuner.find_choice(key);
  }
  void remember(const std::string& key, int64_t choice) override { shared_.tuner.keep_choice(key, choice); }

  size_t bytes(const TensorType& type, Layout layout) const override {
    return shared_.library.bytes(type, layout);
  }
  std::string layout_name(Layout layout) const override { return shared_.library.layout_name(layout); }

  double reorder_seconds(const TensorType& type, Layout from, Layout to) override {
    if (!shared_.library.can_reorder(type, from, to)) return 1;  // never chosen
    const std::string key = fmt::format("{} {}>{}", type.to_string(), layout_name(from), layout_name(to));
    if (const auto known = shared_.tuner.find_reorder(key)) return *known;
    // Reading and writing at 8 GB/s for each thread, a little less than copying in order, and two
    // microseconds to start.
    const double guess = 2.0 * static_cast<double>(type.bytes()) / (8e9 * shared_.options.threads) + 2e-6;
    if (!shared_.options.tune) return guess;
    const auto measured = time_reorder(type, from, to);
    const double seconds = measured.ok() ? *measured : guess;
    shared_.tuner.keep_reorder(key, seconds);
    return seconds;
  }

  Result<std::unique_ptr<Kernel>> reorder(const TensorType& type, Layout from, Layout to) override {
    return make_reorder(shared_, type, from, to);
  }

 private:
  Result<double> time_reorder(const TensorType& type, Layout from, Layout to) {
    const ThreadScope threads(shared_.options.threads);
    LIMBER_ASSIGN(const auto compiled, shared_.library.reorder(type, from, to));
    return time_kernel(compiled, /*in_place=*/false, /*cold_weights=*/false);
  }

  Shared shared_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

std::string cpu_backend_version() { return onednn::version(); }

}  // namespace limber
