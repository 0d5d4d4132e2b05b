#include "base/turns.h"

#include "base/clock.h"

namespace limber {

void Turns::join(size_t who) {
  std::unique_lock lock(mutex_);
  wait(lock, who);
}

void Turns::pass(size_t who) {
  std::unique_lock lock(mutex_);
  hand_on(who);
  wait(lock, who);
}

void Turns::leave(size_t who) {
  const std::lock_guard lock(mutex_);
  left_[who] = true;
  hand_on(who);
}

void Turns::wait(std::unique_lock<std::mutex>& lock, size_t who) {
  changed_.wait(lock, [&] { return on_ == who; });
  since_ = now_seconds();
}

void Turns::hand_on(size_t who) {
  seconds_[who] += now_seconds() - since_;
  for (size_t i = 1; i <= left_.size(); ++i) {
    const size_t next = (who + i) % left_.size();
    if (left_[next]) continue;
    on_ = next;
    break;
  }
  changed_.notify_all();
}

}  // namespace limber
