#include "ir/parameters.h"

#include "base/memory.h"

namespace limber {

namespace {

// Of values and snapshots, in the whole process: what plans derive is told apart by it, whichever set it is
// made from.
uint64_t next_version() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Parameters::Parameters(const WeightSnapshot& snapshot) : derived_by_snapshots_(snapshot.weights().derived_) {
  const std::lock_guard lock(snapshot.weights().mutex_);  // get() may be noting an aligned copy
  entries_ = snapshot.weights().entries_;
}

void Parameters::set(std::string_view name, Tensor tensor) {
  const std::lock_guard lock(mutex_);
  TensorType type = tensor.type();
  entries_.insert_or_assign(std::string(name), Entry{std::move(type), std::move(tensor), {}, next_version()});
  next_state();
}

void Parameters::erase(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(name);
  if (it == entries_.end()) return;
  entries_.erase(it);
  next_state();
}

Result<const Parameters::Entry*> Parameters::find(std::string_view name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) return error(Code::kNotFound, "no parameter named '{}'", name);
  return &it->second;
}

Result<Tensor> Parameters::plain(const Entry& entry) {
  if (entry.packed.buffer == nullptr && entry.tensor.is_aligned()) return entry.tensor;
  if (auto alive = entry.copy.lock()) return Tensor(entry.type, std::move(alive));
  LIMBER_ASSIGN(Tensor tensor, fresh_copy(entry));
  entry.copy = tensor.buffer();
  return tensor;
}

Result<Tensor> Parameters::fresh_copy(const Entry& entry) {
  if (entry.packed.buffer == nullptr) {
    auto copy = entry.tensor.copy();
    page_out(entry);
    return copy;
  }
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(entry.type));
  LIMBER_TRY(entry.packed.unpack(*entry.packed.buffer, tensor));
  return tensor;
}

// The entry as a snapshot holds it.
Result<Parameters::Entry> Parameters::frozen(Entry& entry) {
  Tensor tensor = entry.tensor;
  if (entry.packed.buffer == nullptr && entry.access != Access::kWritten) {
    entry.access = Access::kShared;
  } else if (auto alive = entry.copy.lock()) {
    tensor = Tensor(entry.type, std::move(alive));
  } else {
    LIMBER_ASSIGN(tensor, fresh_copy(entry));
    entry.copy = tensor.buffer();
  }
  return Entry{entry.type, std::move(tensor), {}, entry.version, Access::kShared, entry.copy};
}

Result<Tensor> Parameters::get(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  LIMBER_ASSIGN(const Entry* entry, find(name));
  return plain(*entry);
}

Result<TensorType> Parameters::type(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  LIMBER_ASSIGN(const Entry* entry, find(name));
  return entry->type;
}

Result<Tensor> Parameters::writable(std::string_view name) {
  const std::lock_guard lock(mutex_);
  LIMBER_TRY(find(name).status());
  Entry& entry = entries_.find(name)->second;
  const bool own = entry.packed.buffer == nullptr && entry.access != Access::kShared &&
                   entry.tensor.buffer()->owned() && entry.tensor.is_aligned();
  if (!own) {
    LIMBER_ASSIGN(entry.tensor, fresh_copy(entry));
    entry.packed = {};
    next_state();
  }
  entry.access = Access::kWritten;
  return entry.tensor;
}

uint64_t Parameters::mark_changed(std::span<const std::string> names) {
  const std::lock_guard lock(mutex_);
  const uint64_t version = next_version();
  for (const std::string& name : names) {
    const auto it = entries_.find(name);
    if (it == entries_.end()) continue;
    it->second.version = version;
    it->second.copy.reset();
  }
  return next_state();
}

Result<WeightSnapshot> Parameters::snapshot() { return snapshot(names()); }

Result<WeightSnapshot> Parameters::snapshot(std::span<const std::string> names) {
  auto made = std::make_shared<Parameters>();
  const std::lock_guard lock(mutex_);
  for (const std::string& name : names) {
    LIMBER_TRY(find(name).status());
    LIMBER_ASSIGN(Entry entry, frozen(entries_.find(name)->second));
    made->entries_.insert_or_assign(name, std::move(entry));
  }
  made->derived_ = derived_by_snapshots_;
  return WeightSnapshot(std::move(made), next_version());
}

void PublishedWeights::publish(WeightSnapshot next) {
  const uint64_t version = next.version();
  {
    const std::lock_guard lock(mutex_);
    std::swap(current_, next);
    version_.store(version, std::memory_order_release);
  }
  // `next`, the old one, goes here: what it frees is not worth a reader's wait.
}

WeightSnapshot PublishedWeights::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void Parameters::page_out(const Entry& entry) {
  if (!entry.tensor.valid() || entry.tensor.buffer()->owned()) return;
  limber::page_out(entry.tensor.raw(), entry.tensor.bytes());
}

void Parameters::page_out(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (const auto it = entries_.find(name); it != entries_.end()) page_out(it->second);
}

std::shared_ptr<Buffer> Parameters::find_packed(std::string_view name, std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(name);
  return it != entries_.end() && it->second.packed.key == key ? it->second.packed.buffer : nullptr;
}

Result<uint64_t> Parameters::hold_packed(std::string_view name, PackedTensor packed) {
  const std::lock_guard lock(mutex_);
  LIMBER_TRY(find(name).status());
  Entry& entry = entries_.find(name)->second;
  page_out(entry);
  entry.tensor = {};
  entry.packed = std::move(packed);
  entry.access = Access::kUnwritten;
  return next_state();
}

bool Parameters::contains(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return entries_.find(name) != entries_.end();
}

std::vector<std::string> Parameters::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, entry] : entries_) out.push_back(name);
  return out;
}

std::vector<uint64_t> Parameters::versions(std::span<const std::string> names) const {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> out;
  for (const std::string& name : names) {
    const auto it = entries_.find(name);
    out.push_back(it == entries_.end() ? 0 : it->second.version);
  }
  return out;
}

size_t Parameters::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t total = 0;
  for (const auto& [name, entry] : entries_) total += entry.type.bytes();
  return total;
}

}  // namespace limber
