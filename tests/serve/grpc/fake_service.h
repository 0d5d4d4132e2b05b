// A service that does as it is told, by the name of the model:
//   echo      each input comes back as an output of the same name
//   images    takes encoded images as `image`; the output `bytes` says how long each is
//   hold      no answer until release()
//   refuse    what `refusal` says
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "serve/service.h"

namespace limber::testing {

class FakeService : public InferenceService {
 public:
  ServerMetadata server() const override { return {"limber", "1.2.3", {"model_repository"}}; }
  bool live() const override { return true; }
  bool ready() const override { return is_ready; }

  ServeStatus model_ready(std::string_view model, std::string_view version) const override {
    if (model == "broken") return {Refusal::kInternal, "broken"};
    if (model == "cold") return {Refusal::kUnavailable, "cold"};
    return find(model, version);
  }

  ServeStatus metadata(std::string_view model, std::string_view version, ModelMetadata& to) const override {
    const ServeStatus status = find(model, version);
    if (!status.ok()) return status;
    to.name = std::string(model);
    to.versions = {"1", "2"};
    to.inputs = {{"image", DType::kF32, {-1, 3, 8, 8}}, {"other", DType::kU8, {4}}};
    to.outputs = {{"bytes", DType::kI64, {-1}}};
    to.takes_images = model == "images";
    return {};
  }

  void infer(InferRequest request, InferDone done) override {
    ServeStatus status = find(request.model, request.version);
    InferResponse response;
    response.status = status;
    response.model = request.model;
    response.version = "2";
    response.id = request.id;
    response.variant = "original";
    response.queue_s = 0.001;
    response.compute_s = 0.0025;
    if (status.ok() && request.model == "refuse") response.status = refusal;
    if (request.model == "images")
      response.outputs.push_back({"bytes", lengths(request.inputs.at(0).images)});
    if (request.model == "echo") {
      for (const InferInput& input : request.inputs) response.outputs.push_back({input.name, input.tensor});
    }
    const bool hold = request.model == "hold";
    std::unique_lock lock(mutex_);
    last_ = std::move(request);
    ++calls_;
    if (hold) held_.emplace_back(std::move(done), std::move(response));
    changed_.notify_all();
    lock.unlock();
    if (!hold) done(std::move(response));
  }

  std::vector<RepositoryEntry> index(bool ready_only) const override {
    std::vector<RepositoryEntry> entries = {{"echo", "2", "READY", ""}};
    if (!ready_only) entries.push_back({"cold", "1", "UNAVAILABLE", "no such file"});
    return entries;
  }

  ServeStatus load(const std::string& model) override { return change("load " + model, model); }
  ServeStatus unload(const std::string& model) override { return change("unload " + model, model); }
  std::string metrics() const override { return ""; }
  std::string status_json() const override { return "{}"; }

  // Answers all that are held.
  void release() {
    std::unique_lock lock(mutex_);
    auto held = std::exchange(held_, {});
    lock.unlock();
    for (auto& [done, response] : held) done(std::move(response));
  }

  // Waits until infer() was called so often, at most a minute.
  bool wait_for_calls(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return calls_ >= count; });
  }
  InferRequest last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  std::vector<std::string> changes() {
    const std::lock_guard lock(mutex_);
    return changes_;
  }

  std::atomic<bool> is_ready = true;
  ServeStatus refusal;

 private:
  static ServeStatus find(std::string_view model, std::string_view version) {
    const bool known = model == "echo" || model == "images" || model == "hold" || model == "refuse";
    if (!known) return {Refusal::kNotFound, "no model '" + std::string(model) + "'"};
    if (version.empty() || version == "1" || version == "2") return {};
    return {Refusal::kNotFound, "no version '" + std::string(version) + "'"};
  }

  static Tensor lengths(const std::vector<std::string>& images) {
    std::vector<int64_t> sizes;
    for (const std::string& image : images) sizes.push_back(static_cast<int64_t>(image.size()));
    return Tensor::from(std::span<const int64_t>(sizes), Shape{static_cast<int64_t>(sizes.size())});
  }

  ServeStatus change(const std::string& what, const std::string& model) {
    const std::lock_guard lock(mutex_);
    changes_.push_back(what);
    if (model == "missing") return {Refusal::kNotFound, "no folder 'missing'"};
    return {};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  InferRequest last_;
  int calls_ = 0;
  std::vector<std::pair<InferDone, InferResponse>> held_;
  std::vector<std::string> changes_;
};

}  // namespace limber::testing
