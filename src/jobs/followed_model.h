// A model that follows its world while it is served: from requests to networks that answer them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapt/follower.h"
#include "data/dataset.h"
#include "jobs/adapt_strategies.h"
#include "jobs/source.h"
#include "record/serve_records.h"
#include "serve/served_model.h"

namespace limber {

struct ServeAdaptOptions {
  std::string method;  // one of adapt_strategies(), but "none"; empty: the model stays as it is
  // Labelled images like those the model was trained on, but none of these: what is normal.
  std::string data;
  size_t source_images = 2000;  // of them that are looked at
  double share = 0.25;          // of the cores, that looking and learning may take together
  int64_t window = 100;         // images between two times of learning
  StrategySettings settings;    // of the method; without a folder
  bool idle_only = true;        // with time that nobody else wants; false: as everybody else
};
Status check(const ServeAdaptOptions& options);

// kInvalidArgument when the data have too few images.
Result<std::shared_ptr<const Dataset>> open_source_images(const ServeAdaptOptions& options, uint64_t seed);

struct FollowedModelSettings {
  ServeAdaptOptions adapt;
  std::vector<std::shared_ptr<Backend>> backends;
  int threads = 1;
  uint64_t seed = 0;
  // Asked between pieces of work that take long together; may wait. False: they end. Null: never asked.
  std::function<bool()> go_on;
  // Told each event; `time` is unix_seconds(). May be null.
  std::function<void(const FollowedRecord& event, double time)> tell;
};

// Takes copies of what a served model is asked, in memory, and gives it other networks. Use from one thread;
// apart from stopping to be served the model may do anything meanwhile.
class FollowedModel {
 public:
  // Quick: looks at no image. Refuses models that cannot be followed, or not by this method.
  static Result<std::unique_ptr<FollowedModel>> create(const std::shared_ptr<ServedModel>& model,
                                                       std::shared_ptr<const Dataset> source,
                                                       const FollowedModelSettings& settings);
  ~FollowedModel();  // nothing is copied any more; what answers goes on

  // Looks at the source, which takes as long as answering several times as many images: before the first
  // step(). False: it was not to go on.
  Result<bool> study();
  // Looks at what was asked since, or learns from it where that is due and allowed. False: there was nothing
  // to do, or it was not to go on.
  Result<bool> step(bool may_learn = true);
  // Enough was seen to learn from.
  bool due() const { return follower_ != nullptr && follower_->due(); }
  // Seconds of a core that it takes to learn; before the first time a guess. 0: nobody knows.
  double learning_cost() const;
  // Says why it ended.
  void give_up(const Status& why) { tell("ended: " + why.message()); }

  // Seconds of a core for each image, so far; 0: nobody knows.
  double cost() const { return told_.seen > 0 ? told_.cpu_seconds / static_cast<double>(told_.seen) : 0; }
  // How often images are copied from here on.
  void set_interval(double seconds) { tap_->set_interval(seconds); }
  bool is(const std::shared_ptr<ServedModel>& model) const { return model_.lock() == model; }

 private:
  FollowedModel(const std::shared_ptr<ServedModel>& model, const WeightSnapshot& weights,
                std::shared_ptr<const Dataset> source, const FollowedModelSettings& settings);
  Status choose_strategy(const Tensor& source);
  bool go_on();
  Result<bool> look();
  void add_point(const adapt::Look& look, int64_t images);
  void note_events();
  Status publish();
  void tell(const std::string& state);

  const std::weak_ptr<ServedModel> model_;
  const FollowedModelSettings settings_;
  const adapt::AdaptedModel adapted_;
  const std::shared_ptr<const Dataset> source_;
  const std::string name_;
  const Preprocess input_;  // what images become for the model
  Shape images_;            // f32[n,C,H,W]
  const std::shared_ptr<RequestTap> tap_;

  std::unique_ptr<adapt::Strategy>
      strategy_;  // until the follower has it; one that needs the source: in study()
  std::unique_ptr<adapt::Follower> follower_;  // null before study()
  std::shared_ptr<const adapt::Net> published_;
  std::vector<float> pixels_;
  double looked_at_ = 0;
  bool stopped_ = false;

  Followed told_;
  double estimate_sum_ = 0, original_sum_ = 0;  // over the images of the next point
  int64_t in_point_ = 0;
};

}  // namespace limber
