// Elastic models to try jobs on, and images for them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "jobs/elastify_job.h"
#include "tensor/npy.h"
#include "tests/data/files.h"

namespace limber::test {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Keeps what it is told, and asks for an end at a stage.
class Watcher : public JobObserver {
 public:
  explicit Watcher(std::string stop_at = "") : stop_at_(std::move(stop_at)) {}
  JobControl control() { return {.observer = this, .stop = &stop_}; }

  void on_note(NoteKind kind, const std::string& text) override { notes.emplace_back(kind, text); }
  void on_progress(const JobProgress& progress) override {
    EXPECT_LE(progress.share, 1.5) << progress.stage;
    if (stages.empty() || stages.back() != progress.stage) stages.emplace_back(progress.stage);
    if (progress.stage == stop_at_) stop_ = true;
  }

  std::vector<std::pair<NoteKind, std::string>> notes;
  std::vector<std::string> stages;

 private:
  const std::string stop_at_;
  std::atomic<bool> stop_{false};
};

inline ElastifyJobOptions small_job(const std::string& output,
                                    const std::string& data = "synthetic:count=64") {
  ElastifyJobOptions job;
  job.model = "builtin:resnet8";
  job.data = data;
  job.output = output;
  job.batch = 8;
  job.threads = 1;
  job.operators = {"skip", "shrink50"};
  job.budget = 2;
  return job;
}

// With more time where the machine is too slow for the budget.
inline Result<ElastifyOutcome> elastify_in_time(ElastifyJobOptions& job, const JobControl& control = {}) {
  for (;; job.budget *= 2) {
    auto made = run_elastify(job, control);
    const bool too_small = made.status().message().find("too small") != std::string::npos;
    if (!too_small || job.budget > 100) return made;
  }
}

// `count` images of ten classes in files without parts; noise.
inline std::string write_images(const Folder& folder, int64_t count) {
  Tensor images = *Tensor::zeros({DType::kU8, Shape{count, 32, 32, 3}});
  Tensor labels = *Tensor::zeros({DType::kI64, Shape{count}});
  Random random(1);
  for (uint8_t& x : images.data<uint8_t>()) x = static_cast<uint8_t>(random.below(256));
  for (int64_t i = 0; i < count; ++i) labels.data<int64_t>()[static_cast<size_t>(i)] = i % 10;
  EXPECT_TRUE(write_npy(folder / "images.npy", images).ok());
  EXPECT_TRUE(write_npy(folder / "labels.npy", labels).ok());
  return folder / "images.npy";
}

}  // namespace limber::test
