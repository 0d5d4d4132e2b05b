// Where models are loaded and unloaded, which takes too long for threads that serve sockets.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace limber {

// One thread, which starts with the first job and runs them one after the other. Any thread may post.
class LoadThread {
 public:
  // Loads take seconds each: more would wait for minutes. As HTTP has it.
  static constexpr size_t kMaxWaiting = 16;

  LoadThread() = default;
  ~LoadThread() { stop(); }
  LoadThread(const LoadThread&) = delete;
  LoadThread& operator=(const LoadThread&) = delete;

  // False when too many wait already, or after stop().
  bool post(std::function<void()> job);
  // Waits for the job that runs; those that wait are dropped.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace limber
