// Name -> tensor: the working set of whoever changes weights, and the immutable snapshots of it that
// everybody else reads.
//
//   training thread                                 any thread
//   Parameters ──snapshot()──> WeightSnapshot ──PublishedWeights──> Session::use()
//
// Nothing that runs over a snapshot ever sees its weights change. A reader keeps the snapshot it has until it
// lets go of it; what no reader holds any more is freed.
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

#include "ir/derived_weights.h"
#include "tensor/tensor.h"

namespace limber {

// A tensor in an order of somebody's own, such as the packed weights of a convolution.
struct PackedTensor {
  std::string key;  // says what it is and how it lies: equal keys, equal meaning of the bytes
  std::shared_ptr<Buffer> buffer;
  // Writes the row-major elements of `buffer` to `plain`.
  std::function<Status(const Buffer& buffer, Tensor& plain)> unpack;
};

class WeightSnapshot;

// A private working set. Its calls may come from any thread, but the bytes are not guarded: plans over one
// set that update it and plans that read it take turns. Whoever runs beside a training reads a snapshot.
//
// Tensors handed out stay valid after set() replaces them (they share ownership). Whoever gives a tensor to
// set() writes its bytes no more. Every change gives what changed a new version, so that plans refresh what
// they derived from it and nothing else. No two values in the process have the same version.
//
// Copy on write: bytes that a snapshot or a file also holds are copied when somebody asks for writable()
// ones, never before.
//
// A plan that updates a parameter may hold it packed: hold_packed() makes its buffer the parameter, and the
// plain tensor goes. get() unpacks, for as long as somebody keeps the result; it does not follow later
// changes. writable() and set() make the parameter plain again.
//
// A tensor whose elements are not aligned, as they lie in a file, may be given to set(). get() makes an
// aligned copy of it, which is kept for as long as somebody uses it.
class Parameters {
 public:
  Parameters() = default;
  // Starts with what the snapshot holds; copies no bytes.
  explicit Parameters(const WeightSnapshot& snapshot);

  void set(std::string_view name, Tensor tensor);  // adds or replaces
  void erase(std::string_view name);               // if it is there
  Result<Tensor> get(std::string_view name) const;
  Result<TensorType> type(std::string_view name) const;
  // The same tensor as memory that may be written, until the next set() or hold_packed(). Whoever writes says
  // so with mark_changed().
  Result<Tensor> writable(std::string_view name);
  // Returns the state() that this change led to.
  uint64_t mark_changed(std::span<const std::string> names);
  bool contains(std::string_view name) const;
  std::vector<std::string> names() const;
  // Goes up by one with every change of a value, or of where one is held. Never 0.
  uint64_t state() const { return state_.load(std::memory_order_acquire); }
  std::vector<uint64_t> versions(std::span<const std::string> names) const;  // of values; 0 for unknown names
  size_t bytes() const;  // of the tensors, whatever form they are held in

  // All values, or those of `names`, as they are now: call it between two runs of plans that update them.
  // What did not change since an earlier snapshot that somebody still holds is shared with it; what nobody
  // may write is shared with this set; only the rest is copied (packed parameters are unpacked).
  Result<WeightSnapshot> snapshot();
  Result<WeightSnapshot> snapshot(std::span<const std::string> names);

  // The parameter's own bytes when it is held packed under this key, otherwise nullptr.
  std::shared_ptr<Buffer> find_packed(std::string_view name, std::string_view key) const;
  // Whoever read the parameter is done: pages of a file leave memory, if it is one.
  void page_out(std::string_view name) const;
  // Holds the parameter as `packed`, which has its current value. Returns state().
  Result<uint64_t> hold_packed(std::string_view name, PackedTensor packed);

  // What plans over this set derived from it. A snapshot shares its own with the other snapshots of the set,
  // never with the set, whose plans may turn a derived buffer into a parameter they write.
  DerivedWeights& derived() const { return *derived_; }

 private:
  // Who may write the bytes of an entry's tensor?
  enum class Access : uint8_t {
    kUnwritten,  // nobody has asked for them so far
    kWritten,    // somebody got them from writable()
    kShared,     // nobody: a snapshot has them too
  };
  struct Entry {
    TensorType type;
    Tensor tensor;        // unless packed
    PackedTensor packed;  // its buffer is nullptr unless packed
    uint64_t version;
    Access access = Access::kUnwritten;
    mutable std::weak_ptr<Buffer> copy;  // plain, aligned, of the current value; nobody writes it
  };
  uint64_t next_state() { return state_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  Result<const Entry*> find(std::string_view name) const;
  static Result<Tensor> plain(const Entry& entry);
  static Result<Tensor> fresh_copy(const Entry& entry);
  static Result<Entry> frozen(Entry& entry);
  static void page_out(const Entry& entry);

  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::shared_ptr<DerivedWeights> derived_ = std::make_shared<DerivedWeights>();
  std::shared_ptr<DerivedWeights> derived_by_snapshots_ = std::make_shared<DerivedWeights>();
  std::atomic<uint64_t> state_{1};
};

// An immutable set of weights; copying shares it. Any number of threads may use one.
class WeightSnapshot {
 public:
  const Parameters& weights() const { return *weights_; }
  const std::shared_ptr<const Parameters>& shared_weights() const { return weights_; }
  // Grows from each snapshot made in this process to the next. Never 0.
  uint64_t version() const { return version_; }

 private:
  friend class Parameters;
  WeightSnapshot(std::shared_ptr<const Parameters> weights, uint64_t version)
      : weights_(std::move(weights)), version_(version) {}
  std::shared_ptr<const Parameters> weights_;
  uint64_t version_;
};

// Where a training leaves its newest weights for whoever reads. Thread-safe.
class PublishedWeights {
 public:
  explicit PublishedWeights(WeightSnapshot first)
      : current_(std::move(first)), version_(current_.version()) {}

  // Readers get it from their next current() on. The one before lives on with those who hold it.
  void publish(WeightSnapshot next);
  WeightSnapshot current() const;
  // Of current(); one atomic load, for readers to see that there is nothing new.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  WeightSnapshot current_;
  std::atomic<uint64_t> version_;
};

}  // namespace limber
