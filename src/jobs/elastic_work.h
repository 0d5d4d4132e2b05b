// An elastic model at work: its folder, images that variants are judged by, the times of its blocks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jobs/judged_images.h"
#include "jobs/source.h"
#include "record/elastic_records.h"
#include "variant/block_runner.h"
#include "variant/elastic_folder.h"
#include "variant/latency_table.h"

namespace limber {

// What is right: what the data say, or what the original model says. Of answers that are no classes it is
// always the latter.
enum class Truth : uint8_t { kData, kOriginal };

// Images that variants are judged by.
struct ImageSource {
  std::string data;
  Split split = Split::kTest;  // see open_unseen(), open_seen()
  Truth truth = Truth::kData;
  int64_t images = 500;  // at most
  int workers = kAutoWorkers;
};
Status check(const ImageSource& source);

// On what times and accuracies are found, for the variant table.
std::string machine_context(int threads);
// The same for variants with exits: these are judged by other images, and so are kept apart.
std::string exits_context(int threads);
bool is_exits_context(std::string_view context);

// Stays where it is made: the runner refers to the model.
struct ElasticWork {
  ElasticFolder folder;
  std::vector<std::shared_ptr<Backend>> backends;
  int threads = 1;
  EvaluationSet images;
  JudgedImages judged;  // which images these are
  std::unique_ptr<BlockRunner> runner;
  LatencyTable table;

  std::string context() const { return machine_context(threads); }
  // For the folder's history.
  Judgement judgement(const JudgedImages& by) const { return {by.text(), by.count, context()}; }
  // The share of images that are right; of what is no class how near it is to the original. Stopped, it ends
  // with kResourceExhausted.
  Result<std::vector<double>> evaluate(std::span<const Variant> variants, const JobControl& control);
  // What the variant's plan has in its arena, for one sample, and its parameters.
  Result<uint64_t> memory_of(const Variant& variant) const;
};

// What the model of a folder says, as its notes have it.
Result<Answers> answers_in(const ElasticInfo& info);
// kInvalidArgument when `folder` is not that of an elastic model.
Status check_folder(const std::string& folder);
// The folder that `options` names as its model. kInvalidArgument when it holds no elastic model.
Result<std::unique_ptr<ElasticWork>> open_elastic(const JobOptions& options);
// Images and a runner for them: the same images for the same seed.
Status load_images(ElasticWork& work, const ImageSource& source, const JobOptions& options,
                   const JobControl& control);
// Times the blocks, which `stage` is called.
Result<LatencyTable> time_blocks(const ElasticModel& model,
                                 const std::vector<std::shared_ptr<Backend>>& backends, int threads,
                                 std::string_view stage, const JobControl& control);

}  // namespace limber
