// What plans derive from weights (packed copies, folded scales) and share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tensor/tensor.h"

namespace limber {

// Found under a key that says how a buffer was made and a stamp that says from which versions of which
// parameters: what was made from other weights has another stamp. A buffer is kept only while some plan holds
// it. Thread-safe.
class DerivedWeights {
 public:
  // Equal ones for equal Parameters::versions(). Never 0.
  static uint64_t stamp(std::span<const uint64_t> versions);

  std::shared_ptr<Buffer> find(std::string_view key, uint64_t stamp) const;
  void keep(std::string_view key, uint64_t stamp, const std::shared_ptr<Buffer>& buffer);
  size_t alive() const;  // buffers that somebody holds
  size_t size() const;   // entries

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, uint64_t>, std::weak_ptr<Buffer>> buffers_;
  size_t sweep_at_ = 0;  // entries at which those that nobody holds are looked for next
};

}  // namespace limber
