#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/assert.h"

namespace limber {

// Makes items ahead of time on threads of its own and hands them out in order. The owner's functions are
// called from one thread; `produce` is called from the workers, several at a time, or from take() when there
// are none.
template <typename T>
class Prefetcher {
 public:
  // At most 2 * workers items are made or kept ahead of take().
  Prefetcher(int workers, std::function<T(int64_t)> produce)
      : produce_(std::move(produce)), slots_(2 * static_cast<size_t>(workers)) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  }
  // Waits for calls of `produce` that are under way.
  ~Prefetcher() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Forgets all items. No call of `produce` is under way afterwards.
  void cancel() {
    std::unique_lock lock(mutex_);
    claimed_ = end_;
    made_.wait(lock, [this] { return active_ == 0; });
    for (auto& slot : slots_) slot.reset();
    taken_ = claimed_ = end_ = 0;
  }
  // Items first..end-1 are next. REQUIRES: nothing since cancel()
  void start(int64_t first, int64_t end) {
    {
      const std::lock_guard lock(mutex_);
      taken_ = claimed_ = first;
      end_ = end;
    }
    wanted_.notify_all();
  }
  bool done() const { return taken_ == end_; }
  // REQUIRES: !done()
  T take() {
    LIMBER_ASSERT(!done());
    if (threads_.empty()) return produce_(taken_++);
    std::unique_lock lock(mutex_);
    auto& slot = slots_[static_cast<size_t>(taken_) % slots_.size()];
    made_.wait(lock, [&slot] { return slot.has_value(); });
    T item = std::move(*slot);
    slot.reset();
    ++taken_;
    lock.unlock();
    wanted_.notify_one();
    return item;
  }

 private:
  bool has_work() const { return claimed_ < end_ && claimed_ < taken_ + static_cast<int64_t>(slots_.size()); }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wanted_.wait(lock, [this] { return stopping_ || has_work(); });
      if (stopping_) return;
      const int64_t mine = claimed_++;
      ++active_;
      lock.unlock();
      std::optional<T> item(produce_(mine));
      lock.lock();
      slots_[static_cast<size_t>(mine) % slots_.size()] = std::move(item);
      --active_;
      made_.notify_all();
    }
  }

  const std::function<T(int64_t)> produce_;
  std::mutex mutex_;
  std::condition_variable wanted_;  // there may be an item to make
  std::condition_variable made_;    // an item was made
  // Under mutex_, but the owner's thread alone writes taken_ and end_.
  std::vector<std::optional<T>> slots_;
  int64_t taken_ = 0;    // the next to hand out
  int64_t claimed_ = 0;  // the next to make
  int64_t end_ = 0;
  int active_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace limber
