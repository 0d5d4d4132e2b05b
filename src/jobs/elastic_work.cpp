#include "jobs/elastic_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "device/cpu.h"
#include "ops/op_def.h"
#include "runtime/compile.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

constexpr std::string_view kWithExits = ", with exits";

}  // namespace

Status check(const ImageSource& source) {
  if (source.data.empty()) return invalid("data is missing: images that variants are judged by");
  if (source.images < 1) return invalid("images is {}; expected 1 or more", source.images);
  return {};
}

std::string machine_context(int threads) {
  std::string name = cpu_info().name;
  name.resize(std::min(name.size(), kMaxContext - 32));
  return fmt::format("{}, {} thread{}", name, threads, threads == 1 ? "" : "s");
}

std::string exits_context(int threads) { return machine_context(threads) + std::string(kWithExits); }

bool is_exits_context(std::string_view context) { return context.ends_with(kWithExits); }

Result<std::vector<double>> ElasticWork::evaluate(std::span<const Variant> variants,
                                                  const JobControl& control) {
  return runner->score(variants, images, control.stop);
}

Result<uint64_t> ElasticWork::memory_of(const Variant& variant) const {
  LIMBER_ASSIGN(const Graph graph, materialize(folder.model, variant));
  LIMBER_ASSIGN(const GraphCost cost, cost_of(graph));
  const CompileSettings how = batch_settings(graph, 1, threads);
  LIMBER_ASSIGN(const auto plan, compile(graph, folder.model.params, backends, how));
  return plan->arena_bytes + cost.parameter_bytes;
}

Result<Answers> answers_in(const ElasticInfo& info) {
  LIMBER_ASSIGN(const auto note, find_note<AnswersNote>(info.notes));
  if (!note) return Answers::kClasses;
  for (const Answers answers : {Answers::kClasses, Answers::kPlaces, Answers::kValues}) {
    if (note->answers == answers_name(answers)) return answers;
  }
  return error(Code::kCorrupt, "note '{}' is '{}'; expected classes, places or values", AnswersNote::kName,
               note->answers);
}

Status check_folder(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder + "/manifest.json", ignored)) return {};
  return invalid("{} is no elastic model; 'limber elastify' makes one", folder);
}

Result<std::unique_ptr<ElasticWork>> open_elastic(const JobOptions& options) {
  LIMBER_TRY(check_folder(options.model));
  auto work = std::make_unique<ElasticWork>();
  LIMBER_ASSIGN(work->folder, load_elastic(options.model));
  const BuildSpec spec = build_spec(options, false);
  work->backends = make_backends(spec);
  work->threads = thread_count(spec);
  return work;
}

Status load_images(ElasticWork& work, const ImageSource& source, const JobOptions& options,
                   const JobControl& control) {
  LIMBER_ASSIGN(const Answers answers, answers_in(work.folder.info));
  const bool own_labels = source.truth == Truth::kOriginal || answers != Answers::kClasses;
  const ClassNames expected = own_labels ? ClassNames() : work.folder.info.classes;
  LIMBER_ASSIGN(JudgedData opened, source.split == Split::kTest
                                       ? open_unseen(source.data, work.folder.info, expected, control)
                                       : open_seen(source.data, expected));
  LoaderOptions how;
  const int64_t batch = options.batch == 0 ? BlockRunnerOptions{}.batch : options.batch;
  how.batch = std::min<int64_t>(batch, opened.images.count);
  how.seed = options.seed;
  how.workers = source.workers;
  how.threads = work.threads;
  how.augment = false;
  how.input = work.folder.info.input;
  LIMBER_ASSIGN(const auto loader, Loader::make(std::move(opened.data), how));
  LIMBER_ASSIGN(work.images, load_evaluation_set(*loader, source.images));
  work.judged = opened.images;
  work.judged.count = work.images.count();
  LIMBER_ASSIGN(work.runner,
                BlockRunner::create(work.folder.model, work.backends,
                                    {.batch = how.batch, .threads = work.threads, .answers = answers}));
  if (!own_labels || answers != Answers::kClasses) return {};
  return work.runner->label_by_original(work.images);
}

Result<LatencyTable> time_blocks(const ElasticModel& model,
                                 const std::vector<std::shared_ptr<Backend>>& backends, int threads,
                                 std::string_view stage, const JobControl& control) {
  LatencyOptions how{.stop = control.stop};
  how.measure.threads = threads;
  how.progress = [&](int done, int count) {
    const std::string text = fmt::format("{} of {}", done, count);
    control.progress({stage, static_cast<double>(done) / count, text});
  };
  return measure_latency_table(model, backends, how);
}

}  // namespace limber
