// What runs. A Kernel is one node's implementation, chosen at compile time and immutable; binding it
// to memory gives a BoundKernel, which a session runs again and again.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace limber {

// Where a kernel reads and writes; one pointer per input and output of the node, nullptr for absent
// ones. Pointers are 64-byte aligned except for parameters mapped from a file.
struct KernelIo {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  void* scratch = nullptr;  // scratch_bytes() bytes, contents undefined before and after a run

  template <typename T>
  const T* in(int i) const {
    return static_cast<const T*>(inputs[static_cast<size_t>(i)]);
  }
  template <typename T>
  T* out(int i) const {
    return static_cast<T*>(outputs[static_cast<size_t>(i)]);
  }
};

class BoundKernel {
 public:
  virtual ~BoundKernel() = default;
  // Takes no lock, does not fail, allocates nothing that outlives it; own kernels allocate nothing at all.
  // One thread at a time.
  virtual void run() = 0;
};

// Thread-safe after construction; shared by all sessions of a plan. Outlives its bindings.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual size_t scratch_bytes() const { return 0; }
  virtual Result<std::unique_ptr<BoundKernel>> bind(KernelIo io) const = 0;
};

// A kernel that is a function of its pointers; everything else it needs is captured by `run`.
std::unique_ptr<Kernel> make_kernel(std::function<void(const KernelIo&)> run, size_t scratch_bytes = 0);

}  // namespace limber
