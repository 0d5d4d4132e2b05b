#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace limber {

// One thread for what takes seconds, started when there is something to do. All calls from any thread.
class Background {
 public:
  explicit Background(size_t limit) : limit_(limit) {}
  ~Background();  // waits for what is being done; what has not been begun is given up

  // False when `limit` tasks are waiting. A task that is given up is destroyed without having been called.
  bool add(std::function<void()> task);

 private:
  void work();

  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace limber
