#include "ir/parameters.h"

#include "base/memory.h"

namespace limber {

void Parameters::set(std::string_view name, Tensor tensor) {
  const std::lock_guard lock(mutex_);
  TensorType type = tensor.type();
  entries_.insert_or_assign(std::string(name),
                            Entry{std::move(type), std::move(tensor), {}, {}, next_version()});
}

void Parameters::erase(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(name);
  if (it == entries_.end()) return;
  entries_.erase(it);
  next_version();
}

Result<const Parameters::Entry*> Parameters::find(std::string_view name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) return error(Code::kNotFound, "no parameter named '{}'", name);
  return &it->second;
}

Result<Tensor> Parameters::plain(const Entry& entry) {
  if (entry.packed.buffer == nullptr && entry.tensor.is_aligned()) return entry.tensor;
  if (auto alive = entry.unpacked.lock()) return Tensor(entry.type, std::move(alive));
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(entry.type));
  if (entry.packed.buffer != nullptr) {
    LIMBER_TRY(entry.packed.unpack(*entry.packed.buffer, tensor));
  } else {
    LIMBER_ASSIGN(tensor, entry.tensor.copy());
    page_out(entry);
  }
  entry.unpacked = tensor.buffer();
  return tensor;
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
  if (entry.packed.buffer != nullptr) {
    LIMBER_ASSIGN(entry.tensor, plain(entry));
    entry.packed = {};
    next_version();
  }
  if (entry.tensor.buffer()->owned()) return entry.tensor;
  LIMBER_ASSIGN(Tensor copy, entry.tensor.copy());
  page_out(entry);
  entry.tensor = copy;
  entry.version = next_version();
  return copy;
}

uint64_t Parameters::mark_changed(std::span<const std::string> names) {
  const std::lock_guard lock(mutex_);
  const uint64_t version = next_version();
  for (const std::string& name : names) {
    const auto it = entries_.find(name);
    if (it == entries_.end()) continue;
    it->second.version = version;
    it->second.unpacked.reset();
  }
  return version;
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
  return next_version();
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

std::shared_ptr<Buffer> Parameters::find_derived(std::string_view key, uint64_t version) const {
  const std::lock_guard lock(mutex_);
  const auto it = derived_.find(key);
  if (it == derived_.end() || it->second.version != version) return nullptr;
  return it->second.buffer.lock();
}

void Parameters::keep_derived(std::string_view key, uint64_t version, const std::shared_ptr<Buffer>& buffer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(derived_, [](const auto& entry) { return entry.second.buffer.expired(); });
  derived_.insert_or_assign(std::string(key), Derived{version, buffer});
}

}  // namespace limber
