#include "adapt/methods/filters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "passes/classifier.h"
#include "runtime/compile.h"

namespace limber::adapt {
namespace {

struct Place {
  size_t layer, filter;
  double score;
};

std::vector<Place> by_score(const std::vector<FilterScores>& layers) {
  std::vector<Place> places;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (size_t filter = 0; filter < layers[layer].scores.size(); ++filter)
      places.push_back({layer, filter, layers[layer].scores[filter]});
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.score > b.score; });
  return places;
}

}  // namespace

std::vector<FilterScores> normalised_filters(const Graph& graph) {
  const auto readers = graph.readers();
  // What several layers read has no filters or channels that are one layer's.
  const auto is_own = [&](ValueId v) {
    return graph.value(v).role == Role::kParameter && readers[v.index].size() == 1;
  };
  std::vector<FilterScores> layers;
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kBatchNorm && node.op != OpKind::kBatchNormTraining) continue;
    const NodeId maker = graph.value(node.inputs[0]).producer;
    if (maker == kNoNode || graph.node(maker).op != OpKind::kConv) continue;
    const ValueId weight = graph.node(maker).inputs[1];
    if (!is_own(weight) || !is_own(node.inputs[1]) || !is_own(node.inputs[2])) continue;
    const auto name = [&](size_t input) { return graph.value(node.inputs[input]).name; };
    layers.push_back({graph.value(weight).name, {name(1), name(2), name(3), name(4)}, {}});
  }
  return layers;
}

FilterChoice choose_filters(const std::vector<FilterScores>& layers, double share) {
  const std::vector<Place> places = by_score(layers);
  LIMBER_ASSERT(!places.empty());
  const double sum = std::accumulate(places.begin(), places.end(), 0.0,
                                     [](double a, const Place& place) { return a + place.score; });
  FilterChoice choice;
  choice.of = places.size();
  std::vector<std::vector<int64_t>> chosen(layers.size());
  double held = 0;
  for (const Place& place : places) {
    if (choice.chosen > 0 && held >= share * sum) break;
    chosen[place.layer].push_back(static_cast<int64_t>(place.filter));
    held += place.score;
    ++choice.chosen;
  }
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    if (chosen[layer].empty()) continue;
    std::sort(chosen[layer].begin(), chosen[layer].end());
    for (const std::string& name :
         {layers[layer].weight, layers[layer].norm.scale, layers[layer].norm.bias}) {
      choice.targets.names.push_back(name);
      choice.targets.channels[name] = chosen[layer];
    }
  }
  return choice;
}

Result<std::unique_ptr<FilterRanking>> FilterRanking::create(const AdaptedModel& model,
                                                             const LossOptions& loss) {
  std::unique_ptr<FilterRanking> ranking(new FilterRanking(model));
  ranking->model_.graph = logits_of(model.graph);
  ranking->loss_ = loss;
  ranking->layers_ = normalised_filters(ranking->model_.graph);
  if (ranking->layers_.empty()) {
    return invalid(
        "filters are ranked by the batch normalisation behind them, and no convolution of the model has one; "
        "train all filters instead");
  }
  return ranking;
}

Result<std::unique_ptr<Session>> FilterRanking::compile_step(int64_t batch) const {
  const StepOptions options{.batch = batch, .loss = loss_};
  LIMBER_ASSIGN(const Graph prepared, prepare_model(model_.graph, options));
  std::vector<std::string> names;
  for (const FilterScores& layer : layers_) {
    names.push_back(layer.norm.scale);
    names.push_back(layer.norm.bias);
  }
  LIMBER_ASSIGN(const Graph step, training_step(prepared, names, options, Phase::kMeasure));
  LIMBER_ASSIGN(auto plan, compile(step, model_.weights, model_.backends,
                                   {.threads = model_.threads, .optimize = false}));
  return Session::create(std::move(plan));
}

Result<std::vector<FilterScores>> FilterRanking::rank(const Tensor& images) {
  const int64_t batch = images.shape().dim(0);
  LIMBER_ASSIGN(Session * session, sessions_.get(batch, [&] { return compile_step(batch); }));
  std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
  LIMBER_TRY(session->run());
  std::vector<FilterScores> layers = layers_;
  size_t output = 2;  // behind loss and logits: of each layer the scale, then the shift
  for (FilterScores& layer : layers) {
    const Tensor scale = session->output(output++), shift = session->output(output++);
    for (size_t i = 0; i < scale.data<float>().size(); ++i) {
      const double score = std::abs(scale.data<float>()[i]) + std::abs(shift.data<float>()[i]);
      if (!std::isfinite(score)) {
        return error(Code::kInternal,
                     "the gradient of '{}' on these images is not a number; they may hold what is none",
                     layer.norm.scale);
      }
      layer.scores.push_back(score);
    }
  }
  return layers;
}

Result<TargetChooser> TargetChooser::create(const AdaptedModel& model, const WindowTraining& training,
                                            double share) {
  if (!(share > 0 && share <= 1)) {
    return invalid(
        "filters that hold the share {} of the gradients are to be trained, expected more than 0 and at "
        "most 1",
        share);
  }
  TargetChooser chooser;
  chooser.share_ = share;
  if (share < 1) {
    LIMBER_ASSIGN(chooser.ranking_, FilterRanking::create(model, {.kind = LossKind::kInfoMax}));
    return chooser;
  }
  LIMBER_ASSIGN(const std::vector<std::string> head, head_names(logits_of(model.graph)));
  LIMBER_ASSIGN(chooser.all_.names, training.trainable());
  std::erase_if(chooser.all_.names, [&](const std::string& name) {
    return std::find(head.begin(), head.end(), name) != head.end();
  });
  if (chooser.all_.names.empty()) return invalid("the model has no weights but those of its classifier");
  return chooser;
}

Result<WindowTargets> TargetChooser::choose(const Tensor& images) {
  if (ranking_ == nullptr) return all_;
  LIMBER_ASSIGN(const std::vector<FilterScores> scores, ranking_->rank(images));
  return choose_filters(scores, share_).targets;
}

}  // namespace limber::adapt
