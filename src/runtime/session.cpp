#include "runtime/session.h"

#include <algorithm>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/run_scope.h"

namespace limber {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Plan> plan) {
  std::unique_ptr<Session> session(new Session(std::move(plan)));
  LIMBER_TRY(session->allocate());
  LIMBER_TRY(session->refresh());
  return session;
}

Status Session::allocate() {
  LIMBER_ASSIGN(arena_, Buffer::allocate(plan_->arena_bytes));
  owned_.resize(plan_->slots.size());
  for (size_t i = 0; i < plan_->slots.size(); ++i) {
    const Slot& slot = plan_->slots[i];
    if (slot.root != static_cast<int>(i)) continue;
    if (slot.storage != Storage::kInput && slot.storage != Storage::kOutput) continue;
    LIMBER_ASSIGN(owned_[i], Buffer::allocate(slot.bytes));
    std::fill_n(owned_[i]->data(), slot.bytes, std::byte{0});
  }
  return {};
}

std::byte* Session::address(int index) const {
  if (index < 0) return nullptr;
  const Slot& root = plan_->slots[static_cast<size_t>(plan_->slots[static_cast<size_t>(index)].root)];
  if (root.storage == Storage::kArena) return arena_->data() + root.offset;
  return owned_[static_cast<size_t>(root.root)]->data();
}

Tensor Session::input(size_t index) const {
  const Slot& slot = plan_->slots[static_cast<size_t>(plan_->input_slots[index])];
  return Tensor(slot.type, owned_[static_cast<size_t>(slot.root)]);
}

Tensor Session::output(size_t index) const {
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
  if (plan_->params->version() != version_) LIMBER_TRY(refresh());
  const ThreadScope threads(plan_->threads);
  const RunScope running;
  for (const auto& kernel : kernels_) kernel->run();
  return {};
}

Status Session::refresh() {
  version_ = plan_->params->version();
  LIMBER_TRY(make_statics());
  return bind();
}

Status Session::make_statics() {
  const ThreadScope threads(plan_->threads);
  const auto is_root = [&](size_t i) { return plan_->slots[i].root == static_cast<int>(i); };
  for (size_t i = 0; i < plan_->slots.size(); ++i) {
    const Slot& slot = plan_->slots[i];
    if (slot.storage != Storage::kStatic || !is_root(i)) continue;
    owned_[i] = nullptr;
    if (slot.layout != kPlain) continue;
    const Value& value = plan_->graph.value(slot.value);
    if (value.producer != kNoNode) continue;
    Tensor tensor = value.constant;
    if (value.role != Role::kConstant) {
      LIMBER_ASSIGN(tensor, plan_->params->get(value.name));
    }
    owned_[i] = Buffer::borrow(tensor.raw(), tensor.bytes(), tensor.buffer());
  }
  for (const StaticStep& fixed : plan_->statics) LIMBER_TRY(make_static(fixed));
  return drop_unused_statics();
}

Status Session::make_static(const StaticStep& fixed) {
  const Step& step = fixed.step;
  const bool shared = step.outputs.size() == 1;
  const auto out = static_cast<size_t>(step.outputs[0]);
  if (shared) {
    if ((owned_[out] = plan_->params->find_derived(fixed.key))) return {};
  }
  KernelIo io;
  for (int slot : step.inputs) io.inputs.push_back(address(slot));
  for (int slot : step.outputs) {
    if (slot >= 0) {
      LIMBER_ASSIGN(owned_[static_cast<size_t>(slot)],
                    Buffer::allocate(plan_->slots[static_cast<size_t>(slot)].bytes));
    }
    io.outputs.push_back(address(slot));
  }
  LIMBER_ASSIGN(const auto scratch, Buffer::allocate(step.kernel->scratch_bytes()));
  io.scratch = scratch->data();
  LIMBER_ASSIGN(const auto bound, step.kernel->bind(std::move(io)));
  bound->run();
  if (shared) plan_->params->keep_derived(fixed.key, version_, owned_[out]);
  return {};
}

Status Session::drop_unused_statics() {
  std::vector<bool> used(plan_->slots.size(), false);
  const auto use = [&](int slot) {
    if (slot >= 0) used[static_cast<size_t>(plan_->slots[static_cast<size_t>(slot)].root)] = true;
  };
  for (const Step& step : plan_->steps) {
    for (int slot : step.inputs) use(slot);
  }
  for (size_t i = 0; i < plan_->slots.size(); ++i) {
    if (plan_->slots[i].storage == Storage::kStatic && !used[i]) owned_[i] = nullptr;
  }
  return {};
}

Status Session::bind() {
  kernels_.clear();
  const ThreadScope threads(plan_->threads);
  for (const Step& step : plan_->steps) {
    KernelIo io;
    for (int slot : step.inputs) io.inputs.push_back(address(slot));
    for (int slot : step.outputs) io.outputs.push_back(address(slot));
    io.scratch = address(step.scratch);
    LIMBER_ASSIGN(auto bound, step.kernel->bind(std::move(io)));
    kernels_.push_back(std::move(bound));
  }
  return {};
}

Result<Profile> Session::profile(int runs) {
  LIMBER_TRY(run());
  Profile profile;
  std::vector<double> totals;
  for (int r = 0; r < runs; ++r) {
    const double start = now_seconds();
    LIMBER_TRY(run());
    totals.push_back(now_seconds() - start);
  }
  profile.total_s = median(totals);

  const ThreadScope threads(plan_->threads);
  std::vector<std::vector<double>> times(kernels_.size());
  for (int r = 0; r < runs; ++r) {
    double before = now_seconds();
    for (size_t k = 0; k < kernels_.size(); ++k) {
      kernels_[k]->run();
      const double after = now_seconds();
      times[k].push_back(after - before);
      before = after;
    }
  }
  for (size_t k = 0; k < kernels_.size(); ++k) {
    profile.steps.push_back(
        {&plan_->steps[k], median(times[k]), *std::min_element(times[k].begin(), times[k].end())});
  }
  return profile;
}

}  // namespace limber
