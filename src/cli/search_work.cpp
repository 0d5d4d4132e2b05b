#include "cli/search_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "cli/image_arguments.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "device/cpu.h"
#include "ops/op_def.h"
#include "runtime/compile.h"
#include "variant/variant_table.h"

namespace limber {

void add_image_source(Arguments& arguments, ImageSource& source, Arguments::Need data) {
  arguments.text("-d,--data", source.data, "DATA", "Images that variants are judged by", data);
  arguments.choice("--labels", source.labels, {"data", "original"},
                   "What is right: what the data says (default), or what the original model says");
  arguments.choice("--split", source.split, {"train", "test"},
                   "Which part, where the data has parts; default test");
  arguments.number("--images", source.images, 1, 1000000, "How many of them; default 500");
  add_workers_argument(arguments, source.workers);
}

std::string machine_context(int threads) {
  std::string name = cpu_info().name;
  name.resize(std::min(name.size(), kMaxContext - 32));
  return fmt::format("{}, {} thread{}", name, threads, threads == 1 ? "" : "s");
}

Result<std::vector<double>> SearchWork::evaluate(std::span<const Variant> variants) {
  LIMBER_ASSIGN(const auto correct, runner->count_correct(variants, images, &stop_asked()));
  const auto count = static_cast<double>(images.count());
  std::vector<double> accuracies;
  for (const int64_t right : correct) accuracies.push_back(static_cast<double>(right) / count);
  return accuracies;
}

Result<uint64_t> SearchWork::memory_of(const Variant& variant) const {
  LIMBER_ASSIGN(const Graph graph, materialize(folder.model, variant));
  LIMBER_ASSIGN(const GraphCost cost, cost_of(graph));
  const CompileSettings how = batch_settings(graph, 1, threads);
  LIMBER_ASSIGN(const auto plan, compile(graph, folder.model.params, backends, how));
  return plan->arena_bytes + cost.parameter_bytes;
}

Result<std::unique_ptr<SearchWork>> open_search(const CommonOptions& options) {
  if (!std::filesystem::exists(options.model + "/manifest.json"))
    return invalid("{} is no elastic model; 'limber elastify' makes one", options.model);
  auto work = std::make_unique<SearchWork>();
  LIMBER_ASSIGN(work->folder, load_elastic(options.model));
  const BuildSpec spec = build_spec(options, false);
  work->backends = make_backends(spec);
  work->threads = thread_count(spec);
  return work;
}

Status load_images(SearchWork& work, const ImageSource& source, const CommonOptions& options) {
  OpenOptions open{.split = source.split == "test" ? Split::kTest : Split::kTrain};
  const bool own_labels = source.labels == "original";
  if (!own_labels) open.expected = work.folder.info.classes;
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data, open_dataset(source.data, open));
  LoaderOptions how;
  const int64_t batch = options.batch == 0 ? BlockRunnerOptions{}.batch : options.batch;
  how.batch = std::min<int64_t>(batch, static_cast<int64_t>(data->size()));
  how.seed = options.seed;
  how.workers = source.workers;
  how.threads = work.threads;
  how.augment = false;
  how.input = work.folder.info.input;
  LIMBER_ASSIGN(const auto loader, Loader::make(std::move(data), how));
  LIMBER_ASSIGN(work.images, load_evaluation_set(*loader, source.images));
  LIMBER_ASSIGN(work.runner, BlockRunner::create(work.folder.model, work.backends,
                                                 {.batch = how.batch, .threads = work.threads}));
  return own_labels ? work.runner->label_by_original(work.images) : Status();
}

Status measure_blocks(SearchWork& work) {
  ProgressLine line;
  LatencyOptions how{.stop = &stop_asked()};
  how.measure.threads = work.threads;
  how.progress = [&](int done, int count) {
    line.show(fmt::format("timing blocks {} {} of {}", progress_bar(static_cast<double>(done) / count), done,
                          count));
  };
  auto table = measure_latency_table(work.folder.model, work.backends, how);
  line.clear();
  LIMBER_TRY(table.status());
  work.table = *std::move(table);
  return {};
}

std::string search_times_note(const std::vector<std::pair<std::string, double>>& times) {
  std::string text;
  for (const auto& [what, seconds] : times) text += fmt::format("{}={:.3f} ", what, seconds);
  return text;
}

std::vector<std::pair<std::string, double>> search_times(const ElasticInfo& info) {
  std::vector<std::pair<std::string, double>> times;
  const auto note = info.notes.find(std::string(kSearchTimesNote));
  if (note == info.notes.end()) return times;
  std::istringstream words(note->second);
  for (std::string word; words >> word;) {
    const size_t sign = word.find('=');
    double seconds = 0;
    if (sign == std::string::npos) continue;
    std::from_chars(word.data() + sign + 1, word.data() + word.size(), seconds);
    times.emplace_back(word.substr(0, sign), seconds);
  }
  return times;
}

}  // namespace limber
