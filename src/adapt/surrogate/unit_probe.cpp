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
    const ValueId factor = graph.add_parameter(factor_of(weight), {DType::kF32, Shape(std::move(dims))});
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

struct GatePass {
  std::unique_ptr<Session> session;
  std::vector<size_t> outputs;  // by layer: which of the session's is its gate; 0: it has none
};

// The logits, then the gates.
Result<GatePass> compile_gates(const AdaptedModel& model, const PlainMaster& plain, int64_t batch) {
  const StepOptions options{.batch = batch};
  LIMBER_ASSIGN(Graph graph, prepare_model(logits_of(model.graph), options));
  graph.mutable_outputs().resize(1);
  const std::vector<FilterGate> gates = find_gates(graph);
  GatePass pass;
  for (const CutLayer& layer : plain.layers) {
    const auto found = std::find_if(gates.begin(), gates.end(),
                                    [&](const FilterGate& gate) { return gate.layer == layer.weight; });
    pass.outputs.push_back(found == gates.end() ? 0 : graph.outputs().size());
    if (found != gates.end()) graph.add_output(found->value, fmt::format("gate/{}", pass.outputs.size()));
  }
  graph.compact();
  LIMBER_ASSIGN(auto plan,
                compile(graph, model.weights, model.backends, {.threads = model.threads, .optimize = false}));
  LIMBER_ASSIGN(pass.session, Session::create(std::move(plan)));
  return pass;
}

// Gradients of the factors of these layers, behind loss and logits.
Result<std::unique_ptr<Session>> compile_sensitivity(const AdaptedModel& master,
                                                     const std::vector<std::string>& layers, int64_t batch) {
  const StepOptions options{.batch = batch};
  LIMBER_ASSIGN(Graph prepared, prepare_model(logits_of(master.graph), options));
  LIMBER_TRY(insert_factors(prepared, layers));
  const auto weights = std::make_shared<Parameters>();
  for (const std::string& name : master.weights->names()) {
    LIMBER_ASSIGN(Tensor tensor, master.weights->get(name));
    weights->set(name, std::move(tensor));
  }
  std::vector<std::string> factors;
  for (const std::string& layer : layers) {
    factors.push_back(factor_of(layer));
    LIMBER_ASSIGN(Tensor ones, Tensor::allocate(prepared.type(*prepared.find(factors.back()))));
    std::ranges::fill(ones.data<float>(), 1.0F);
    weights->set(factors.back(), std::move(ones));
  }
  LIMBER_ASSIGN(const Graph step, training_step(prepared, factors, options, Phase::kMeasure));
  LIMBER_ASSIGN(auto plan,
                compile(step, weights, master.backends, {.threads = master.threads, .optimize = false}));
  return Session::create(std::move(plan));
}

// False when one is not a number.
bool add_sizes(const UnitRelevance& units, UnitRelevance& to) {
  bool finite = true;
  for (size_t g = 0; g < units.size(); ++g) {
    for (size_t u = 0; u < units[g].size(); ++u) {
      to[g][u] += std::abs(units[g][u]);
      finite = finite && std::isfinite(units[g][u]);
    }
  }
  return finite;
}

}  // namespace

Result<GateReading> read_gates(const AdaptedModel& model, const PlainMaster& plain, const Tensor& images) {
  const int64_t count = images.shape().dim(0);
  LIMBER_ASSIGN(const GatePass pass, compile_gates(model, plain, count));
  Session& session = *pass.session;
  std::memcpy(session.input(0).raw(), images.raw(), images.bytes());
  LIMBER_TRY(session.run());
  GateReading reading;
  reading.probabilities = probabilities_of(session.output(0));
  for (const auto& row : reading.probabilities) {
    if (!std::isfinite(entropy_of(row))) return no_number("the answer", count);
  }
  for (const size_t output : pass.outputs) {
    auto& layer = reading.gates.emplace_back();
    if (output == 0) continue;
    const Tensor values = session.output(output);
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
  const auto& rows = reading.probabilities;
  const auto hardest =
      std::max_element(rows.begin(), rows.end(),
                       [](const auto& a, const auto& b) { return entropy_of(a) < entropy_of(b); }) -
      rows.begin();
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

Result<UnitRelevance> sensitivity_relevance(const AdaptedModel& master, const PlainMaster& plain,
                                            const Tensor& images, int64_t most) {
  const int64_t count = std::min(most, images.shape().dim(0));
  const std::vector<std::string> weights = weights_of(plain);
  LIMBER_ASSIGN(const auto session, compile_sensitivity(master, weights, count));
  const auto run = [&] {
    std::memcpy(session->input(0).raw(), images.raw(), session->input(0).bytes());
    return session->run();
  };
  std::ranges::fill(session->input(1).data<int64_t>(), 0);
  LIMBER_TRY(run());
  best_guesses(session->output(1), session->input(1));
  LIMBER_TRY(run());
  UnitRelevance relevance = sum_by_unit(plain, FilterValues(plain.layers.size()));  // zeros
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    FilterValues moved;
    for (const CutLayer& layer : plain.layers) {
      const auto at = std::find(weights.begin(), weights.end(), layer.weight) - weights.begin();
      const Tensor gradient = session->output(2 + static_cast<size_t>(at));
      const auto filters = static_cast<size_t>(layer.filters);
      const auto row = gradient.data<float>().subspan(i * filters, filters);
      moved.emplace_back(row.begin(), row.end());
    }
    if (!add_sizes(sum_by_unit(plain, moved), relevance)) return no_number("a gradient", count);
  }
  return relevance;
}

Result<UnitRelevance> magnitude_relevance(const PlainMaster& plain, const Parameters& weights) {
  UnitRelevance relevance;
  for (const ChannelGroup& group : plain.groups.groups) {
    LIMBER_ASSIGN(relevance.emplace_back(), unit_scores(plain.graph, group, weights));
  }
  return relevance;
}

}  // namespace limber::adapt
