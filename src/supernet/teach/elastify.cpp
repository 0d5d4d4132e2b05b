#include "supernet/teach/elastify.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/clock.h"
#include "supernet/expand/own_copy.h"
#include "supernet/teach/chain.h"
#include "supernet/teach/recalibrate.h"

namespace limber {
namespace {

constexpr double kRecent = 0.05;  // weight of a batch in the error that is shown
// Shares of the time: until the first all alternatives are taught, which need only be told apart by then;
// until the second those of chosen variants; what is left, most of it, goes into variants as wholes, where
// labels help.
constexpr double kTeachAll = 0.08, kTeachChosen = 0.14;
constexpr double kMeasureShare = 0.04;  // of the time, at most, for statistics

class Elastifier {
 public:
  Elastifier(ElasticModel& model, std::shared_ptr<const Dataset> data,
             const std::vector<std::shared_ptr<Backend>>& backends, const ElastifyOptions& options)
      : model_(model),
        data_(std::move(data)),
        backends_(backends),
        options_(options),
        chosen_(options.chosen),
        saved_(options.seconds_before) {}

  Result<Elastified> run() {
    const bool tunes = static_cast<bool>(options_.measure);
    const double all = (tunes ? kTeachAll : 1) * options_.seconds, taught = kTeachChosen * options_.seconds;
    if (seconds() < all || !tunes) LIMBER_TRY(teach("teaching", {}, all, tunes ? taught : all));
    if (tunes && !stopped() && (seconds() < taught || chosen_.empty())) {
      LIMBER_TRY(choose());
      LIMBER_TRY(teach("teaching the best", used_by(model_, variants_of(chosen_)), taught, taught));
      LIMBER_TRY(choose_again());
    }
    if (tunes && !stopped() && !chosen_.empty()) LIMBER_TRY(tune(taught));
    const double over = std::min(seconds(), std::max(options_.seconds, options_.seconds_before));
    if (options_.save) LIMBER_TRY(options_.save(over, chosen_));
    return Elastified{over, chosen_};
  }

 private:
  using TakeStep = std::function<Result<double>(const Batch&, double rate)>;
  struct Stage {
    std::string_view name;
    double from, until;  // seconds of all that is done
    double rate, zero;   // falls from `rate` at `from` to 0 at `zero`
  };

  // That are over: whatever is done here counts, not the batches alone.
  double seconds() const { return options_.seconds_before + now_seconds() - start_; }
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  LoaderOptions loader_options() const {
    LoaderOptions how;
    how.batch = options_.distill.batch;
    how.seed = options_.seed + static_cast<uint64_t>(seconds());  // other batches than before
    how.workers = options_.workers;
    how.threads = options_.distill.threads;
    how.drop_last = true;
    how.input = options_.input;
    how.augmentation = options_.augmentation;
    how.on_bad_image = options_.on_bad_image;
    return how;
  }

  Status run_stage(const Stage& stage, const std::shared_ptr<const Dataset>& data, const TakeStep& step) {
    LIMBER_ASSIGN(const auto loader, Loader::make(data, loader_options()));
    images_ = 0;
    for (uint64_t epoch = 0; !stopped() && seconds() < stage.until; ++epoch) {
      LIMBER_TRY(loader->start_epoch(epoch));
      bool more = true;
      while (more && !stopped() && seconds() < stage.until) {
        LIMBER_ASSIGN(more, take_batch(stage, *loader, step));
        LIMBER_TRY(save_now_and_then());
        LIMBER_TRY(judge_now_and_then());
      }
    }
    return {};
  }

  Status save_now_and_then() {
    if (!options_.save || seconds() - saved_ < options_.save_every) return {};
    saved_ = seconds();
    return options_.save(saved_, chosen_);
  }

  // The accuracy over the latency range, once variants are tuned.
  Status judge_now_and_then() {
    if (!options_.judge || !tuning_ || seconds() - judged_ < options_.judge_every) return {};
    judged_ = seconds();
    std::vector<Variant> variants = variants_of(chosen_);
    variants.push_back(original_variant(model_));
    LIMBER_ASSIGN(const std::vector<double> accuracies, options_.judge(variants));
    std::vector<RangePoint> points = {{1, accuracies.back()}};
    for (size_t i = 0; i < chosen_.size(); ++i) points.push_back({chosen_[i].share, accuracies[i]});
    range_accuracy_ = range_accuracy(std::move(points));
    return {};
  }

  // False at the end of an epoch.
  Result<bool> take_batch(const Stage& stage, Loader& loader, const TakeStep& step) {
    LIMBER_ASSIGN(const Batch batch, loader.next());
    if (batch.size == 0) return false;
    const double done = std::clamp((seconds() - stage.from) / (stage.zero - stage.from), 0.0, 1.0);
    LIMBER_ASSIGN(const double error,
                  step(batch, stage.rate * 0.5 * (1 + std::cos(std::numbers::pi * done))));
    images_ += batch.size;
    error_ = images_ == batch.size ? error : (1 - kRecent) * error_ + kRecent * error;
    if (options_.progress)
      options_.progress({stage.name, seconds(), options_.seconds, images_, error_, range_accuracy_});
    return true;
  }

  // `only`: see DistillOptions. Afterwards errors are up to date.
  Status teach(std::string_view name, std::vector<std::vector<bool>> only, double until, double zero) {
    DistillOptions how = options_.distill;
    how.only = std::move(only);
    LIMBER_ASSIGN(const auto distiller, Distiller::create(model_, backends_, how));
    if (distiller->students() > 0) {
      LIMBER_TRY(
          run_stage({name, 0, until, options_.rate, zero}, options_.teach_data ? options_.teach_data : data_,
                    [&](const Batch& batch, double rate) { return distiller->step(batch.images, rate); }));
    }
    LIMBER_ASSIGN(const std::vector<Tensor> batches, judge_batches());
    return distiller->judge(batches);
  }

  Result<std::vector<Tensor>> judge_batches() const {
    LoaderOptions how = loader_options();
    how.seed = options_.seed;
    how.augment = false;
    LIMBER_ASSIGN(const auto loader, Loader::make(data_, how));
    LIMBER_TRY(loader->start_epoch(0));
    std::vector<Tensor> batches;
    while (static_cast<int64_t>(batches.size()) < options_.judge_batches) {
      LIMBER_ASSIGN(const Batch batch, loader->next());
      if (batch.size == 0) break;
      batches.push_back(batch.images);
    }
    return batches;
  }

  Status choose() {
    LIMBER_ASSIGN(table_, options_.measure());
    return choose_again();
  }

  Status choose_again() {
    LIMBER_ASSIGN(const SearchSpace space, make_search_space(model_, table_));
    LIMBER_ASSIGN(chosen_, variant_chain(space, options_.shares));
    return {};
  }

  Status tune(double from) {
    LIMBER_ASSIGN(const std::vector<Variant> variants,
                  copy_originals(model_, variants_of(chosen_), options_.size_limit));
    const bool first = variants != variants_of(chosen_);  // not going on with what another process began
    for (size_t i = 0; i < chosen_.size(); ++i) chosen_[i].variant = variants[i];
    if (first) LIMBER_TRY(measure_statistics());
    TuneOptions how = options_.tune;
    if (how.answers == Answers::kValues) {
      LIMBER_ASSIGN(how.examples, judge_batches());
    }
    LIMBER_ASSIGN(const auto tuner, VariantTuner::create(model_, chosen_, backends_, how));
    if (tuner->students() == 0) return {};
    tuning_ = true;
    judged_ = seconds();
    return run_stage({"tuning", from, options_.seconds, options_.tune_rate, options_.seconds}, data_,
                     [&](const Batch& batch, double rate) { return tuner->step(batch, rate); });
  }

  // Behind changed blocks features are others than the model's: of each part of the variants that one in the
  // middle says what the normalisation of copies and alternatives goes by.
  Status measure_statistics() {
    if (table_.blocks.empty()) {
      LIMBER_ASSIGN(table_, options_.measure());
    }
    double seconds = 0;
    std::vector<const TimedVariant*> middle;
    for (size_t i = 0, from = 0; i < chosen_.size(); ++i) {
      if (i + 1 < chosen_.size() && part_of(i + 1, chosen_.size()) == part_of(i, chosen_.size())) continue;
      middle.push_back(&chosen_[(from + i) / 2]);
      seconds += recalibration_images(options_.distill.batch) * middle.back()->share * table_.original();
      from = i + 1;
    }
    if (seconds > kMeasureShare * options_.seconds) return {};
    LIMBER_ASSIGN(const std::vector<Tensor> batches, judge_batches());
    for (const TimedVariant* one : middle) LIMBER_TRY(measure_statistics(one->variant, batches));
    return {};
  }

  Status measure_statistics(const Variant& variant, std::span<const Tensor> batches) {
    LIMBER_ASSIGN(const Graph graph, materialize(model_, variant));
    const auto measured = recalibrate(graph, *model_.params, backends_, batches, options_.distill.threads);
    if (measured.status().code() == Code::kInvalidArgument) return {};  // nothing is normalised so
    LIMBER_TRY(measured.status());
    for (const std::string& name : parameters_of(graph)) {
      if (model_.base.find(name)) continue;
      LIMBER_ASSIGN(Tensor tensor, (*measured)->get(name));
      model_.params->set(name, std::move(tensor));
    }
    return {};
  }

  ElasticModel& model_;
  const std::shared_ptr<const Dataset> data_;
  const std::vector<std::shared_ptr<Backend>>& backends_;
  const ElastifyOptions& options_;
  LatencyTable table_;
  std::vector<TimedVariant> chosen_;
  const double start_ = now_seconds();
  double saved_, judged_ = 0, error_ = 0;
  bool tuning_ = false;
  std::optional<double> range_accuracy_;
  int64_t images_ = 0;
};

}  // namespace

Result<Elastified> teach_alternatives(ElasticModel& model, std::shared_ptr<const Dataset> data,
                                      const std::vector<std::shared_ptr<Backend>>& backends,
                                      const ElastifyOptions& options) {
  return Elastifier(model, std::move(data), backends, options).run();
}

}  // namespace limber
