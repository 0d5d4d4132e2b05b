#include "backend/cpu/onednn_tables.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "backend/cpu/onednn_api.h"

namespace limber::onednn {
namespace {

// Blocks, strides and, for Winograd, the sizes: enough to tell two packings of one tensor apart.
std::string packed_name(const memory::desc& desc) {
  if (!is_blocked(desc)) return opaque_name(desc);
  std::string name = "packed";
  for (const int64_t stride : strides_of(desc)) name += fmt::format(".{}", stride);
  const auto blocks = inner_blocks_of(desc), axes = inner_axes_of(desc);
  for (size_t i = 0; i < blocks.size(); ++i)
    name += fmt::format("_{}{}", blocks[i], static_cast<char>('a' + axes[i]));
  return name;
}

// A matrix may be packed as it is or transposed, into layouts that look alike.
std::string reading_name(const memory::desc& plain) {
  const auto strides = strides_of(plain);
  if (std::is_sorted(strides.begin(), strides.end(), std::greater<>())) return "";
  return fmt::format("~{}", fmt::join(strides, "."));
}

}  // namespace

std::shared_ptr<const PackedLayout> LayoutTable::intern(const memory::desc& desc, const memory::desc& plain) {
  const std::lock_guard lock(mutex_);
  for (auto it = layouts_.begin(); it != layouts_.end();) {
    const auto layout = it->second.lock();
    if (layout == nullptr) {
      it = layouts_.erase(it);
      continue;
    }
    if (layout->desc == desc && layout->plain == plain) return layout;
    ++it;
  }
  const PackedLayout made{desc, plain, packed_name(desc) + reading_name(plain), next_++};
  auto layout = std::make_shared<const PackedLayout>(made);
  layouts_[layout->id] = layout;
  return layout;
}

std::shared_ptr<const PackedLayout> LayoutTable::find(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto it = layouts_.find(id);
  auto layout = it == layouts_.end() ? nullptr : it->second.lock();
  LIMBER_ASSERT(layout != nullptr);
  return layout;
}

size_t LayoutTable::size() const {
  const std::lock_guard lock(mutex_);
  return layouts_.size();
}

std::optional<Compiled> KernelCache::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(name);
  if (it == entries_.end()) return std::nullopt;
  Compiled compiled = it->second.without_kernel;
  compiled.kernel = it->second.kernel.lock();
  return compiled.kernel == nullptr ? std::nullopt : std::optional(std::move(compiled));
}

void KernelCache::keep(const std::string& name, const Compiled& compiled) {
  std::shared_ptr<const Kernel> replaced;  // goes after the lock
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[name];
  entry.without_kernel = compiled;
  entry.without_kernel.kernel = nullptr;
  entry.kernel = compiled.kernel;
  if (recent_.size() < kRecent) {
    recent_.push_back(compiled.kernel);
  } else {
    replaced = std::exchange(recent_[oldest_], compiled.kernel);
    oldest_ = (oldest_ + 1) % kRecent;
  }
  if (entries_.size() < sweep_at_) return;
  std::erase_if(entries_, [](const auto& each) { return each.second.kernel.expired(); });
  sweep_at_ = std::max(2 * kRecent, 2 * entries_.size());
}

size_t KernelCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace limber::onednn
