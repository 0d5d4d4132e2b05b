// A classifier of ten classes in a file, and what a job says.
#pragma once

#include "io/onnx.h"
#include "jobs/train_job.h"
#include "tests/train/training_case.h"

namespace limber::test {

inline std::string write_tiny(const Folder& folder, const std::string& name = "tiny.onnx", uint64_t seed = 1,
                              std::string_view text = kTinyNet) {
  const Net net = make_net(text, seed);
  EXPECT_TRUE(export_onnx(net.graph, *net.params, folder / name).ok());
  return folder / name;
}

// Tiny, trained on 40 drawn images in steps of 8 for one epoch.
inline TrainJobOptions tiny_training(const Folder& folder, const std::string& run = "run") {
  TrainJobOptions options;
  options.model = write_tiny(folder);
  options.data = "synthetic:size=16,count=40";
  options.validation = "synthetic:size=16,count=20";
  options.output = folder / run;
  options.batch = 8;
  options.threads = 1;
  options.trainer.epochs = 1;
  options.trainer.workers = 0;
  return options;
}

// Keeps all that is said, and asks to stop after so many reports of progress.
class Listener : public JobObserver {
 public:
  void on_note(NoteKind kind, const std::string& text) override {
    if (kind != NoteKind::kInfo) notes += text + "\n";
  }
  void on_progress(const JobProgress& progress) override {
    shares.push_back(progress.share);
    stage = progress.stage;
    if (static_cast<int>(shares.size()) == stop_after) stop = true;
  }
  JobControl control() { return {.observer = this, .stop = &stop}; }

  std::string notes, stage;
  std::vector<double> shares;
  int stop_after = -1;
  std::atomic<bool> stop{false};
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Two images of each class, by folder.
inline std::string write_classes(const Folder& folder, const std::vector<std::string>& names, int each = 2) {
  for (size_t i = 0; i < names.size(); ++i) {
    for (int k = 0; k < each; ++k)
      folder.write_image(fmt::format("images/{}/{}.png", names[i], k), static_cast<uint8_t>(40 * i + 7 * k),
                         16);
  }
  return folder / "images";
}

}  // namespace limber::test
