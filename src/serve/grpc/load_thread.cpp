#include "serve/grpc/load_thread.h"

#include <utility>

namespace limber {

bool LoadThread::post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || waiting_.size() >= kMaxWaiting) return false;
  waiting_.push_back(std::move(job));
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_one();
  return true;
}

void LoadThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiting_.clear();
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void LoadThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    const std::function<void()> job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace limber
