// What a search works on: an elastic model, images that variants are judged by, the times of blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"
#include "supernet/search/search.h"
#include "variant/block_runner.h"
#include "variant/elastic_folder.h"
#include "variant/latency_table.h"

namespace limber {

// --data, --split, --labels, --images, --workers.
struct ImageSource {
  std::string data, split = "test", labels = "data";
  int64_t images = 500;
  int workers = kAutoWorkers;
};
void add_image_source(Arguments& arguments, ImageSource& source, Arguments::Need data);

// On what times and accuracies are found, for the variant table.
std::string machine_context(int threads);

// Stays where it is made: the runner refers to the model.
struct SearchWork {
  ElasticFolder folder;
  std::vector<std::shared_ptr<Backend>> backends;
  int threads = 1;
  EvaluationSet images;
  std::unique_ptr<BlockRunner> runner;
  LatencyTable table;

  std::string context() const { return machine_context(threads); }
  // The share of images that are right. `stop_asked()` ends it with kResourceExhausted.
  Result<std::vector<double>> evaluate(std::span<const Variant> variants);
  // What the variant's plan has in its arena, for one sample, and its parameters.
  Result<uint64_t> memory_of(const Variant& variant) const;
};

inline constexpr std::string_view kSearchTimesNote = "search_times";
// How long parts of the last search took, as a note in the folder.
std::string search_times_note(const std::vector<std::pair<std::string, double>>& times);
std::vector<std::pair<std::string, double>> search_times(const ElasticInfo& info);

// The folder that `options` names. kInvalidArgument when it holds no elastic model.
Result<std::unique_ptr<SearchWork>> open_search(const CommonOptions& options);
// Images and a runner for them: the same images for the same seed.
Status load_images(SearchWork& work, const ImageSource& source, const CommonOptions& options);
// The latency table, with a progress line.
Status measure_blocks(SearchWork& work);

}  // namespace limber
