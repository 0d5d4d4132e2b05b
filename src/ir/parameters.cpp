#include "ir/parameters.h"

namespace limber {

void Parameters::set(std::string_view name, Tensor tensor) {
  const std::lock_guard lock(mutex_);
  tensors_.insert_or_assign(std::string(name), std::move(tensor));
  version_.fetch_add(1, std::memory_order_release);
}

Result<Tensor> Parameters::get(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return error(Code::kNotFound, "no parameter named '{}'", name);
  return it->second;
}

bool Parameters::contains(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return tensors_.find(name) != tensors_.end();
}

std::vector<std::string> Parameters::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, tensor] : tensors_) out.push_back(name);
  return out;
}

size_t Parameters::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += tensor.bytes();
  return total;
}

std::shared_ptr<Buffer> Parameters::find_derived(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto it = derived_.find(key);
  if (it == derived_.end() || it->second.version != version_.load(std::memory_order_relaxed)) return nullptr;
  return it->second.buffer.lock();
}

void Parameters::keep_derived(std::string_view key, uint64_t version, const std::shared_ptr<Buffer>& buffer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(derived_, [](const auto& entry) { return entry.second.buffer.expired(); });
  derived_.insert_or_assign(std::string(key), Derived{version, buffer});
}

}  // namespace limber
