#include "serve/http/background.h"

namespace limber {

Background::~Background() {
  std::deque<std::function<void()>> given_up;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    given_up.swap(tasks_);
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Background::add(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || tasks_.size() >= limit_) return false;
    tasks_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  }
  changed_.notify_one();
  return true;
}

void Background::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds ends without the lock
    lock.lock();
  }
}

}  // namespace limber
