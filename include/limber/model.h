#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limber/error.h"
#include "limber/export.h"
#include "limber/session.h"
#include "limber/tensor.h"

namespace limber {
namespace bridge {
class ModelHandle;
}
inline namespace v1 {

struct LoadOptions {
  // Input name -> dimensions that replace those in the file; -1 keeps one as it is.
  std::map<std::string, std::vector<int64_t>> shapes;
};

struct CompileOptions {
  int threads = 0;    // 0: every core this process may use
  int64_t batch = 0;  // first dimension of every input; 0: as the model says, 1 where it leaves it open
  std::map<std::string, int64_t> symbols;  // other named dimensions, for instance {"height", 480}
  // Times the candidates of every layer on this machine and keeps the fastest. Slow the first time;
  // with `tune_cache` the timings are kept in that file, for other models and processes too.
  bool tune = false;
  std::string tune_cache;
  size_t memory_limit = size_t{16} << 30;  // bytes; a model that would need more is refused
};

// A model as loaded from a file. Move-only; const calls may be made from any thread.
class LIMBER_API Model {
 public:
  // An ONNX file, the folder of a training (its best checkpoint), or "builtin:NAME" for one of the models
  // made by code (see builtin_models). kUnsupported lists every node that cannot run, before anything runs.
  // Weights may stay mapped from the file, which must not change while the model or a session lives.
  static Expected<Model> load(const std::string& path, const LoadOptions& options = {});
  // The same from memory; `label` names it in messages. The bytes may go after the call.
  static Expected<Model> load_bytes(std::span<const std::byte> bytes, const std::string& label,
                                    const LoadOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  std::span<const TensorInfo> inputs() const;
  std::span<const TensorInfo> outputs() const;
  int64_t parameter_count() const;

  // Sessions hold what they need: the model may go before them.
  Expected<Session> compile(const CompileOptions& options = {}) const;

  // Writes the model as plain ONNX, for any engine. A file that is there is replaced as a whole or not at
  // all.
  Error save(const std::string& path) const;

 private:
  friend class Elastic;
  explicit Model(std::unique_ptr<bridge::ModelHandle> handle);
  std::unique_ptr<bridge::ModelHandle> handle_;
};

LIMBER_API std::vector<std::string> builtin_models();
LIMBER_API std::string_view version();  // "0.1.0"

}  // namespace v1
}  // namespace limber
