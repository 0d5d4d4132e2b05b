#include "jobs/run_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "jobs/classifier.h"

namespace limber {
namespace {

std::vector<std::string> row_names(const std::vector<InputFiles>& files) {
  for (const InputFiles& one : files) {
    if (is_image(one.files[0])) return one.files;
  }
  return {};
}

}  // namespace

Result<RunJob> RunJob::open(const RunJobOptions& options, const JobControl& control) {
  RunJob job;
  job.options_ = options;
  job.options_.image.seed = options.seed;
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(options.model));
  if (recorded) {
    use_recorded(job.options_.image, recorded->input);
    job.classes_ = recorded->classes;
  }
  LIMBER_ASSIGN(job.model_, load(options, control));
  return job;
}

Status RunJob::assign() {
  LIMBER_ASSIGN(files_, assign_files(model_.graph, options_.inputs));
  return {};
}

Result<RunResult> RunJob::run(const JobControl& control) {
  std::vector<Tensor> tensors;
  for (const InputFiles& one : files_) {
    const Value& value = model_.graph.value(model_.graph.inputs()[one.input]);
    LIMBER_ASSIGN(Tensor tensor, read_input(one, value.name, value.type, options_.image));
    tensors.push_back(std::move(tensor));
  }
  LIMBER_ASSIGN(Adaptation adaptation, adapt_shapes(model_.graph, files_, tensors));
  if (!adaptation.shapes.empty()) {
    options_.shapes.merge(adaptation.shapes);
    LIMBER_ASSIGN(model_, load(options_, control));
  }
  options_.dims.merge(adaptation.dims);
  LIMBER_ASSIGN(auto plan, build(model_, options_, false, control));
  LIMBER_ASSIGN(std::shared_ptr<Session> session, Session::create(plan));
  for (size_t i = 0; i < files_.size(); ++i) {
    Tensor target = session->input(files_[i].input);
    if (target.type() != tensors[i].type()) {
      return invalid("{}: {}, the model wants {}", files_[i].files[0], tensors[i].type().to_string(),
                     target.type().to_string());
    }
    std::memcpy(target.raw(), tensors[i].raw(), tensors[i].bytes());
  }
  const double start = now_seconds();
  LIMBER_TRY(session->run());
  RunResult result{.rows = row_names(files_), .seconds = now_seconds() - start};
  const auto& list = session->plan().graph.outputs();
  for (size_t i = 0; i < list.size(); ++i) result.outputs.push_back({list[i].name, session->output(i)});
  result.session = std::move(session);
  return result;
}

Status check_numbers(const std::vector<NamedTensor>& outputs) {
  for (const NamedTensor& output : outputs) {
    if (output.tensor.dtype() != DType::kF32) continue;
    const auto values = std::as_const(output.tensor).data<float>();
    const auto bad = std::count_if(values.begin(), values.end(), [](float x) { return std::isnan(x); });
    if (bad > 0)
      return invalid(
          "output '{}': {} of {} values are not numbers (NaN): the weights are damaged, or the inputs "
          "are not what the model expects",
          output.name, bad, values.size());
  }
  return {};
}

}  // namespace limber
