// Things that are made for a number of images, such as compiled plans.
#pragma once

#include <list>
#include <memory>
#include <utility>

#include "base/status.h"

namespace limber::adapt {

// The last two sizes are kept: windows have one size, and what is left over another.
template <typename T>
class BySize {
 public:
  // What was made for this size, or what make() gives, a Result<std::unique_ptr<T>>.
  template <typename Make>
  Result<T*> get(int64_t size, const Make& make) {
    for (auto it = made_.begin(); it != made_.end(); ++it) {
      if (it->first != size) continue;
      made_.splice(made_.begin(), made_, it);
      return made_.front().second.get();
    }
    if (made_.size() == 2) made_.pop_back();
    LIMBER_ASSIGN(auto made, make());
    made_.emplace_front(size, std::move(made));
    return made_.front().second.get();
  }
  void clear() { made_.clear(); }

 private:
  std::list<std::pair<int64_t, std::unique_ptr<T>>> made_;  // the one used last first
};

}  // namespace limber::adapt
