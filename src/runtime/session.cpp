#include "runtime/session.h"

#include <algorithm>

#include "base/clock.h"
#include "base/median.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "runtime/timing.h"

namespace limber {
namespace {

Status run_once(const Kernel& kernel, const void* input, void* output) {
  LIMBER_ASSIGN(const auto scratch, Buffer::allocate(kernel.scratch_bytes()));
  LIMBER_ASSIGN(const auto bound, kernel.bind({{input}, {output}, scratch->data()}));
  bound->run();
  return {};
}

}  // namespace

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Plan> plan,
                                                 std::shared_ptr<WorkArena> shared) {
  LIMBER_ASSERT(plan->params != nullptr);
  std::unique_ptr<Session> session(new Session(std::move(plan), std::move(shared)));
  LIMBER_TRY(session->allocate());
  LIMBER_TRY(session->refresh());
  return session;
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Plan> plan,
                                                 const WeightSnapshot& weights,
                                                 std::shared_ptr<WorkArena> shared) {
  LIMBER_ASSERT(plan->params == nullptr);
  std::unique_ptr<Session> session(new Session(std::move(plan), std::move(shared)));
  LIMBER_TRY(session->allocate());
  LIMBER_TRY(session->use(weights));
  return session;
}

Status Session::allocate() {
  if (shared_ == nullptr) {
    LIMBER_ASSIGN(arena_, Buffer::allocate(plan_->arena_bytes));
  } else if (plan_->arena_bytes > shared_->bytes()) {
    return error(Code::kResourceExhausted, "activations need {} bytes, {} are reserved", plan_->arena_bytes,
                 shared_->bytes());
  }
  owned_.resize(plan_->slots.size());
  kept_.resize(plan_->slots.size(), false);
  bound_.resize(plan_->slots.size(), nullptr);
  made_.resize(plan_->statics.size(), 0);
  for (const Step& step : plan_->steps) {
    for (int slot : step.inputs) {
      if (slot >= 0) kept_[static_cast<size_t>(plan_->slots[static_cast<size_t>(slot)].root)] = true;
    }
  }
  for (size_t i = 0; i < plan_->slots.size(); ++i) {
    const Slot& slot = plan_->slots[i];
    if (slot.root != static_cast<int>(i)) continue;
    if (slot.storage == Storage::kInput && shared_ != nullptr) {
      LIMBER_ASSIGN(owned_[i], shared_->input(plan_->graph.value(slot.value).name, slot.bytes));
      continue;
    }
    if (slot.storage != Storage::kInput && slot.storage != Storage::kOutput) continue;
    LIMBER_ASSIGN(owned_[i], Buffer::allocate(slot.bytes));
    std::fill_n(owned_[i]->data(), slot.bytes, std::byte{0});
  }
  return {};
}

std::byte* Session::address(int index) const {
  if (index < 0) return nullptr;
  const Slot& root = plan_->slots[static_cast<size_t>(plan_->slots[static_cast<size_t>(index)].root)];
  if (root.storage == Storage::kArena) return (shared_ ? shared_->arena() : arena_->data()) + root.offset;
  return owned_[static_cast<size_t>(root.root)]->data();
}

Tensor Session::input(size_t index) const {
  const Slot& slot = plan_->slots[static_cast<size_t>(plan_->input_slots[index])];
  return Tensor(slot.type, owned_[static_cast<size_t>(slot.root)]);
}

Tensor Session::output(size_t index) const {
  if (const ValueId updated = plan_->graph.outputs()[index].into; updated != kNoValue) {
    auto parameter = weights_->get(plan_->graph.value(updated).name);
    LIMBER_ASSERT(parameter.ok());
    return *std::move(parameter);
  }
  const Slot& slot = plan_->slots[static_cast<size_t>(plan_->output_slots[index])];
  TensorType type = slot.type;
  if (const int rows = plan_->row_slots[index]; rows >= 0) {
    const int64_t valid = *reinterpret_cast<const int64_t*>(address(rows));
    LIMBER_ASSERT(valid >= 0 && valid <= type.shape.dim(0));
    type.shape[0] = Dim(valid);
  }
  return Tensor(std::move(type), owned_[static_cast<size_t>(slot.root)]);
}

Status Session::run() {
  LIMBER_TRY(resume());
  const ThreadScope threads(plan_->threads);
  for (const auto& kernel : kernels_) kernel->run();
  if (!plan_->updates.empty()) note_updates();
  return {};
}

void Session::run_steps(std::vector<double>& seconds) {
  const ThreadScope threads(plan_->threads);
  double before = now_seconds();
  for (size_t k = 0; k < kernels_.size(); ++k) {
    kernels_[k]->run();
    const double after = now_seconds();
    seconds[k] = after - before;
    before = after;
  }
}

Status Session::run_timed(std::vector<double>& seconds) {
  LIMBER_TRY(resume());
  seconds.resize(kernels_.size());
  run_steps(seconds);
  if (!plan_->updates.empty()) note_updates();
  return {};
}

// Own updates need no refresh: nothing static depends on what the plan updates.
void Session::note_updates() {
  const uint64_t state = plan_->params->mark_changed(plan_->updates);
  if (state == state_ + 1) state_ = state;
}

Status Session::use(const WeightSnapshot& snapshot) {
  LIMBER_ASSERT(plan_->params == nullptr);
  if (snapshot.shared_weights() == weights_) return {};
  LIMBER_TRY(check_parameters(plan_->graph, snapshot.weights()));
  weights_ = snapshot.shared_weights();
  snapshot_version_ = snapshot.version();
  return refresh();
}

Status Session::refresh() {
  state_ = weights_->state();
  Status status = refresh_statics();
  if (status.ok()) return status;
  state_ = 0;  // all over again before the next run
  made_.assign(made_.size(), 0);
  return status;
}

// By static: which versions of its leaves it is to be made from.
std::vector<uint64_t> Session::current_stamps() const {
  const std::vector<uint64_t> versions = weights_->versions(plan_->leaves);
  std::vector<uint64_t> stamps;
  for (const StaticStep& fixed : plan_->statics) {
    std::vector<uint64_t> own;
    for (int leaf : fixed.leaves) own.push_back(versions[static_cast<size_t>(leaf)]);
    stamps.push_back(DerivedWeights::stamp(own));
  }
  return stamps;
}

Status Session::refresh_statics() {
  const std::vector<uint64_t> stamps = current_stamps();
  const ThreadScope threads(plan_->threads);
  std::vector<bool> wanted = kept_;
  const std::vector<bool> stale = stale_statics(stamps, wanted);
  LIMBER_TRY(fetch_leaves(wanted));
  std::vector<size_t> last(plan_->slots.size(), 0);  // by slot: the last static step that reads it
  for (size_t i = 0; i < stale.size(); ++i) {
    for (int slot : plan_->statics[i].step.inputs) {
      if (stale[i] && slot >= 0) last[root_of(slot)] = i;
    }
  }
  for (size_t i = 0; i < stale.size(); ++i) {
    if (stale[i]) LIMBER_TRY(make_static(plan_->statics[i], stamps[i]));
    made_[i] = stamps[i];
    if (!stale[i]) continue;
    for (int slot : plan_->statics[i].step.inputs) {
      if (slot >= 0 && last[root_of(slot)] == i) release(root_of(slot));
    }
  }
  for (size_t i = 0; i < owned_.size(); ++i) release(i);
  return bind();
}

void Session::suspend() {
  for (size_t i = 0; i < owned_.size(); ++i) {
    const Storage storage = plan_->slots[i].storage;
    if (storage == Storage::kStatic || storage == Storage::kParameter) owned_[i] = nullptr;
  }
  state_ = 0;
}

size_t Session::root_of(int slot) const {
  return static_cast<size_t>(plan_->slots[static_cast<size_t>(slot)].root);
}

// Lets go of a static value that no step reads. What was packed from a mapped file is not needed in memory a
// second time.
void Session::release(size_t slot) {
  if (plan_->slots[slot].storage != Storage::kStatic || kept_[slot] || owned_[slot] == nullptr) return;
  owned_[slot] = nullptr;
  if (const int leaf = plan_->slots[slot].leaf; leaf >= 0)
    weights_->page_out(plan_->leaves[static_cast<size_t>(leaf)]);
}

// Constants and parameters: those that are updated, and of the others the `wanted` ones.
Status Session::fetch_leaves(const std::vector<bool>& wanted) {
  bool packed = false;
  for (size_t i = 0; i < plan_->slots.size(); ++i) {
    const Slot& slot = plan_->slots[i];
    const bool written = slot.storage == Storage::kParameter;
    const bool read = slot.storage == Storage::kStatic && slot.layout == kPlain && wanted[i];
    if (slot.root != static_cast<int>(i) || !(written || read)) continue;
    if (slot.layout != kPlain) {
      const auto leaf = static_cast<size_t>(slot.leaf);
      owned_[i] = weights_->find_packed(plan_->leaves[leaf], plan_->packed[leaf]);
      if (owned_[i] != nullptr) continue;
      LIMBER_ASSIGN(owned_[i], pack_parameter(slot));
      packed = true;
      continue;
    }
    const Value& value = plan_->graph.value(slot.value);
    if (value.producer != kNoNode) continue;
    Tensor tensor = value.constant;
    if (slot.leaf >= 0) {
      LIMBER_ASSIGN(tensor, written ? plan_->params->writable(value.name) : weights_->get(value.name));
    }
    owned_[i] = Buffer::borrow(tensor.raw(), tensor.bytes(), tensor.buffer());
  }
  if (packed) trim_heap();  // plain tensors went
  return {};
}

// Makes the parameter one that is held as this plan updates it. What was packed while it was not trained
// becomes the parameter itself.
Result<std::shared_ptr<Buffer>> Session::pack_parameter(const Slot& slot) {
  Parameters& params = *plan_->params;
  Backend& backend = *plan_->backends.front();
  const auto leaf = static_cast<size_t>(slot.leaf);
  const std::string &name = plan_->leaves[leaf], &key = plan_->packed[leaf];
  auto buffer = params.derived().find(key, DerivedWeights::stamp(params.versions(std::span(&name, 1))));
  if (buffer == nullptr) {
    LIMBER_ASSIGN(const Tensor plain, params.get(name));
    LIMBER_ASSIGN(buffer, Buffer::allocate(slot.bytes));
    LIMBER_ASSIGN(const auto pack, backend.reorder(slot.type, kPlain, slot.layout));
    LIMBER_TRY(run_once(*pack, plain.raw(), buffer->data()));
  }
  // The kernel keeps the layout alive, which the parameter may need for longer than any plan lives.
  LIMBER_ASSIGN(std::shared_ptr<const Kernel> kernel, backend.reorder(slot.type, slot.layout, kPlain));
  const auto unpack = [kernel, owner = plan_->backends.front(), threads = plan_->threads](
                          const Buffer& packed, Tensor& plain) -> Status {
    const ThreadScope scope(threads);
    return run_once(*kernel, packed.data(), plain.raw());
  };
  LIMBER_ASSIGN(const uint64_t state, params.hold_packed(name, {key, buffer, unpack}));
  if (state == state_ + 1) state_ = state;
  return buffer;
}

// What another plan made in the same way, or holds as the parameter.
std::shared_ptr<Buffer> Session::find_shared(const StaticStep& fixed, uint64_t stamp) const {
  const Step& step = fixed.step;
  if (step.outputs.size() != 1) return nullptr;
  if (step.node == kNoNode && step.inputs[0] >= 0) {
    const int leaf = plan_->slots[static_cast<size_t>(step.inputs[0])].leaf;
    if (leaf >= 0) {
      if (auto held = weights_->find_packed(plan_->leaves[static_cast<size_t>(leaf)], fixed.key)) return held;
    }
  }
  return weights_->derived().find(fixed.key, stamp);
}

// Which static steps must run: those whose result is read, not up to date and not to be had from another
// plan, and those that these need and whose results were not kept. Adds to `wanted` what they read.
std::vector<bool> Session::stale_statics(const std::vector<uint64_t>& stamps, std::vector<bool>& wanted) {
  std::vector<bool> stale(plan_->statics.size(), false);
  for (size_t i = plan_->statics.size(); i-- > 0;) {
    const StaticStep& fixed = plan_->statics[i];
    const auto out = static_cast<size_t>(fixed.step.outputs[0]);
    const bool current = made_[i] == stamps[i] && owned_[out] != nullptr;
    if (current || !wanted[out]) continue;
    if (auto shared = find_shared(fixed, stamps[i])) {
      owned_[out] = std::move(shared);
      continue;
    }
    stale[i] = true;
    for (int slot : fixed.step.inputs) {
      if (slot >= 0) wanted[root_of(slot)] = true;
    }
  }
  return stale;
}

Status Session::make_static(const StaticStep& fixed, uint64_t stamp) {
  const Step& step = fixed.step;
  KernelIo io;
  for (int slot : step.inputs) io.inputs.push_back(address(slot));
  for (int slot : step.outputs) {
    if (slot >= 0) {
      LIMBER_ASSIGN(auto buffer, Buffer::allocate(plan_->slots[static_cast<size_t>(slot)].bytes));
      owned_[static_cast<size_t>(slot)] = std::move(buffer);
    }
    io.outputs.push_back(address(slot));
  }
  LIMBER_ASSIGN(const auto scratch, Buffer::allocate(step.kernel->scratch_bytes()));
  io.scratch = scratch->data();
  LIMBER_ASSIGN(const auto bound, step.kernel->bind(std::move(io)));
  bound->run();
  if (step.outputs.size() == 1)
    weights_->derived().keep(fixed.key, stamp, owned_[static_cast<size_t>(step.outputs[0])]);
  return {};
}

// Kernels whose memory moved; all of them the first time.
Status Session::bind() {
  const ThreadScope threads(plan_->threads);
  std::vector<bool> is_new(owned_.size(), false);
  for (size_t i = 0; i < owned_.size(); ++i) {
    if (owned_[i] == nullptr) continue;
    is_new[i] = owned_[i]->data() != bound_[i];
    bound_[i] = owned_[i]->data();
  }
  const auto moved = [&](int slot) { return slot >= 0 && is_new[root_of(slot)]; };
  kernels_.resize(plan_->steps.size());
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const Step& step = plan_->steps[k];
    const bool fresh = kernels_[k] == nullptr || std::any_of(step.inputs.begin(), step.inputs.end(), moved) ||
                       std::any_of(step.outputs.begin(), step.outputs.end(), moved);
    if (!fresh) continue;
    KernelIo io;
    for (int slot : step.inputs) io.inputs.push_back(address(slot));
    for (int slot : step.outputs) io.outputs.push_back(address(slot));
    io.scratch = address(step.scratch);
    LIMBER_ASSIGN(kernels_[k], step.kernel->bind(std::move(io)));
  }
  return {};
}

Result<Profile> Session::profile(int runs) {
  LIMBER_TRY(run());
  Profile profile;
  const auto count = static_cast<size_t>(runs);
  LIMBER_ASSIGN(auto totals, time_each([this] { return run(); }, 0, count, count));
  profile.total_s = median(std::move(totals));

  std::vector<std::vector<double>> times(kernels_.size());
  std::vector<double> seconds;
  for (int r = 0; r < runs; ++r) {
    LIMBER_TRY(run_timed(seconds));
    for (size_t k = 0; k < kernels_.size(); ++k) times[k].push_back(seconds[k]);
  }
  for (size_t k = 0; k < kernels_.size(); ++k) {
    profile.steps.push_back(
        {&plan_->steps[k], median(times[k]), *std::min_element(times[k].begin(), times[k].end())});
  }
  return profile;
}

}  // namespace limber
