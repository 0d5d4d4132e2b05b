#include "supernet/teach/distill.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "ops/op_def.h"
#include "runtime/compile.h"
#include "supernet/expand/own_copy.h"

namespace limber {
namespace {

constexpr size_t kArenaBytes = size_t{1} << 36;  // of addresses; pages become memory when a step uses them

void copy(const Tensor& from, Tensor to) {
  LIMBER_ASSERT(from.bytes() == to.bytes());
  std::memcpy(to.raw(), from.raw(), from.bytes());
}

double variance(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const auto count = static_cast<double>(values.size());
  return std::max(squares / count - sum / count * (sum / count), 1e-12);
}

Result<std::unique_ptr<Session>> make_session(const Graph& graph, std::shared_ptr<Parameters> params,
                                              const std::vector<std::shared_ptr<Backend>>& backends,
                                              int64_t batch, int threads,
                                              std::shared_ptr<WorkArena> memory = nullptr) {
  const CompileSettings how = batch_settings(graph, batch, threads);
  LIMBER_ASSIGN(auto plan, compile(graph, std::move(params), backends, how));
  return Session::create(std::move(plan), std::move(memory));
}

// The parameters that only this alternative has.
std::vector<std::string> own_parameters(const std::vector<std::string>& trainable, const Graph& base) {
  std::vector<std::string> own;
  for (const std::string& name : trainable) {
    if (!base.find(name)) own.push_back(name);
  }
  return own;
}

}  // namespace

double relative_error(const Tensor& got, const Tensor& want) {
  const auto a = got.data<float>(), b = want.data<float>();
  LIMBER_ASSERT(a.size() == b.size() && !a.empty());
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    squares += difference * difference;
  }
  return squares / static_cast<double>(a.size()) / variance(b);
}

Result<std::unique_ptr<Teacher>> Teacher::create(const ElasticModel& model,
                                                 const std::vector<std::shared_ptr<Backend>>& backends,
                                                 int64_t batch, int threads) {
  Graph graph = model.base;
  graph.mutable_outputs().clear();
  for (const Block& block : model.blocks) {
    const auto end = graph.find(block.name);
    if (!end) return invalid("the model has no value '{}', where a block should end", block.name);
    graph.add_output(*end, block.name);
  }
  LIMBER_ASSIGN(auto session, make_session(graph, model.params, backends, batch, threads));
  return std::unique_ptr<Teacher>(new Teacher(std::move(session)));
}

Status Teacher::run(const Tensor& images) {
  copy(images, session_->input(0));
  return session_->run();
}

Result<std::unique_ptr<Distiller>> Distiller::create(ElasticModel& model,
                                                     const std::vector<std::shared_ptr<Backend>>& backends,
                                                     const DistillOptions& options) {
  std::unique_ptr<Distiller> made(new Distiller(model, backends, options));
  LIMBER_ASSIGN(made->teacher_, Teacher::create(model, backends, options.batch, options.threads));
  LIMBER_ASSIGN(made->memory_, WorkArena::reserve(kArenaBytes));
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    for (size_t a = 1; a < model.blocks[b].alternatives.size(); ++a) {
      if (made->wanted(b, a)) LIMBER_TRY(made->add_student(b, a));
    }
  }
  return made;
}

// Copies do not stand for the originals: they are trained as part of whole variants.
bool Distiller::wanted(size_t block, size_t alternative) const {
  if (is_copy(model_.blocks[block].alternatives[alternative])) return false;
  return options_.only.empty() || options_.only[block][alternative];
}

Status Distiller::add_student(size_t block, size_t alternative) {
  const Alternative& chosen = model_.blocks[block].alternatives[alternative];
  TrainingOptions how{.threads = options_.threads, .memory = memory_};
  // What is trained is what inference computes: statistics stay as they are, scales and shifts follow.
  how.step = {.batch = options_.batch,
              .loss = {.kind = LossKind::kMse},
              .optimizer = options_.optimizer,
              .batch_norm = BatchNormMode::kFrozen};
  LIMBER_ASSIGN(const Graph prepared, prepare_model(chosen.graph, how.step));
  const std::vector<std::string> own = own_parameters(trainable_parameters(prepared), model_.base);
  if (own.empty()) return {};
  how.choose = [&](const Graph&, const std::vector<std::string>&) { return Result(own); };
  auto training = TrainingSession::create(chosen.graph, model_.params, backends_, how);
  if (!training.ok()) return training.status().in(model_.blocks[block].name + " as " + chosen.name);
  students_.push_back({block, alternative, *std::move(training)});
  return {};
}

Result<double> Distiller::step(const Tensor& images, double rate) {
  LIMBER_TRY(teacher_->run(images));
  double sum = 0;
  for (Student& student : students_) {
    const Tensor want = teacher_->input_of(student.block + static_cast<size_t>(of(student).span));
    copy(teacher_->input_of(student.block), student.training->images());
    copy(want, student.training->targets());
    student.training->set_rate(rate);
    LIMBER_ASSIGN(const float loss, student.training->step());
    sum += static_cast<double>(loss) / variance(want.data<float>());
  }
  return students_.empty() ? 0 : sum / static_cast<double>(students_.size());
}

Status Distiller::judge(std::span<const Tensor> batches) {
  struct Judged {
    size_t block;
    Alternative* alternative;
    std::unique_ptr<Session> session;
  };
  std::vector<Judged> judged;
  for (size_t b = 0; b < model_.blocks.size(); ++b) {
    std::vector<Alternative>& alternatives = model_.blocks[b].alternatives;
    for (size_t a = 1; a < alternatives.size(); ++a) {
      if (!wanted(b, a)) continue;
      LIMBER_ASSIGN(auto session, make_session(alternatives[a].graph, model_.params, backends_,
                                               options_.batch, options_.threads, memory_));
      alternatives[a].error = 0;
      judged.push_back({b, &alternatives[a], std::move(session)});
    }
  }
  for (const Tensor& images : batches) {
    LIMBER_TRY(teacher_->run(images));
    for (Judged& one : judged) {
      copy(teacher_->input_of(one.block), one.session->input(0));
      LIMBER_TRY(one.session->run());
      const Tensor want = teacher_->input_of(one.block + static_cast<size_t>(one.alternative->span));
      one.alternative->error +=
          relative_error(one.session->output(0), want) / static_cast<double>(batches.size());
    }
  }
  return {};
}

}  // namespace limber
