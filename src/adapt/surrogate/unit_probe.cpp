#include "adapt/surrogate/unit_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "adapt/methods/reader.h"
#include "ops/op_def.h"
#include "passes/channel_rank.h"
#include "passes/classifier.h"
#include "passes/gates.h"
#include "runtime/compile.h"
#include "train/training_graph.h"

namespace limber::adapt {
namespace {

Status no_number(std::string_view what, int64_t images) {
  return error(Code::kInternal, "{} is not a number for one of {} images; they may hold what is none", what,
               images);
}

double entropy_of(const std::vector<double>& probabilities) {
  double entropy = 0;
  for (const double p : probabilities) entropy -= p > 0 ? p * std::log(p) : 0;
  return entropy;
}

std::string factor_of(const std::string& layer) { return "factor/" + layer; }

// What the filters of a convolution become at last: behind its normalisation, if it has one.
ValueId filters_in(const Graph& graph, ValueId weight) {
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kConv || node.inputs[1] != weight) continue;
    const ValueId filters = node.outputs[0];
    for (const Node& reader : graph.nodes()) {
      const bool norm = reader.op == OpKind::kBatchNorm || reader.op == OpKind::kBatchNormTraining;
      if (norm && reader.inputs[0] == filters) return reader.outputs[0];
    }
    return filters;
  }
  return kNoValue;
}

// Every filter of every image has a factor of its own.
Status insert_factors(Graph& graph, const std::vector<std::string>& weights) {
  for (const std::string& weight : weights) {
    const ValueId filters = filters_in(graph, *graph.find(weight));
    std::vector<Dim> dims(static_cast<size_t>(graph.type(filters).rank()), Dim(1));
    for (size_t axis : {0, 1}) dims[axis] = graph.type(filters).shape[static_cast<int>(axis)];
    const ValueId factor =
        graph.add_parameter(factor_of(weight), {DType::kF32, Shape(std::move(dims))});
    const NodeId product{static_cast<uint32_t>(graph.num_nodes())};
    LIMBER_ASSIGN(const ValueId scaled, emit(graph, OpKind::kMul, {filters, factor}, {}, "factor"));
    graph.replace_uses(filters, scaled);
    graph.mutable_node(product).inputs[0] = filters;
  }
  graph.compact();
  return {};
}

std::vector<std::string> weights_of(const PlainMaster& plain) {
  std::vector<std::string> names;
  for (const CutLayer& layer : plain.layers) {
    if (std::find(names.begin(), names.end(), layer.weight) == names.end()) names.push_back(layer.weight);
  }
  return names;
}

void best_guesses(const Tensor& logits, Tensor labels) {
  const auto to = labels.data<int64_t>();
  const size_t classes = logits.data<float>().size() / to.size();
  for (size_t i = 0; i < to.size(); ++i) {
    const auto row = logits.data<float>().subspan(i * classes, classes);
    to[i] = std::max_element(row.begin(), row.end()) - row.begin();
  }
}

}  // namespace

Result<std::unique_ptr<GateProbe>> GateProbe::create(const AdaptedModel& master, const PlainMaster& plain) {
  std::unique_ptr<GateProbe> probe(new GateProbe(master));
  Graph& graph = probe->model_.graph;
  graph = logits_of(master.graph);
  const std::vector<FilterGate> gates = find_gates(graph);
  for (const CutLayer& layer : plain.layers) {
    const auto found = std::find_if(gates.begin(), gates.end(),
                                    [&](const FilterGate& gate) { return gate.layer == layer.weight; });
    probe->gate_of_.push_back(found == gates.end() ? "" : found->bias);
    probe->has_gates_ = probe->has_gates_ || found != gates.end();
  }
  return probe;
}

// The logits, then the gates of all layers that have one.
Result<std::unique_ptr<Session>> GateProbe::compile_pass(int64_t batch) const {
  const StepOptions options{.batch = batch};
  LIMBER_ASSIGN(Graph graph, prepare_model(model_.graph, options));
  graph.mutable_outputs().resize(1);
  const std::vector<FilterGate> gates = find_gates(graph);
  for (const std::string& bias : gate_of_) {
    const auto found =
        std::find_if(gates.begin(), gates.end(), [&](const FilterGate& gate) { return gate.bias == bias; });
    if (found != gates.end()) graph.add_output(found->value, found->bias);
  }
  graph.compact();
  LIMBER_ASSIGN(auto plan, compile(graph, model_.weights, model_.backends,
                                   {.threads = model_.threads, .optimize = false}));
  return Session::create(std::move(plan));
}

Result<GateReading> GateProbe::read(const Tensor& images) {
  const int64_t count = images.shape().dim(0);
  LIMBER_ASSIGN(Session * session, sessions_.get(count, [&] { return compile_pass(count); }));
  std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
  LIMBER_TRY(session->run());
  GateReading reading;
  for (const auto& row : probabilities_of(session->output(0))) {
    reading.entropy.push_back(entropy_of(row));
    if (!std::isfinite(reading.entropy.back())) return no_number("the answer", count);
  }
  size_t output = 1;
  for (const std::string& bias : gate_of_) {
    auto& layer = reading.gates.emplace_back();
    if (bias.empty()) continue;
    const Tensor values = session->output(output++);
    const auto filters = static_cast<size_t>(values.shape().dim(1));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const auto row = values.data<float>().subspan(i * filters, filters);
      layer.emplace_back(row.begin(), row.end());
      if (!std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); }))
        return no_number("a gate", count);
    }
  }
  return reading;
}

FilterValues mean_gates(const GateReading& reading, const PlainMaster& plain) {
  FilterValues mean;
  for (size_t l = 0; l < plain.layers.size(); ++l) {
    const auto filters = static_cast<size_t>(plain.layers[l].filters);
    std::vector<double>& values = mean.emplace_back(filters, reading.gates[l].empty() ? 1.0 : 0.0);
    for (const auto& image : reading.gates[l]) {
      for (size_t f = 0; f < filters; ++f)
        values[f] += image[f] / static_cast<double>(reading.gates[l].size());
    }
  }
  return mean;
}

FilterValues hardest_gates(const GateReading& reading, const PlainMaster& plain) {
  const auto hardest =
      std::max_element(reading.entropy.begin(), reading.entropy.end()) - reading.entropy.begin();
  FilterValues gates;
  for (size_t l = 0; l < plain.layers.size(); ++l) {
    const auto filters = static_cast<size_t>(plain.layers[l].filters);
    const auto& images = reading.gates[l];
    gates.push_back(images.empty() ? std::vector<double>(filters, 1.0)
                                   : images[static_cast<size_t>(hardest)]);
  }
  return gates;
}

UnitRelevance gate_relevance(const PlainMaster& plain, const FilterValues& gates) {
  FilterValues relative = gates;
  for (std::vector<double>& layer : relative) {
    double sum = 0;
    for (const double gate : layer) sum += gate;
    for (double& gate : layer) gate = sum > 0 ? gate / sum * static_cast<double>(layer.size()) : 1;
  }
  return sum_by_unit(plain, relative);
}

Result<std::unique_ptr<SensitivityProbe>> SensitivityProbe::create(const AdaptedModel& master,
                                                                   const PlainMaster& plain,
                                                                   int64_t images) {
  if (images < 1) return invalid("sensitivity is asked of {} images, expected 1 or more", images);
  std::unique_ptr<SensitivityProbe> probe(new SensitivityProbe(master, plain, images));
  probe->model_.graph = logits_of(master.graph);
  return probe;
}

Status SensitivityProbe::take_weights(Parameters& to) const {
  for (const Value& value : model_.graph.values()) {
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    LIMBER_ASSIGN(Tensor tensor, model_.weights->get(value.name));
    to.set(value.name, std::move(tensor));
  }
  return {};
}

Result<std::unique_ptr<SensitivityProbe::Pass>> SensitivityProbe::compile_pass(int64_t batch) const {
  const StepOptions options{.batch = batch};
  LIMBER_ASSIGN(Graph prepared, prepare_model(model_.graph, options));
  const std::vector<std::string> weights = weights_of(plain_);
  LIMBER_TRY(insert_factors(prepared, weights));
  auto pass = std::make_unique<Pass>();
  pass->weights = std::make_shared<Parameters>();
  LIMBER_TRY(take_weights(*pass->weights));
  std::vector<std::string> factors;
  for (const std::string& weight : weights) {
    factors.push_back(factor_of(weight));
    LIMBER_ASSIGN(Tensor ones, Tensor::allocate(prepared.type(*prepared.find(factors.back()))));
    std::fill(ones.data<float>().begin(), ones.data<float>().end(), 1.0f);
    pass->weights->set(factors.back(), std::move(ones));
  }
  LIMBER_ASSIGN(const Graph step, training_step(prepared, factors, options, Phase::kMeasure));
  LIMBER_ASSIGN(auto plan, compile(step, pass->weights, model_.backends,
                                   {.threads = model_.threads, .optimize = false}));
  LIMBER_ASSIGN(pass->session, Session::create(std::move(plan)));
  return pass;
}

Result<UnitRelevance> SensitivityProbe::read(const Tensor& images) {
  const int64_t count = std::min(images_, images.shape().dim(0));
  LIMBER_ASSIGN(Pass * pass, passes_.get(count, [&] { return compile_pass(count); }));
  LIMBER_TRY(take_weights(*pass->weights));
  Session& session = *pass->session;
  const auto fill = [&] {
    std::memcpy(session.input(0).raw(), images.raw(), session.input(0).bytes());
    return session.run();
  };
  LIMBER_TRY(fill());
  best_guesses(session.output(1), session.input(1));
  LIMBER_TRY(fill());
  UnitRelevance mean;
  const std::vector<std::string> weights = weights_of(plain_);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    FilterValues moved;
    for (const CutLayer& layer : plain_.layers) {
      const auto at = std::find(weights.begin(), weights.end(), layer.weight) - weights.begin();
      const Tensor gradient = session.output(2 + static_cast<size_t>(at));
      const auto filters = static_cast<size_t>(layer.filters);
      const auto row = gradient.data<float>().subspan(i * filters, filters);
      moved.emplace_back(row.begin(), row.end());
    }
    UnitRelevance units = sum_by_unit(plain_, moved);
    if (mean.empty()) mean.assign(units.size(), {});
    for (size_t g = 0; g < units.size(); ++g) {
      mean[g].resize(units[g].size());
      for (size_t u = 0; u < units[g].size(); ++u) {
        mean[g][u] += std::abs(units[g][u]);
        if (!std::isfinite(mean[g][u])) return no_number("a gradient", count);
      }
    }
  }
  return mean;
}

Result<UnitRelevance> magnitude_relevance(const PlainMaster& plain, const Parameters& weights) {
  UnitRelevance relevance;
  for (const ChannelGroup& group : plain.groups.groups) {
    LIMBER_ASSIGN(relevance.emplace_back(), unit_scores(plain.graph, group, weights));
  }
  return relevance;
}

}  // namespace limber::adapt
