#include "ir/derived_weights.h"

#include <algorithm>

#include "base/hash.h"

namespace limber {

uint64_t DerivedWeights::stamp(std::span<const uint64_t> versions) {
  Hasher hasher;
  for (uint64_t version : versions) hasher.add(version);
  return std::max<uint64_t>(1, hasher.digest());
}

std::shared_ptr<Buffer> DerivedWeights::find(std::string_view key, uint64_t stamp) const {
  const std::lock_guard lock(mutex_);
  const auto it = buffers_.find({std::string(key), stamp});
  return it == buffers_.end() ? nullptr : it->second.lock();
}

void DerivedWeights::keep(std::string_view key, uint64_t stamp, const std::shared_ptr<Buffer>& buffer) {
  constexpr size_t kFewest = 64;  // entries that are not worth a sweep
  const std::lock_guard lock(mutex_);
  buffers_.insert_or_assign({std::string(key), stamp}, buffer);
  if (buffers_.size() < sweep_at_) return;
  std::erase_if(buffers_, [](const auto& entry) { return entry.second.expired(); });
  // Twice as many as live: the table stays within that, and a sweep costs each entry a constant time.
  sweep_at_ = std::max(kFewest, 2 * buffers_.size());
}

size_t DerivedWeights::alive() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(buffers_.begin(), buffers_.end(),
                                           [](const auto& entry) { return !entry.second.expired(); }));
}

size_t DerivedWeights::size() const {
  const std::lock_guard lock(mutex_);
  return buffers_.size();
}

}  // namespace limber
