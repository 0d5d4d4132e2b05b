#include "train/training_session.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/clock.h"
#include "base/memory.h"
#include "ops/op_def.h"

namespace limber {
namespace {

// Changes of the trained set between two trims of the heap, in which packed weights come and go: a trim walks
// all of the heap, so not every time.
constexpr size_t kTrimEvery = 64;

size_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(size) : size_t{16} << 30;
}

std::vector<std::string> trained_names(std::span<const std::string> names, const TrainedChannels& channels) {
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    const auto part = channels.find(name);
    parts.push_back(part == channels.end() ? name : trained_name(name, part->second));
  }
  return parts;
}

std::string key_of(std::span<const std::string> names, Phase phase, Thrift thrift,
                   const TrainedChannels& channels) {
  std::vector<std::string> sorted = trained_names(names, channels);
  std::sort(sorted.begin(), sorted.end());
  std::string key = std::to_string(static_cast<int>(phase)) + std::to_string(static_cast<int>(thrift));
  for (const std::string& name : sorted) key += '\n' + name;
  return key;
}

}  // namespace

Result<std::unique_ptr<TrainingSession>> TrainingSession::create(
    const Graph& model, std::shared_ptr<Parameters> params, std::vector<std::shared_ptr<Backend>> backends,
    const TrainingOptions& options) {
  std::unique_ptr<TrainingSession> made(new TrainingSession(std::move(params), std::move(backends), options));
  LIMBER_ASSIGN(made->prepared_, prepare_model(model, options.step));
  for (const Value& value : model.values()) {
    if (value.role == Role::kParameter || value.role == Role::kState)
      made->model_names_.push_back(value.name);
  }
  made->trainable_ = trainable_parameters(made->prepared_);
  if (made->trainable_.empty()) return invalid("the model has no parameter that can be trained");
  made->memory_ = options.memory;
  if (made->memory_ == nullptr) {
    LIMBER_ASSIGN(made->memory_, WorkArena::reserve(physical_memory()));
  }
  std::vector<std::string> first = made->trainable_;
  if (options.choose) {
    LIMBER_ASSIGN(first, options.choose(made->prepared_, made->trainable_));
  }
  if (options.many_sets && !made->backends_.front()->measures()) LIMBER_TRY(made->assign_for_all());
  LIMBER_TRY(made->set_trained(first, Thrift::kTime, options.channels));
  return made;
}

Status TrainingSession::assign_for_all() {
  const Phase phase = options_.step.micro_batches > 1 ? Phase::kFinish : Phase::kUpdate;
  LIMBER_ASSIGN(const Graph graph, training_step(prepared_, trainable_, options_.step, phase));
  LIMBER_ASSIGN(const Graph step, recompute_activations(graph, recomputable_activations(graph).cheap));
  LIMBER_ASSIGN(assignment_,
                estimate_assignment(step, backends_, {.threads = options_.threads, .optimize = false}));
  return {};
}

Status TrainingSession::set_trained(std::span<const std::string> names, Thrift thrift,
                                    const TrainedChannels& channels) {
  if (names.empty()) return invalid("nothing is to be trained");
  const Phase phase = options_.step.micro_batches > 1 ? Phase::kFinish : Phase::kUpdate;
  LIMBER_TRY(session(names, phase, thrift, channels).status());
  thrift_ = thrift;
  if (options_.forget_state) forget_others(names, channels);
  if (channels != channels_ || !std::equal(names.begin(), names.end(), trained_.begin(), trained_.end()))
    drop_features();
  channels_ = channels;
  trained_.assign(names.begin(), names.end());
  return {};
}

void TrainingSession::forget_others(std::span<const std::string> names, const TrainedChannels& channels) {
  const std::vector<std::string> parts = trained_names(names, channels);
  const std::set<std::string_view> kept(parts.begin(), parts.end());
  for (const std::string& name : trained_names(trained_, channels_)) {
    if (kept.count(name) > 0) continue;
    for (const std::string& state : optimizer_state(name)) params_->erase(state);
  }
}

Result<Session*> TrainingSession::session(std::span<const std::string> names, Phase phase, Thrift thrift,
                                          const TrainedChannels& channels) {
  const std::string key = key_of(names, phase, thrift, channels);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    LIMBER_TRY(add_missing_state(found->second->session->plan().graph, *params_));
    sessions_.splice(sessions_.begin(), sessions_, found->second);
    return sessions_.front().session.get();
  }
  memory_->trim(0);  // nothing in it outlives a step, and compiling needs memory too
  LIMBER_ASSIGN(auto made, compile_set(names, phase, thrift, channels));
  sessions_.push_front({key, std::move(made)});
  by_key_[key] = sessions_.begin();
  if (sessions_.size() > options_.max_plans) drop_oldest();
  return sessions_.front().session.get();
}

void TrainingSession::drop_oldest() {
  if (active_ == sessions_.back().session.get()) active_ = nullptr;
  by_key_.erase(sessions_.back().key);
  sessions_.pop_back();
  trim_heap();
}

Result<std::unique_ptr<Session>> TrainingSession::compile_set(std::span<const std::string> names, Phase phase,
                                                              Thrift thrift,
                                                              const TrainedChannels& channels) {
  LIMBER_ASSIGN(const Graph graph, training_step(prepared_, names, options_.step, phase, channels));
  LIMBER_TRY(add_missing_state(graph, *params_));
  const RecomputableActivations twice = recomputable_activations(graph);
  std::shared_ptr<const Plan> plan;
  if (thrift == Thrift::kOthers) {
    LIMBER_ASSIGN(const Graph smaller, recompute_beyond(graph, names));
    LIMBER_ASSIGN(plan, compile_as_it_is(smaller));
  } else {
    LIMBER_ASSIGN(plan, compile_step(graph, thrift == Thrift::kMemory ? twice.all : twice.cheap));
  }
  if (!within_limit(*plan)) {
    LIMBER_ASSIGN(plan, compile_within_limit(graph, twice, names.size()));
  }
  return Session::create(std::move(plan), memory_);
}

Result<size_t> TrainingSession::needed_bytes(std::span<const std::string> names) {
  const Phase phase = options_.step.micro_batches > 1 ? Phase::kFinish : Phase::kUpdate;
  LIMBER_ASSIGN(const Graph graph, training_step(prepared_, names, options_.step, phase));
  LIMBER_TRY(add_missing_state(graph, *params_));
  LIMBER_ASSIGN(const auto plan, compile_step(graph, recomputable_activations(graph).cheap));
  return plan->memory_bytes();
}

bool TrainingSession::within_limit(const Plan& plan) const {
  return options_.memory_limit == 0 || plan.memory_bytes() <= options_.memory_limit;
}

Result<std::shared_ptr<const Plan>> TrainingSession::compile_step(const Graph& graph, size_t twice) {
  LIMBER_ASSIGN(const Graph smaller, recompute_activations(graph, twice));
  return compile_as_it_is(smaller);
}

Result<std::shared_ptr<const Plan>> TrainingSession::compile_as_it_is(const Graph& graph) {
  CompileSettings how{.threads = options_.threads, .optimize = false, .assignment = assignment_};
  LIMBER_ASSIGN(auto plan, compile(graph, params_, backends_, how));
  if (assignment_ < 0) assignment_ = plan->assignment;
  return plan;
}

// Makes as few activations twice as the limit allows: bisection, since more of them need less memory.
Result<std::shared_ptr<const Plan>> TrainingSession::compile_within_limit(
    const Graph& graph, const RecomputableActivations& twice, size_t tensors) {
  size_t fits = twice.all, too_few = twice.cheap;
  LIMBER_ASSIGN(auto best, compile_step(graph, fits));
  if (!within_limit(*best)) {
    return error(
        Code::kResourceExhausted,
        "a step that trains {} tensors with batch {} needs {} bytes at least, the memory limit is {}; raise "
        "it, or use a smaller batch (with gradient accumulation) or train fewer tensors",
        tensors, options_.step.batch, best->memory_bytes(), options_.memory_limit);
  }
  while (fits - too_few > 1) {
    const size_t middle = too_few + (fits - too_few) / 2;
    LIMBER_ASSIGN(auto plan, compile_step(graph, middle));
    const bool ok = within_limit(*plan);
    (ok ? fits : too_few) = middle;
    if (ok) best = std::move(plan);
  }
  return best;
}

// The session of the current set, ready to run: it takes over from the one that ran before, which lets go
// of its packed weights only after this one had the chance to share them.
Result<Session*> TrainingSession::current(Phase phase) {
  LIMBER_ASSIGN(Session* const next, session(trained_, phase, thrift_, channels_));
  LIMBER_TRY(activate(next));
  return next;
}

Status TrainingSession::activate(Session* next) {
  if (active_ != nullptr && active_ != next) {
    LIMBER_TRY(next->resume());
    active_->suspend();
    memory_->trim(next->plan().arena_bytes);
    if (++switches_ % kTrimEvery == 0) trim_heap();  // packed weights come and go
  }
  active_ = next;
  return {};
}

Tensor TrainingSession::input(size_t index) const { return sessions_.front().session->input(index); }

Tensor TrainingSession::named_input(std::string_view name) const {
  const Session& session = *sessions_.front().session;
  const Graph& graph = session.plan().graph;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (graph.value(graph.inputs()[i]).name == name) return session.input(i);
  }
  return {};
}

void TrainingSession::set_rate(double rate) { rate_ = static_cast<float>(rate); }

Result<float> TrainingSession::step(Phase phase, std::span<const uint32_t> samples) {
  const bool use_features =
      options_.feature_bytes > 0 && !samples.empty() && phase == Phase::kUpdate && !timed_;
  LIMBER_ASSIGN(Session * session, use_features ? session_with_features(samples) : current(phase));
  if (Tensor rate = named_input("rate"); rate.valid()) rate.data<float>()[0] = rate_;
  const bool updates = phase == Phase::kUpdate || phase == Phase::kFinish;
  const double start = now_seconds();
  LIMBER_TRY(timed_ && updates ? session->run_timed(seconds_) : session->run());
  last_seconds_ = now_seconds() - start;
  return session->output(0).data<float>()[0];
}

Tensor TrainingSession::logits() const { return active_->output(1); }

std::vector<Effect> TrainingSession::effects() const {
  LIMBER_ASSERT(options_.step.optimizer.effects);
  const std::vector<Output>& outputs = active_->plan().graph.outputs();
  std::map<std::string_view, size_t> index;
  for (size_t i = 0; i < outputs.size(); ++i) index[outputs[i].name] = i;
  std::vector<Effect> effects;
  for (const std::string& name : trained_) {
    const auto sums = active_->output(index.at("effect/" + name)).data<float>();
    effects.push_back({sums[kEffectGain], sums[kEffectGradientSquares], sums[kEffectWeightSquares]});
  }
  return effects;
}

Result<const Plan*> TrainingSession::plan(Phase phase) {
  LIMBER_ASSIGN(Session* const next, session(trained_, phase, thrift_, channels_));
  return &next->plan();
}

Result<Profile> TrainingSession::profile(int runs) {
  const Phase phase = options_.step.micro_batches > 1 ? Phase::kFinish : Phase::kUpdate;
  LIMBER_ASSIGN(Session* const session, current(phase));
  std::vector<std::pair<std::string, std::vector<std::byte>>> saved;
  for (const std::string& name : session->plan().updates) {
    LIMBER_ASSIGN(const Tensor tensor, params_->get(name));
    const auto* bytes = static_cast<const std::byte*>(tensor.raw());
    saved.emplace_back(name, std::vector<std::byte>(bytes, bytes + tensor.bytes()));
  }
  auto profile = session->profile(runs);
  session->suspend();  // lets go of packed parameters, which become plain here
  for (const auto& [name, bytes] : saved) {
    LIMBER_ASSIGN(Tensor tensor, params_->writable(name));
    if (!bytes.empty()) std::memcpy(tensor.raw(), bytes.data(), bytes.size());
  }
  params_->mark_changed(session->plan().updates);
  return profile;
}

}  // namespace limber
