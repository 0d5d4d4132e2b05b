// What a Library remembers: packed layouts and kernels. Both tables hold what somebody uses, and of the rest
// a bounded number. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/onednn.h"
#include "backend/cpu/onednn_descs.h"

namespace limber::onednn {

// How weights are packed, and how the plain tensor is to be read for that.
struct PackedLayout {
  memory::desc desc, plain;
  std::string name;
  uint32_t id;  // a Layout's
};

// Whoever holds a layout keeps its id known: the kernels that use it do.
class LayoutTable {
 public:
  // The same one for equal descriptions.
  std::shared_ptr<const PackedLayout> intern(const memory::desc& desc, const memory::desc& plain);
  // REQUIRES: somebody holds it
  std::shared_ptr<const PackedLayout> find(uint32_t id) const;
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, std::weak_ptr<const PackedLayout>> layouts_;
  uint32_t next_ = kFirstPacked;
};

// Kernels by a text that says all about them: those that some plan holds, and the kRecent made last, since a
// compile often wants what the one before it made.
class KernelCache {
 public:
  static constexpr size_t kRecent = 1024;  // some 10 to 30 KB each, code included
  std::optional<Compiled> find(const std::string& name) const;
  void keep(const std::string& name, const Compiled& compiled);
  size_t size() const;

 private:
  struct Entry {
    Compiled without_kernel;
    std::weak_ptr<const Kernel> kernel;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::vector<std::shared_ptr<const Kernel>> recent_;  // a ring
  size_t oldest_ = 0;
  size_t sweep_at_ = 2 * kRecent;  // entries at which those without a kernel are looked for next
};

}  // namespace limber::onednn
