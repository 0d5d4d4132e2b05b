// The part of TrainingSession that keeps what does not change from one epoch to the next.

#include <algorithm>
#include <cstring>

#include "train/constant_prefix.h"
#include "train/training_session.h"

namespace limber {

FeatureState TrainingSession::features() const {
  if (options_.feature_bytes == 0) return FeatureState::kOff;
  return features_ == nullptr ? FeatureState::kFilling : features_->state;
}

size_t TrainingSession::feature_bytes() const { return features_ == nullptr ? 0 : features_->bytes; }

void TrainingSession::drop_features() {
  if (features_ == nullptr) return;
  if (active_ != nullptr && active_ == features_->rest.get()) {
    active_->suspend();
    active_ = nullptr;
  }
  features_ = nullptr;
}

Status TrainingSession::make_features() {
  features_ = std::make_unique<Features>();
  Features& f = *features_;
  LIMBER_ASSIGN(const Graph graph,
                training_step(prepared_, trained_, options_.step, Phase::kUpdate, channels_));
  const auto split = split_constant_prefix(graph);
  if (!split) return {};
  const auto batch = static_cast<size_t>(options_.step.batch);
  for (const Output& output : split->prefix.outputs())
    f.bytes += split->prefix.type(output.value).bytes() / batch * options_.samples;
  f.state = FeatureState::kTooLarge;
  if (f.bytes > options_.feature_bytes) return {};
  LIMBER_ASSIGN(auto rest, compile_step(split->rest, recomputable_activations(split->rest).cheap));
  LIMBER_ASSIGN(f.rest, Session::create(std::move(rest), memory_));
  const CompileSettings how{.threads = options_.threads, .optimize = false, .assignment = assignment_};
  LIMBER_ASSIGN(auto prefix, compile(split->prefix, params_, backends_, how));
  LIMBER_ASSIGN(f.prefix, Session::create(std::move(prefix), memory_));
  for (const Output& output : split->prefix.outputs()) {
    const std::vector<ValueId>& inputs = f.rest->plan().graph.inputs();
    const auto found = std::find_if(inputs.begin(), inputs.end(), [&](ValueId v) {
      return f.rest->plan().graph.value(v).name == output.name;
    });
    LIMBER_ASSERT(found != inputs.end());
    f.inputs.push_back(static_cast<size_t>(found - inputs.begin()));
    Shape shape = split->prefix.type(output.value).shape;
    shape[0] = Dim(static_cast<int64_t>(options_.samples));
    LIMBER_ASSIGN(Tensor values, Tensor::allocate({split->prefix.type(output.value).dtype, shape}));
    f.values.push_back(std::move(values));
  }
  f.known.assign(options_.samples, false);
  f.unknown = options_.samples;
  f.state = FeatureState::kFilling;
  return {};
}

// Makes the features of these images known. Both sessions work in the same arena, one after the other.
Status TrainingSession::find_features(std::span<const uint32_t> samples) {
  Features& f = *features_;
  const bool all = std::all_of(samples.begin(), samples.end(), [&](uint32_t i) { return f.known[i]; });
  if (all) return {};
  LIMBER_TRY(f.prefix->run());
  for (size_t k = 0; k < f.values.size(); ++k) {
    const Tensor made = f.prefix->output(k);
    const size_t each = made.bytes() / samples.size();
    for (size_t i = 0; i < samples.size(); ++i) {
      std::memcpy(static_cast<std::byte*>(f.values[k].raw()) + samples[i] * each,
                  static_cast<const std::byte*>(made.raw()) + i * each, each);
    }
  }
  for (uint32_t i : samples) {
    if (f.known[i]) continue;
    f.known[i] = true;
    --f.unknown;
  }
  if (f.unknown > 0) return {};
  f.prefix = nullptr;
  f.state = FeatureState::kReady;
  return {};
}

Result<Session*> TrainingSession::session_with_features(std::span<const uint32_t> samples) {
  if (features_ == nullptr) LIMBER_TRY(make_features());
  Features& f = *features_;
  if (f.rest == nullptr) return current(Phase::kUpdate);
  LIMBER_TRY(find_features(samples));
  LIMBER_TRY(activate(f.rest.get()));
  for (size_t k = 0; k < f.values.size(); ++k) {
    Tensor input = f.rest->input(f.inputs[k]);
    const size_t each = input.bytes() / samples.size();
    for (size_t i = 0; i < samples.size(); ++i) {
      std::memcpy(static_cast<std::byte*>(input.raw()) + i * each,
                  static_cast<const std::byte*>(f.values[k].raw()) + samples[i] * each, each);
    }
  }
  return f.rest.get();
}

}  // namespace limber
