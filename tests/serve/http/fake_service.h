// A service that computes nothing: outputs are the inputs, and tests say when.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "serve/service.h"

namespace limber {

class FakeService final : public InferenceService {
 public:
  ~FakeService() override {
    for (std::thread& thread : threads_) thread.join();
  }

  ServerMetadata server() const override { return {"limber", "1.2.3", {"binary_tensor_data"}}; }
  bool live() const override { return true; }
  bool ready() const override { return ready_; }
  ServeStatus model_ready(std::string_view model, std::string_view version) const override {
    return known(model, version);
  }
  ServeStatus metadata(std::string_view model, std::string_view version, ModelMetadata& to) const override {
    to.name = model;
    to.versions = {"1", "2"};
    to.inputs = {{"x", DType::kF32, {-1, 4}}};
    to.outputs = {{"x", DType::kF32, {-1, 4}}};
    to.takes_images = model != "numbers";
    return known(model, version);
  }

  // "echo": at once. "slow": on another thread. "held": when release() is called. "busy": refuses.
  void infer(InferRequest request, InferDone done) override {
    if (request.model == "held") {
      std::lock_guard lock(mutex_);
      held_.emplace_back(std::move(request), std::move(done));
      changed_.notify_all();
    } else if (request.model == "slow") {
      std::lock_guard lock(mutex_);
      threads_.emplace_back(
          [request = std::move(request), done = std::move(done)] { done(answer(request)); });
    } else {
      done(answer(request));
    }
  }
  // Waits until `count` requests to "held" are here.
  void wait_held(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_.size() >= count; });
  }
  void release() {
    std::deque<std::pair<InferRequest, InferDone>> held;
    {
      std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    for (auto& [request, done] : held) done(answer(request));
  }

  std::vector<RepositoryEntry> index(bool ready_only) const override {
    std::vector<RepositoryEntry> entries{{"echo", "1", "READY", ""}};
    if (!ready_only) entries.push_back({"broken", "1", "UNAVAILABLE", "no such file"});
    return entries;
  }
  ServeStatus load(const std::string& model) override {
    std::lock_guard lock(mutex_);
    loads_.push_back("load " + model);
    return model == "broken" ? ServeStatus{Refusal::kBadRequest, "broken: no such file"} : ServeStatus();
  }
  ServeStatus unload(const std::string& model) override {
    std::lock_guard lock(mutex_);
    loads_.push_back("unload " + model);
    return {};
  }
  std::vector<std::string> loads() const {
    std::lock_guard lock(mutex_);
    return loads_;
  }
  std::string metrics() const override { return "limber_build_info 1\n"; }
  std::string status_json() const override { return "{\"models\":[]}"; }

  void set_ready(bool ready) { ready_ = ready; }

 private:
  static ServeStatus known(std::string_view model, std::string_view version) {
    if (model == "none") return {Refusal::kNotFound, "no model 'none'; there is 'echo'"};
    if (version == "9") return {Refusal::kNotFound, "no version '9'; there are 1, 2"};
    return {};
  }
  static InferResponse answer(const InferRequest& request) {
    InferResponse response;
    response.model = request.model;
    response.version = request.version.empty() ? "2" : request.version;
    response.id = request.id;
    response.variant = "original";
    response.status = known(request.model, request.version);
    if (request.model == "busy") response.status = {Refusal::kOverloaded, "8 requests are waiting", 2.5};
    if (!response.status.ok()) return response;
    for (const InferInput& input : request.inputs) {
      if (input.tensor.valid()) response.outputs.push_back({input.name, input.tensor});
      // Of images the sizes.
      std::vector<int64_t> sizes;
      for (const std::string& image : input.images) sizes.push_back(static_cast<int64_t>(image.size()));
      if (!sizes.empty()) {
        response.outputs.push_back(
            {"sizes", Tensor::from(std::span<const int64_t>(sizes), {static_cast<int64_t>(sizes.size())})});
      }
    }
    return response;
  }

  std::atomic<bool> ready_ = true;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<InferRequest, InferDone>> held_;
  std::vector<std::string> loads_;
  std::vector<std::thread> threads_;
};

}  // namespace limber
