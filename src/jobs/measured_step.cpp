#include "jobs/measured_step.h"

#include <cstring>

#include "base/clock.h"
#include "base/random.h"

namespace limber {
namespace {

void fill(Tensor tensor, Random& random) {
  switch (tensor.dtype()) {
    case DType::kF32:
      for (float& x : tensor.data<float>()) x = static_cast<float>(random.uniform());
      return;
    case DType::kF64:
      for (double& x : tensor.data<double>()) x = random.uniform();
      return;
    case DType::kI32:
      for (int32_t& x : tensor.data<int32_t>()) x = static_cast<int32_t>(random.below(2));
      return;
    case DType::kI64:
      for (int64_t& x : tensor.data<int64_t>()) x = static_cast<int64_t>(random.below(2));
      return;
    case DType::kU8:
      for (uint8_t& x : tensor.data<uint8_t>()) x = static_cast<uint8_t>(random.below(256));
      return;
    default:  // zero is a value of every type
      std::memset(tensor.raw(), 0, tensor.bytes());
  }
}

}  // namespace

Result<std::unique_ptr<TrainingSession>> build_training(const Model& model, const JobOptions& options,
                                                        int last, const JobControl& control) {
  const BuildSpec spec = build_spec(options, true);
  TrainingOptions training;
  training.step.batch = std::max<int64_t>(1, options.batch);
  training.step.batch_norm = BatchNormMode::kAuto;  // as a training does
  training.threads = thread_count(spec);
  training.step.optimizer.effects = true;  // what elastic training is measured with costs nothing otherwise
  if (last > 0) {
    training.choose = [last](const Graph& /*prepared*/, const std::vector<std::string>& trainable) {
      const auto count = std::min(static_cast<ptrdiff_t>(last), std::ssize(trainable));
      return Result<std::vector<std::string>>({trainable.end() - count, trainable.end()});
    };
  }
  const double start = now_seconds();
  LIMBER_ASSIGN(auto session,
                TrainingSession::create(model.graph, model.params, make_backends(spec), training));
  session->set_rate(kBenchRate);
  LIMBER_ASSIGN(const Plan* const plan, session->plan());
  control.note(NoteKind::kInfo,
               fmt::format("compiled to {} steps, {} reorders in {:.1f} ms", plan->steps.size(),
                           plan->num_reorders(), 1e3 * (now_seconds() - start)));
  Random random(options.seed);
  fill(session->images(), random);
  return session;
}

void fill_random(Session& session, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i < session.plan().graph.inputs().size(); ++i) fill(session.input(i), random);
}

}  // namespace limber
