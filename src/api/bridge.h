// What the public classes stand on, in public types only. The public header and the engine's own headers
// both have a Model and a Session, so no file includes both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "limber/error.h"
#include "limber/tensor.h"

namespace limber::bridge {

struct Settings {
  int threads = 0;
  int64_t batch = 0;
  std::map<std::string, int64_t> symbols;
  bool tune = false;
  std::string tune_cache;
  size_t memory_limit = 0;
};

class SessionHandle {
 public:
  virtual ~SessionHandle() = default;
  virtual std::span<const TensorView> inputs() const = 0;
  virtual std::span<const TensorView> outputs() const = 0;
  virtual Error run() = 0;
  virtual Expected<std::unique_ptr<SessionHandle>> clone() const = 0;
  virtual int threads() const = 0;
  virtual size_t working_bytes() const = 0;
};

class ModelHandle {
 public:
  virtual ~ModelHandle() = default;
  virtual std::span<const TensorInfo> inputs() const = 0;
  virtual std::span<const TensorInfo> outputs() const = 0;
  virtual int64_t parameter_count() const = 0;
  virtual Expected<std::unique_ptr<SessionHandle>> compile(const Settings& settings) const = 0;
  virtual Error save(const std::string& path) const = 0;
};

using Shapes = std::map<std::string, std::vector<int64_t>>;
Expected<std::unique_ptr<ModelHandle>> load(const std::string& path, const Shapes& shapes);
Expected<std::unique_ptr<ModelHandle>> load_bytes(std::span<const std::byte> bytes, const std::string& label,
                                                  const Shapes& shapes);
std::vector<std::string> builtin_names();
Error no_such(const std::string& what, const std::string& wrong, std::span<const TensorView> views);

}  // namespace limber::bridge
