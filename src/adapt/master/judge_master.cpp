#include "adapt/master/judge_master.h"

#include <algorithm>
#include <map>
#include <set>

#include "adapt/master/relevance.h"
#include "adapt/master/statistics.h"
#include "passes/channel_rank.h"
#include "passes/classifier.h"
#include "passes/slice_channels.h"
#include "train/evaluate.h"
#include "variant/elastic_model.h"

namespace limber::adapt {
namespace {

class MasterJudge {
 public:
  MasterJudge(const AdaptedModel& model, const AdaptedModel& original, const MasterJudging& options)
      : model_(model), original_(original), options_(options) {}

  Result<std::vector<MasterLevel>> run() {
    LIMBER_ASSIGN(const GraphCost whole, cost_of(original_.graph));
    LIMBER_ASSIGN(const auto reader, MasterReader::create(model_));
    const ChannelGroups& groups = reader->master().groups;
    LIMBER_ASSIGN(const UnitRelevance relevance, relevance_of_seen(*reader));
    const ChannelGroups plain = groups_with_filters();
    LIMBER_ASSIGN(original_accuracy_, accuracy_of(original_));
    std::vector<MasterLevel> levels;
    for (const double share : options_.shares) {
      MasterLevel level{.share = share};
      LIMBER_ASSIGN(const AdaptedModel part, cut(model_, groups, most_relevant(relevance, share)));
      LIMBER_ASSIGN(const GraphCost cost, cost_of(part.graph));
      level.operations = cost.flops / whole.flops;
      LIMBER_ASSIGN(level.accuracy, share == 1 ? accuracy_of(part) : remeasured_accuracy_of(part));
      LIMBER_ASSIGN(const auto by_size, best_share(original_.graph, plain, *original_.weights, share));
      LIMBER_ASSIGN(const AdaptedModel other, cut(original_, plain, by_size));
      LIMBER_ASSIGN(level.by_size, share == 1 ? Result(original_accuracy_) : remeasured_accuracy_of(other));
      levels.push_back(level);
    }
    return levels;
  }

 private:
  // The groups of the original that get gates in the master: those that hold weights of filters.
  ChannelGroups groups_with_filters() const {
    std::set<std::string_view> gated;
    const std::vector<FilterGate> gates = find_gates(model_.graph);
    for (const FilterGate& gate : gates) gated.insert(gate.layer);
    ChannelGroups found = channel_groups(original_.graph);
    std::erase_if(found.groups, [&](const ChannelGroup& group) {
      return std::none_of(group.spans.begin(), group.spans.end(), [&](const ChannelSpan& span) {
        return span.axis == 0 && gated.contains(original_.graph.value(span.value).name);
      });
    });
    return found;
  }

  Result<UnitRelevance> relevance_of_seen(MasterReader& reader) const {
    std::vector<UnitRelevance> batches;
    for (const Tensor& images : options_.seen) {
      LIMBER_ASSIGN(const MasterReading reading, reader.read(images));
      batches.push_back(mean_relevance(reading.relevance));
    }
    return mean_relevance(batches);
  }

  Result<double> remeasured_accuracy_of(const AdaptedModel& part) {
    LIMBER_TRY(measure_statistics(part, options_.seen));
    return accuracy_of(part);
  }

  Result<double> accuracy_of(const AdaptedModel& part) {
    EvaluationOptions how;
    how.batch = options_.batch;
    how.threads = part.threads;
    how.workers = options_.workers;
    how.input = options_.input;
    how.on_bad_image = options_.on_bad_image;
    int64_t right = 0;
    const bool first = truth_.empty();
    how.each = [&](uint32_t sample, int64_t label, std::span<const float> logits) {
      const auto said = std::max_element(logits.begin(), logits.end()) - logits.begin();
      if (first) truth_[sample] = options_.labels ? label : said;
      right += said == truth_[sample];
    };
    LIMBER_ASSIGN(const auto evaluator,
                  Evaluator::create(part.graph, part.weights, part.backends, options_.unseen, how));
    LIMBER_ASSIGN(const auto found, evaluator->run(options_.stop));
    if (!found) return error(Code::kResourceExhausted, "stopped while the master was judged");
    return static_cast<double>(right) / static_cast<double>(found->images);
  }

  const AdaptedModel& model_;
  const AdaptedModel& original_;
  const MasterJudging& options_;
  double original_accuracy_ = 0;
  std::map<uint32_t, int64_t> truth_;  // by image; the original is asked first
};

}  // namespace

Result<AdaptedModel> cut(const AdaptedModel& model, const ChannelGroups& groups,
                         std::span<const std::vector<int64_t>> units) {
  LIMBER_ASSIGN(SlicedGraph sliced, slice_channels(model.graph, groups, units));
  AdaptedModel part = model;
  part.weights = std::make_shared<Parameters>();
  LIMBER_TRY(slice_parameters(sliced, *model.weights, *part.weights));
  part.graph = std::move(sliced.graph);
  return part;
}

Result<std::vector<MasterLevel>> judge_master(const AdaptedModel& model, const AdaptedModel& original,
                                              const MasterJudging& options) {
  return MasterJudge(model, original, options).run();
}

}  // namespace limber::adapt
