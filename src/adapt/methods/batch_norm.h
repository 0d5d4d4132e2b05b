// Methods that change nothing but the statistics of batch normalisation.
#pragma once

#include <map>

#include "adapt/by_size.h"
#include "adapt/methods/parts.h"
#include "adapt/strategy.h"
#include "runtime/session.h"

namespace limber::adapt {

// One pass over images by their own statistics, which moves the running ones.
class StatisticsPass {
 public:
  // `method` is named where the model has no batch normalisation.
  static Result<std::unique_ptr<StatisticsPass>> create(const AdaptedModel& model, std::string_view method);
  // Running statistics become `kept` of themselves and the rest of those of the images. kInternal when that
  // makes answers that are no numbers. REQUIRES: check_images(), 0 <= kept <= 1
  Status run(const Tensor& images, double kept);
  const std::vector<NormNames>& norms() const { return norms_; }

 private:
  struct Step {
    double kept;
    std::unique_ptr<Session> session;
  };
  explicit StatisticsPass(const AdaptedModel& model) : model_(model) {}
  Result<std::unique_ptr<Step>> compile_step(int64_t batch, double kept) const;

  AdaptedModel model_;  // its graph gives logits
  std::vector<NormNames> norms_;
  BySize<Step> steps_;
};

struct BatchNormOptions {
  int64_t batch = 100;
  // So many images of the source the statistics of the source count for, beside those of the window; 0: none.
  double prior = 16;
};

// Statistics of the source mixed with those of each window, which does not build on the window before. A
// layer's statistics are those behind layers that normalised by the window alone.
class BatchNormStatistics : public Strategy {
 public:
  static Result<std::unique_ptr<Strategy>> create(const AdaptedModel& model, const BatchNormOptions& options);
  std::string_view name() const override { return "bn"; }
  int64_t batch() const override { return options_.batch; }
  Result<bool> adapt(const Tensor& images) override;
  // What the weights hold now is the source from here on.
  Status reset() override;

 private:
  BatchNormStatistics(const AdaptedModel& model, const BatchNormOptions& options)
      : model_(model), options_(options) {}

  AdaptedModel model_;
  BatchNormOptions options_;
  std::unique_ptr<StatisticsPass> pass_;
  std::map<std::string, Tensor> source_;  // statistics by name
};

struct OndaOptions {
  int64_t images = 10;    // for each move
  double momentum = 0.1;  // the share that these have in it
};

// Running statistics that follow the images, a few at a time, from wherever they are.
class Onda : public Strategy {
 public:
  static Result<std::unique_ptr<Strategy>> create(const AdaptedModel& model, const OndaOptions& options);
  std::string_view name() const override { return "onda"; }
  int64_t batch() const override { return options_.images; }
  Result<bool> adapt(const Tensor& images) override;
  Status reset() override { return {}; }

 private:
  Onda(const AdaptedModel& model, const OndaOptions& options) : model_(model), options_(options) {}

  AdaptedModel model_;
  OndaOptions options_;
  std::unique_ptr<StatisticsPass> pass_;
};

}  // namespace limber::adapt
