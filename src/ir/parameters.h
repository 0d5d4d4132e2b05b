// Name -> tensor, held once and shared by every plan that uses it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace limber {

// A tensor in an order of somebody's own, such as the packed weights of a convolution.
struct PackedTensor {
  std::string key;  // says what it is and how it lies: equal keys, equal meaning of the bytes
  std::shared_ptr<Buffer> buffer;
  // Writes the row-major elements of `buffer` to `plain`.
  std::function<Status(const Buffer& buffer, Tensor& plain)> unpack;
};

// Thread-safe. Tensors handed out stay valid after set() replaces them (they share ownership).
// Every change gives what changed a new version, so that plans refresh what they derived from it and
// nothing else. The bytes themselves are not guarded: a plan that updates parameters must not run while
// another one reads them.
//
// A plan that updates a parameter may hold it packed: hold_packed() makes its buffer the parameter, and the
// plain tensor goes. get() unpacks, for as long as somebody keeps the result; it does not follow later
// changes. writable() and set() make the parameter plain again.
//
// A tensor whose elements are not aligned, as they lie in a file, may be given to set(). get() makes an
// aligned copy of it, which is kept for as long as somebody uses it.
class Parameters {
 public:
  void set(std::string_view name, Tensor tensor);  // adds or replaces
  void erase(std::string_view name);               // if it is there
  Result<Tensor> get(std::string_view name) const;
  Result<TensorType> type(std::string_view name) const;
  // The same tensor as memory that may be written: a copy takes its place first when its bytes belong to
  // a file. Whoever writes says so with mark_changed().
  Result<Tensor> writable(std::string_view name);
  // Returns the version that this change gave them.
  uint64_t mark_changed(std::span<const std::string> names);
  bool contains(std::string_view name) const;
  std::vector<std::string> names() const;
  // Of the last change of a value, or of where one is held.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  std::vector<uint64_t> versions(std::span<const std::string> names) const;  // of values; 0 for unknown names
  size_t bytes() const;  // of the tensors, whatever form they are held in

  // The parameter's own bytes when it is held packed under this key, otherwise nullptr.
  std::shared_ptr<Buffer> find_packed(std::string_view name, std::string_view key) const;
  // Whoever read the parameter is done: pages of a file leave memory, if it is one.
  void page_out(std::string_view name) const;
  // Holds the parameter as `packed`, which has its current value. Returns version().
  Result<uint64_t> hold_packed(std::string_view name, PackedTensor packed);

  // What plans derive from parameters (packed weights, folded scales), shared between plans under a
  // key that says how it was made and the newest version of the parameters it was made from. Kept only
  // while some plan holds it.
  std::shared_ptr<Buffer> find_derived(std::string_view key, uint64_t version) const;
  void keep_derived(std::string_view key, uint64_t version, const std::shared_ptr<Buffer>& buffer);

 private:
  struct Entry {
    TensorType type;
    Tensor tensor;        // unless packed
    PackedTensor packed;  // its buffer is nullptr unless packed
    mutable std::weak_ptr<Buffer> unpacked;
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
