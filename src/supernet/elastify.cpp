#include "supernet/elastify.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/clock.h"

namespace limber {
namespace {

constexpr double kRecent = 0.05;  // weight of a batch in the error that is shown

class Teaching {
 public:
  Teaching(Distiller& distiller, Loader& loader, const ElastifyOptions& options)
      : distiller_(distiller), loader_(loader), options_(options), seconds_(options.seconds_before) {}

  Result<double> run() {
    double saved = seconds_;
    for (uint64_t epoch = 0; !over(); ++epoch) {
      LIMBER_TRY(loader_.start_epoch(epoch));
      while (!over()) {
        LIMBER_ASSIGN(const bool more, batch());
        if (!more) break;
        if (!options_.save || seconds_ - saved < options_.save_every) continue;
        saved = seconds_;
        LIMBER_TRY(options_.save(seconds_));
      }
    }
    return std::min(seconds_, options_.seconds);
  }

 private:
  bool over() const {
    return seconds_ >= options_.seconds || (options_.stop != nullptr && options_.stop->load());
  }

  // False at the end of an epoch.
  Result<bool> batch() {
    const double start = now_seconds();
    LIMBER_ASSIGN(const Batch batch, loader_.next());
    if (batch.size == 0) return false;
    const double done = std::min(1.0, seconds_ / options_.seconds);
    const double rate = options_.rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
    LIMBER_ASSIGN(const double error, distiller_.step(batch.images, rate));
    seconds_ += now_seconds() - start;
    images_ += batch.size;
    error_ = images_ == batch.size ? error : (1 - kRecent) * error_ + kRecent * error;
    if (options_.progress) options_.progress({seconds_, options_.seconds, images_, error_});
    return true;
  }

  Distiller& distiller_;
  Loader& loader_;
  const ElastifyOptions& options_;
  double seconds_, error_ = 0;
  int64_t images_ = 0;
};

LoaderOptions loader_options(const ElastifyOptions& options) {
  LoaderOptions how;
  how.batch = options.distill.batch;
  how.seed = options.seed + static_cast<uint64_t>(options.seconds_before);  // other batches than before
  how.workers = options.workers;
  how.drop_last = true;
  how.augmentation = options.input;
  how.on_bad_image = options.on_bad_image;
  return how;
}

Result<std::vector<Tensor>> judge_batches(const std::shared_ptr<const Dataset>& data,
                                          const ElastifyOptions& options) {
  LoaderOptions how = loader_options(options);
  how.seed = options.seed;
  how.augment = false;
  LIMBER_ASSIGN(const auto loader, Loader::make(data, how));
  LIMBER_TRY(loader->start_epoch(0));
  std::vector<Tensor> batches;
  while (static_cast<int64_t>(batches.size()) < options.judge_batches) {
    LIMBER_ASSIGN(const Batch batch, loader->next());
    if (batch.size == 0) break;
    batches.push_back(batch.images);
  }
  return batches;
}

}  // namespace

Result<double> teach_alternatives(ElasticModel& model, std::shared_ptr<const Dataset> data,
                                  const std::vector<std::shared_ptr<Backend>>& backends,
                                  const ElastifyOptions& options) {
  LIMBER_ASSIGN(const auto distiller, Distiller::create(model, backends, options.distill));
  LIMBER_ASSIGN(const auto loader, Loader::make(data, loader_options(options)));
  double seconds = options.seconds_before;
  if (distiller->students() > 0) {
    LIMBER_ASSIGN(seconds, Teaching(*distiller, *loader, options).run());
  }
  LIMBER_ASSIGN(const std::vector<Tensor> batches, judge_batches(data, options));
  LIMBER_TRY(distiller->judge(batches));
  if (options.save) LIMBER_TRY(options.save(seconds));
  return seconds;
}

}  // namespace limber
