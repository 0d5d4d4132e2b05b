// Name -> tensor, held once and shared by every plan that uses it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace limber {

// Thread-safe. Tensors handed out stay valid after set() replaces them (they share ownership).
// Every change gives what changed a new version, so that plans refresh what they derived from it and
// nothing else. The bytes themselves are not guarded: a plan that updates parameters must not run while
// another one reads them.
//
// A tensor whose elements are not aligned, as they lie in a file, may be given to set(). get() makes an
// aligned copy of it, which is kept for as long as somebody uses it.
class Parameters {
 public:
  void set(std::string_view name, Tensor tensor);  // adds or replaces
  Result<Tensor> get(std::string_view name) const;
  Result<TensorType> type(std::string_view name) const;
  // The same tensor as memory that may be written: a copy takes its place first when its bytes belong to
  // a file. Whoever writes says so with mark_changed().
  Result<Tensor> writable(std::string_view name);
  // Returns the version that this change gave them.
  uint64_t mark_changed(std::span<const std::string> names);
  bool contains(std::string_view name) const;
  std::vector<std::string> names() const;
  uint64_t version() const { return version_.load(std::memory_order_acquire); }  // of the last change
  std::vector<uint64_t> versions(std::span<const std::string> names) const;      // 0 for unknown names
  size_t bytes() const;
  // Whoever read the parameter is done: pages of a file leave memory, if it is one.
  void page_out(std::string_view name) const;

  // What plans derive from parameters (packed weights, folded scales), shared between plans under a
  // key that says how it was made and the newest version of the parameters it was made from. Kept only
  // while some plan holds it.
  std::shared_ptr<Buffer> find_derived(std::string_view key, uint64_t version) const;
  void keep_derived(std::string_view key, uint64_t version, const std::shared_ptr<Buffer>& buffer);

 private:
  struct Entry {
    Tensor tensor;
    mutable std::weak_ptr<Buffer> unpacked;  // an aligned copy that somebody uses
    uint64_t version;
  };
  struct Derived {
    uint64_t version;
    std::weak_ptr<Buffer> buffer;
  };
  uint64_t next_version() { return version_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  Result<const Entry*> find(std::string_view name) const;
  static Result<Tensor> plain(const Entry& entry);
  static void page_out(const Entry& entry);

  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, Derived, std::less<>> derived_;
  std::atomic<uint64_t> version_{1};
};

}  // namespace limber
