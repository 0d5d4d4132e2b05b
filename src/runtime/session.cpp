#include "runtime/session.h"

#include <sys/mman.h>

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

Result<std::shared_ptr<SharedMemory>> SharedMemory::reserve(size_t bytes) {
  void* arena =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED)
    return error(Code::kResourceExhausted, "cannot reserve {} bytes of address space", bytes);
  static_cast<void>(madvise(arena, bytes, MADV_HUGEPAGE));  // only an optimisation
  return std::shared_ptr<SharedMemory>(new SharedMemory(static_cast<std::byte*>(arena), bytes));
}

SharedMemory::~SharedMemory() { munmap(arena_, bytes_); }

void SharedMemory::trim(size_t bytes) {
  constexpr size_t kPage = size_t{2} << 20;
  const size_t keep = (bytes + kPage - 1) / kPage * kPage;
  if (keep < bytes_) static_cast<void>(madvise(arena_ + keep, bytes_ - keep, MADV_DONTNEED));
}

Result<std::shared_ptr<Buffer>> SharedMemory::input(const std::string& name, size_t bytes) {
  std::shared_ptr<Buffer>& buffer = inputs_[name];
  if (buffer == nullptr || buffer->size() < bytes) {
    LIMBER_ASSIGN(buffer, Buffer::allocate(bytes));
    std::fill_n(buffer->data(), bytes, std::byte{0});
  }
  return buffer;
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Plan> plan,
                                                 std::shared_ptr<SharedMemory> shared) {
  std::unique_ptr<Session> session(new Session(std::move(plan), std::move(shared)));
  LIMBER_TRY(session->allocate());
  LIMBER_TRY(session->refresh());
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
  moved_.resize(plan_->slots.size(), false);
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
  const uint64_t version = plan_->params->version();
  if (version != version_) LIMBER_TRY(refresh());
  const ThreadScope threads(plan_->threads);
  const RunScope running;
  for (const auto& kernel : kernels_) kernel->run();
  if (!plan_->updates.empty()) note_updates();
  return {};
}

void Session::run_steps(std::vector<double>& seconds) {
  const ThreadScope threads(plan_->threads);
  const RunScope running;
  double before = now_seconds();
  for (size_t k = 0; k < kernels_.size(); ++k) {
    kernels_[k]->run();
    const double after = now_seconds();
    seconds[k] = after - before;
    before = after;
  }
}

Status Session::run_timed(std::vector<double>& seconds) {
  if (plan_->params->version() != version_) LIMBER_TRY(refresh());
  seconds.resize(kernels_.size());
  run_steps(seconds);
  if (!plan_->updates.empty()) note_updates();
  return {};
}

// Own updates need no refresh: nothing static depends on what the plan updates.
void Session::note_updates() {
  const uint64_t version = plan_->params->mark_changed(plan_->updates);
  if (version == version_ + 1) version_ = version;
}

Status Session::refresh() {
  version_ = plan_->params->version();
  const std::vector<uint64_t> versions = plan_->params->versions(plan_->leaves);
  std::vector<uint64_t> newest;
  for (const StaticStep& fixed : plan_->statics) {
    uint64_t version = 1;
    for (int leaf : fixed.leaves) version = std::max(version, versions[static_cast<size_t>(leaf)]);
    newest.push_back(version);
  }
  const ThreadScope threads(plan_->threads);
  std::vector<bool> wanted = kept_;
  const std::vector<bool> stale = stale_statics(newest, wanted);
  LIMBER_TRY(fetch_leaves(wanted));
  std::vector<size_t> last(plan_->slots.size(), 0);  // by slot: the last static step that reads it
  for (size_t i = 0; i < stale.size(); ++i) {
    for (int slot : plan_->statics[i].step.inputs) {
      if (stale[i] && slot >= 0) last[root_of(slot)] = i;
    }
  }
  for (size_t i = 0; i < stale.size(); ++i) {
    made_[i] = newest[i];
    if (!stale[i]) continue;
    LIMBER_TRY(make_static(plan_->statics[i], newest[i]));
    for (int slot : plan_->statics[i].step.inputs) {
      if (slot >= 0 && last[root_of(slot)] == i) LIMBER_TRY(release(root_of(slot)));
    }
  }
  for (size_t i = 0; i < owned_.size(); ++i) LIMBER_TRY(release(i));
  return bind();
}

void Session::suspend() {
  for (size_t i = 0; i < owned_.size(); ++i) {
    if (plan_->slots[i].storage == Storage::kStatic) owned_[i] = nullptr;
  }
  version_ = 0;
}

size_t Session::root_of(int slot) const {
  return static_cast<size_t>(plan_->slots[static_cast<size_t>(slot)].root);
}

// Lets go of a static value that no step reads. What was packed from a mapped file is not needed in memory a
// second time.
Status Session::release(size_t slot) {
  if (plan_->slots[slot].storage != Storage::kStatic || kept_[slot] || owned_[slot] == nullptr) return {};
  owned_[slot] = nullptr;
  if (plan_->slots[slot].leaf < 0) return {};
  plan_->params->page_out(plan_->graph.value(plan_->slots[slot].value).name);
  return {};
}

void Session::put(int slot, std::shared_ptr<Buffer> buffer) {
  owned_[static_cast<size_t>(slot)] = std::move(buffer);
  moved_[static_cast<size_t>(slot)] = true;
}

// Constants once, parameters when they were replaced or changed; those that are not updated only where they
// are `wanted`.
Status Session::fetch_leaves(const std::vector<bool>& wanted) {
  for (size_t i = 0; i < plan_->slots.size(); ++i) {
    const Slot& slot = plan_->slots[i];
    const bool stored =
        slot.storage == Storage::kParameter || (slot.storage == Storage::kStatic && wanted[i]);
    if (!stored || slot.root != static_cast<int>(i) || slot.layout != kPlain) continue;
    const Value& value = plan_->graph.value(slot.value);
    if (value.producer != kNoNode) continue;
    Tensor tensor = value.constant;
    if (slot.leaf >= 0) {
      const bool written = slot.storage == Storage::kParameter;
      LIMBER_ASSIGN(tensor, written ? plan_->params->writable(value.name) : plan_->params->get(value.name));
    }
    if (owned_[i] && owned_[i]->data() == tensor.raw()) continue;
    put(static_cast<int>(i), Buffer::borrow(tensor.raw(), tensor.bytes(), tensor.buffer()));
  }
  return {};
}

// Which static steps must run: those whose result is read, not up to date and not to be had from another
// plan, and those that these need and whose results were not kept. Adds what they read to `wanted`.
std::vector<bool> Session::stale_statics(const std::vector<uint64_t>& newest, std::vector<bool>& wanted) {
  std::vector<bool> stale(plan_->statics.size(), false);
  for (size_t i = plan_->statics.size(); i-- > 0;) {
    const StaticStep& fixed = plan_->statics[i];
    const auto out = static_cast<size_t>(fixed.step.outputs[0]);
    const bool current = made_[i] == newest[i] && owned_[out] != nullptr;
    if (current || !wanted[out]) continue;
    if (fixed.step.outputs.size() == 1) {
      if (auto shared = plan_->params->find_derived(fixed.key, newest[i])) {
        put(fixed.step.outputs[0], std::move(shared));
        continue;
      }
    }
    stale[i] = true;
    for (int slot : fixed.step.inputs) {
      if (slot >= 0) wanted[static_cast<size_t>(plan_->slots[static_cast<size_t>(slot)].root)] = true;
    }
  }
  return stale;
}

Status Session::make_static(const StaticStep& fixed, uint64_t version) {
  const Step& step = fixed.step;
  KernelIo io;
  for (int slot : step.inputs) io.inputs.push_back(address(slot));
  for (int slot : step.outputs) {
    if (slot >= 0) {
      LIMBER_ASSIGN(auto buffer, Buffer::allocate(plan_->slots[static_cast<size_t>(slot)].bytes));
      put(slot, std::move(buffer));
    }
    io.outputs.push_back(address(slot));
  }
  LIMBER_ASSIGN(const auto scratch, Buffer::allocate(step.kernel->scratch_bytes()));
  io.scratch = scratch->data();
  LIMBER_ASSIGN(const auto bound, step.kernel->bind(std::move(io)));
  bound->run();
  if (step.outputs.size() == 1)
    plan_->params->keep_derived(fixed.key, version, owned_[static_cast<size_t>(step.outputs[0])]);
  return {};
}

// Kernels whose memory moved; all of them the first time.
Status Session::bind() {
  const ThreadScope threads(plan_->threads);
  const auto moved = [&](int slot) {
    return slot >= 0 && moved_[static_cast<size_t>(plan_->slots[static_cast<size_t>(slot)].root)];
  };
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
  moved_.assign(moved_.size(), false);
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

  std::vector<std::vector<double>> times(kernels_.size());
  std::vector<double> seconds(kernels_.size());
  for (int r = 0; r < runs; ++r) {
    run_steps(seconds);
    for (size_t k = 0; k < kernels_.size(); ++k) times[k].push_back(seconds[k]);
  }
  for (size_t k = 0; k < kernels_.size(); ++k) {
    profile.steps.push_back(
        {&plan_->steps[k], median(times[k]), *std::min_element(times[k].begin(), times[k].end())});
  }
  return profile;
}

}  // namespace limber
