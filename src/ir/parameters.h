// Name -> tensor, held once and shared by every plan that uses it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace limber {

// Thread-safe. Tensors handed out stay valid after set() replaces them (they share ownership).
class Parameters {
 public:
  // Adds or replaces; replacing counts the version up, so that plans refresh what they derived.
  void set(std::string_view name, Tensor tensor);
  Result<Tensor> get(std::string_view name) const;
  bool contains(std::string_view name) const;
  std::vector<std::string> names() const;
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  size_t bytes() const;

  // What plans derive from parameters (packed weights, folded scales), shared between plans under a
  // key that says how it was made. Kept only while some plan holds it. Stale entries (made from an
  // older version) are not returned.
  std::shared_ptr<Buffer> find_derived(std::string_view key) const;
  void keep_derived(std::string_view key, uint64_t version, const std::shared_ptr<Buffer>& buffer);

 private:
  struct Derived {
    uint64_t version;
    std::weak_ptr<Buffer> buffer;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Tensor, std::less<>> tensors_;
  std::map<std::string, Derived, std::less<>> derived_;
  std::atomic<uint64_t> version_{1};
};

}  // namespace limber
