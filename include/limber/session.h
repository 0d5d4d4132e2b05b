#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "limber/error.h"
#include "limber/export.h"
#include "limber/tensor.h"

namespace limber {
namespace bridge {
class SessionHandle;
}
inline namespace v1 {

// A compiled model with its own memory: fill the inputs, run, read the outputs before the next run.
//
// Threads: one thread at a time per session. Several sessions (see clone) may run at once on different
// threads; they share weights and code, and each has its own inputs, outputs and working memory.
class LIMBER_API Session {
 public:
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // In the model's order. The views and their memory belong to the session and stay where they are.
  std::span<const TensorView> inputs() const;
  std::span<const TensorView> outputs() const;
  // By name; kNotFound tells which names there are.
  Expected<TensorView> input(std::string_view name) const;
  Expected<TensorView> output(std::string_view name) const;

  // After the first call: no lock, no thread left spinning, no allocation by Limber. oneDNN takes about eight
  // blocks of at most 256 bytes from the heap for each of its operators, a work buffer for some, and frees
  // them before this returns. Outputs whose length depends on the data (detections) have their first
  // dimension set by each run.
  Error run();

  // Another session over the same compiled model, for another thread.
  Expected<Session> clone() const;

  int threads() const;
  size_t working_bytes() const;  // memory for activations; weights, inputs and outputs are not in it

 private:
  friend class Model;
  explicit Session(std::unique_ptr<bridge::SessionHandle> handle);
  std::unique_ptr<bridge::SessionHandle> handle_;
};

}  // namespace v1
}  // namespace limber
