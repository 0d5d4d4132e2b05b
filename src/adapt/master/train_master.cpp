#include "adapt/master/train_master.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>

#include "adapt/master/part_training.h"
#include "adapt/master/relevance.h"
#include "adapt/master/spread_gates.h"
#include "base/clock.h"
#include "base/random.h"
#include "passes/classifier.h"
#include "passes/slice_channels.h"
#include "runtime/compile.h"

namespace limber::adapt {
namespace {

// Of the units of every group. Below the least of them a network is too small to be of use, and would ask
// weights for what all larger ones pay for.
constexpr std::array kShares = {0.3, 0.4, 0.5, 0.6, 0.75};
// Images that decide which units a step keeps, at most: of many, relevance is always the same, and most units
// would never learn to work in a small network.
constexpr uint64_t kMostDeciding = 8;
constexpr double kWarmUp =
    0.02;  // of the time, in which the rate grows: the optimiser knows nothing at first
constexpr double kRecent = 0.05;  // weight of a step in the losses that are shown

void softmax(std::span<const float> logits, std::span<float> to) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += to[i] = std::exp(logits[i] - largest);
  for (float& x : to) x = static_cast<float>(x / sum);
}

// Rows begin .. begin + count of the images.
Result<Tensor> some_of(const Tensor& images, uint64_t begin, uint64_t count) {
  TensorType type = images.type();
  type.shape[0] = Dim(static_cast<int64_t>(count));
  LIMBER_ASSIGN(Tensor some, Tensor::allocate(type));
  const size_t row = images.bytes() / static_cast<size_t>(images.shape().dim(0));
  std::memcpy(some.raw(), static_cast<const std::byte*>(images.raw()) + row * begin, some.bytes());
  return some;
}

Result<bool> all_open(const Master& master, const Parameters& params) {
  for (const FilterGate& gate : master.gates) {
    LIMBER_ASSIGN(const Tensor weight, params.get(gate.weight));
    LIMBER_ASSIGN(const Tensor bias, params.get(gate.bias));
    const auto is = [](float expected) { return [expected](float x) { return x == expected; }; };
    if (!std::all_of(weight.data<float>().begin(), weight.data<float>().end(), is(0)) ||
        !std::all_of(bias.data<float>().begin(), bias.data<float>().end(), is(1)))
      return false;
  }
  return true;
}

class MasterTrainer {
 public:
  MasterTrainer(const AdaptedModel& model, const AdaptedModel& original, std::shared_ptr<const Dataset> data,
                const MasterTraining& options)
      : model_(model),
        original_(original),
        data_(std::move(data)),
        options_(options),
        random_(options.seed ^ static_cast<uint64_t>(options.seconds_before)),
        saved_(options.seconds_before) {}

  Result<MasterTrained> run() {
    LIMBER_TRY(prepare());
    LIMBER_ASSIGN(const auto loader, Loader::make(data_, loader_options()));
    bool more = true;
    for (uint64_t epoch = 0; more; ++epoch) {
      LIMBER_TRY(loader->start_epoch(epoch));
      LIMBER_ASSIGN(more, run_epoch(*loader));
    }
    done_.seconds = seconds();
    if (options_.save) LIMBER_TRY(options_.save(done_.seconds));
    return done_;
  }

 private:
  // That are over: whatever is done here counts, not the steps alone.
  double seconds() const { return options_.seconds_before + now_seconds() - start_; }
  // The share that is.
  double over() const {
    const double share = options_.batches > 0
                             ? static_cast<double>(batches_) / static_cast<double>(options_.batches)
                             : seconds() / options_.seconds;
    return std::clamp(share, 0.0, 1.0);
  }
  bool ends() const { return over() >= 1 || (options_.stop != nullptr && options_.stop->load()); }

  LoaderOptions loader_options() const {
    LoaderOptions how;
    how.batch = options_.batch;
    how.seed = options_.seed + static_cast<uint64_t>(options_.seconds_before);  // other batches than before
    how.workers = options_.workers;
    how.threads = model_.threads;
    how.drop_last = true;
    how.input = options_.input;
    how.augment = true;
    how.augmentation = options_.augmentation;
    how.on_bad_image = options_.on_bad_image;
    return how;
  }

  Status prepare() {
    if (data_->size() < static_cast<size_t>(options_.batch))
      return invalid("there are {} images to learn from, fewer than a batch of {}; give a smaller batch",
                     data_->size(), options_.batch);
    LIMBER_ASSIGN(classes_, count_classes(original_.graph));
    LIMBER_ASSIGN(reader_, MasterReader::create(model_));
    const Master& master = reader_->master();
    LIMBER_ASSIGN(const bool open, all_open(master, *model_.weights));
    if (open) LIMBER_TRY(spread_gates(master, *model_.weights));
    LIMBER_ASSIGN(parts_, PartTraining::create(model_, master,
                                               {.batch = options_.batch, .sparsity = options_.sparsity}));
    const Graph graph = logits_of(original_.graph);
    LIMBER_ASSIGN(auto plan, compile(graph, original_.weights, original_.backends,
                                     batch_settings(graph, options_.batch, original_.threads)));
    LIMBER_ASSIGN(teacher_, Session::create(std::move(plan)));
    LIMBER_ASSIGN(targets_, Tensor::allocate({DType::kF32, Shape{options_.batch, classes_}}));
    return {};
  }

  // False when the time is over.
  Result<bool> run_epoch(Loader& loader) {
    while (!ends()) {
      LIMBER_ASSIGN(const Batch batch, loader.next());
      if (batch.size == 0) return true;
      LIMBER_TRY(learn_from(batch));
      LIMBER_TRY(save_now_and_then());
    }
    return false;
  }

  Status learn_from(const Batch& batch) {
    LIMBER_TRY(ask_original(batch));
    const double share = over();
    const double rate =
        options_.rate * std::min(1.0, share / kWarmUp) * 0.5 * (1 + std::cos(std::numbers::pi * share));
    // The whole is to say what the original does, on whatever it is shown; labels would teach it something
    // else.
    set_targets(batch, 0);
    LIMBER_TRY(step(all_units(reader_->master().groups), batch, rate, whole_));
    set_targets(batch, options_.label_share);
    LIMBER_TRY(look_at(batch));
    LIMBER_TRY(step(draw_units(), batch, rate, part_));
    ++batches_;
    done_.images += batch.size;
    if (options_.progress) {
      options_.progress({seconds(), options_.seconds, done_.images, whole_.value_or(0), part_.value_or(0)});
    }
    return {};
  }

  // A few images of the batch, to draw units by.
  Status look_at(const Batch& batch) {
    const uint64_t count = std::min<uint64_t>(kMostDeciding, static_cast<uint64_t>(batch.size));
    const uint64_t begin = random_.below(static_cast<uint64_t>(batch.size) - count + 1);
    LIMBER_ASSIGN(const Tensor some, some_of(batch.images, begin, count));
    LIMBER_ASSIGN(MasterReading reading, reader_->read(some));
    deciding_ = std::move(reading.relevance);
    return {};
  }

  // By the relevance of one or more of these.
  std::vector<std::vector<int64_t>> draw_units() {
    const uint64_t count = uint64_t{1} << random_.below(std::bit_width(deciding_.size()));
    const auto begin = static_cast<std::ptrdiff_t>(random_.below(deciding_.size() - count + 1));
    const auto first = deciding_.begin() + begin;
    return most_relevant(mean_relevance({first, first + static_cast<std::ptrdiff_t>(count)}),
                         kShares[random_.below(kShares.size())]);
  }

  Status step(const std::vector<std::vector<int64_t>>& units, const Batch& batch, double rate,
              std::optional<double>& lately) {
    LIMBER_ASSIGN(const float loss, parts_->step(units, batch.images, targets_, rate));
    if (!std::isfinite(loss)) {
      return error(Code::kInternal,
                   "the loss of a network cut from the master is {}; give a lower rate than {}", loss,
                   options_.rate);
    }
    ++done_.steps;
    lately =
        lately ? (1 - kRecent) * *lately + kRecent * static_cast<double>(loss) : static_cast<double>(loss);
    return {};
  }

  Status ask_original(const Batch& batch) {
    std::memcpy(teacher_->input(0).raw(), batch.images.raw(), batch.images.bytes());
    return teacher_->run();
  }

  void set_targets(const Batch& batch, double label_share) {
    const Tensor answers = teacher_->output(0);
    const auto width = static_cast<size_t>(classes_);
    const auto share = static_cast<float>(label_share);
    for (size_t i = 0; i < static_cast<size_t>(options_.batch); ++i) {
      const auto row = targets_.data<float>().subspan(i * width, width);
      softmax(answers.data<float>().subspan(i * width, width), row);
      if (share <= 0) continue;
      for (float& p : row) p *= 1 - share;
      row[static_cast<size_t>(batch.labels.data<int64_t>()[i])] += share;
    }
  }

  Status save_now_and_then() {
    if (!options_.save || seconds() - saved_ < options_.save_every) return {};
    saved_ = seconds();
    return options_.save(saved_);
  }

  const AdaptedModel& model_;
  const AdaptedModel& original_;
  const std::shared_ptr<const Dataset> data_;
  const MasterTraining& options_;
  Random random_;
  const double start_ = now_seconds();
  double saved_;
  int64_t classes_ = 0, batches_ = 0;
  std::unique_ptr<MasterReader> reader_;
  std::unique_ptr<PartTraining> parts_;
  std::unique_ptr<Session> teacher_;
  Tensor targets_;
  std::optional<double> whole_, part_;
  std::vector<UnitRelevance> deciding_;  // by image
  MasterTrained done_;
};

}  // namespace

Result<MasterTrained> train_master(const AdaptedModel& model, const AdaptedModel& original,
                                   std::shared_ptr<const Dataset> data, const MasterTraining& options) {
  return MasterTrainer(model, original, std::move(data), options).run();
}

}  // namespace limber::adapt
