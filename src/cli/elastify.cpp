// limber elastify: from a model to one that can change its shape.
#include "supernet/elastify.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>

#include "cli/classifier.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/search_work.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/units.h"
#include "supernet/expand.h"
#include "supernet/measure.h"
#include "train/evaluate.h"
#include "variant/elastic_folder.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

constexpr std::string_view kTaught = "taught";  // the note with the seconds of teaching that are over

struct ElastifyCommand : CommonOptions {
  std::string data, output, bad_images = "fail", labels = "auto";
  bool resume = false;
  ImageOptions image;
  AugmentOptions changes;  // random ones
  double seconds = 600;
  double rate = 1e-3, tune_rate = 1e-3, size_limit = 2.7;
  std::vector<std::string> operators;
  std::vector<double> shares = {0.8, 0.6};
  int workers = 1;
};

constexpr int64_t kJudgedImages = 1000;

// Blocks and alternatives, timed on this machine.
Result<ElasticModel> expand_here(const ElastifyCommand& options, const Classifier& classifier,
                                 const std::vector<std::shared_ptr<Backend>>& backends, int threads) {
  ProgressLine line;
  ExpandOptions how{.operators = options.operators, .size_limit = options.size_limit};
  how.measure = [&](const Graph& graph, const std::shared_ptr<Parameters>& params) {
    return measure_latency(graph, params, backends, {.threads = threads, .seconds = 0.02});
  };
  how.progress = [&](std::string_view name, int done, int count) {
    line.show(
        fmt::format("making alternatives {} {}", progress_bar(static_cast<double>(done) / count), name));
  };
  auto model = expand(classifier.model.graph, classifier.model.params, how);
  line.clear();
  return model;
}

struct Counts {
  size_t blocks = 0, alternatives = 0;
  double bytes = 0, base_bytes = 0;
};

Result<Counts> count(const ElasticModel& model) {
  Counts counts{model.blocks.size(), 0, 0, 0};
  std::set<std::string> names;
  for (const Block& block : model.blocks) {
    counts.alternatives += block.alternatives.size() - 1;
    for (const Alternative& alternative : block.alternatives) {
      for (std::string& name : parameters_of(alternative.graph)) names.insert(std::move(name));
    }
  }
  const auto add = [&](const std::string& name, double& to) -> Status {
    LIMBER_ASSIGN(const TensorType type, model.params->type(name));
    to += static_cast<double>(type.bytes());
    return {};
  };
  for (const std::string& name : names) LIMBER_TRY(add(name, counts.bytes));
  for (const std::string& name : parameters_of(model.base)) LIMBER_TRY(add(name, counts.base_bytes));
  return counts;
}

void print_blocks(const ElasticModel& model) {
  Table table({{"block"}, {"alternative"}, {"blocks", true}, {"error", true}});
  for (const Block& block : model.blocks) {
    for (const Alternative& alternative : block.alternatives) {
      if (alternative.name == "original") continue;
      table.add({block.name, alternative.name, fmt::format("{}", alternative.span),
                 fmt::format("{:.4f}", alternative.error)});
    }
  }
  fmt::print("{}", table.text());
}

// A variant that was tuned, and how good it is now.
struct TunedVariant {
  Variant variant;
  double accuracy = 0;
};

// The original first.
Result<std::vector<TunedVariant>> judge_tuned(const ElastifyCommand& options, bool labels,
                                              const std::vector<Variant>& tuned) {
  CommonOptions where = options;
  where.model = options.output;
  LIMBER_ASSIGN(const auto work, open_search(where));
  ImageSource source{.data = options.data, .labels = labels ? "data" : "original", .images = kJudgedImages};
  source.workers = options.workers;
  LIMBER_TRY(load_images(*work, source, where));
  std::vector<Variant> variants = {original_variant(work->folder.model)};
  variants.insert(variants.end(), tuned.begin(), tuned.end());
  LIMBER_ASSIGN(const std::vector<double> accuracies, work->evaluate(variants));
  std::vector<TunedVariant> judged;
  for (size_t i = 0; i < variants.size(); ++i) judged.push_back({variants[i], accuracies[i]});
  return judged;
}

Json tuned_json(const std::vector<TunedVariant>& judged) {
  Json list = Json::array();
  for (const TunedVariant& one : judged)
    list.push(Json::object({{"variant", print(one.variant)}, {"accuracy", one.accuracy}}));
  return list;
}

Status report(const ElastifyCommand& options, const ElasticModel& model, double seconds,
              const std::vector<TunedVariant>& judged, bool stopped) {
  LIMBER_ASSIGN(const Counts counts, count(model));
  if (options.json) {
    Json out = Json::object({{"folder", options.output},
                             {"blocks", counts.blocks},
                             {"alternatives", counts.alternatives},
                             {"variants", count_variants(model)},
                             {"size_ratio", counts.bytes / counts.base_bytes},
                             {"taught_s", seconds},
                             {"stopped", stopped}});
    out.set("tuned", tuned_json(judged));
    fmt::print("{}\n", out.text());
    return {};
  }
  print_blocks(model);
  fmt::print("{} blocks, {} alternatives, {:.3g} variants; {:.2f} times the size of the model\n",
             counts.blocks, counts.alternatives, count_variants(model), counts.bytes / counts.base_bytes);
  for (size_t i = 1; i < judged.size(); ++i)
    fmt::print("tuned {}: {:.2f} % right, the original {:.2f} %\n", print(judged[i].variant),
               100 * judged[i].accuracy, 100 * judged[0].accuracy);
  fmt::print("next: limber search {} --data {} --latency 60%\n", options.output, options.data);
  return {};
}

// Are these the weights that the elastic model was made from?
Result<bool> same_weights(const ElasticModel& model, const Parameters& params) {
  for (const std::string& name : parameters_of(model.base)) {
    if (!params.contains(name)) return false;
    LIMBER_ASSIGN(const Tensor before, model.params->get(name));
    LIMBER_ASSIGN(const Tensor now, params.get(name));
    if (before.type() != now.type() || std::memcmp(before.raw(), now.raw(), now.bytes()) != 0) return false;
  }
  return true;
}

// What was found out about variants does not hold for alternatives that are taught further.
Status forget_variants(const std::string& folder) {
  if (!std::filesystem::exists(variants_in(folder))) return {};
  LIMBER_ASSIGN(const auto table, VariantTable::open(variants_in(folder)));
  return table->erase_all();
}

// The model as it was left, or a new one.
Result<ElasticFolder> find_model(const ElastifyCommand& options, const Classifier& classifier,
                                 const Dataset& data, const std::vector<std::shared_ptr<Backend>>& backends,
                                 int threads) {
  if (is_elastic(options.output)) {
    if (!options.resume)
      return invalid("{} holds an elastic model already; use --resume to go on with it, or another -o",
                     options.output);
    LIMBER_ASSIGN(ElasticFolder found, load_elastic(options.output));
    if (hash(found.model.base) != hash(classifier.model.graph))
      return invalid("{} was made from another model than {}; use another -o", options.output, options.model);
    LIMBER_ASSIGN(const bool same, same_weights(found.model, *classifier.model.params));
    if (!same)
      return invalid("{} was made from {} with other weights; use another -o", options.output, options.model);
    LIMBER_TRY(forget_variants(options.output));
    return found;
  }
  ElasticFolder made{options.output, {data.class_names(), classifier.input, {}}, {}};
  LIMBER_ASSIGN(made.model, expand_here(options, classifier, backends, threads));
  LIMBER_TRY(save_elastic(options.output, made.model, made.info));
  return made;
}

double taught_before(const ElasticInfo& info) {
  const auto note = info.notes.find(std::string(kTaught));
  double seconds = 0;
  if (note != info.notes.end())
    std::from_chars(note->second.data(), note->second.data() + note->second.size(), seconds);
  return std::max(seconds, 0.0);
}

// "80%,60%"
std::string parse_shares(const std::string& text, std::vector<double>& to) {
  to.clear();
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    double percent = 0;
    const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), percent);
    const bool ends = std::string_view(stop, static_cast<size_t>(word.data() + word.size() - stop)) == "%";
    if (problem != std::errc() || !ends || !(percent > 0 && percent <= 100))
      return fmt::format("'{}' should be a share of the original's latency, as in 60%", word);
    to.push_back(percent / 100);
  }
  return to.empty() ? "there should be a share of the original's latency, as in 60%" : "";
}

// Where the data have the model's classes, labels help.
Result<bool> use_labels(const ElastifyCommand& options, const Graph& model, const Dataset& data) {
  if (options.labels == "original") return false;
  LIMBER_ASSIGN(const int64_t classes, count_classes(model));
  const auto found = static_cast<int64_t>(data.class_names().size());
  if (found == classes) {
    LIMBER_TRY(check_labels(data, classes));
    return true;
  }
  if (options.labels == "auto") return false;
  return invalid("{} has {} classes, the model {}; use --labels original", options.data, found, classes);
}

Result<LatencyTable> time_variants(const ElasticModel& model,
                                   const std::vector<std::shared_ptr<Backend>>& backends, int threads) {
  ProgressLine line;
  LatencyOptions how{.stop = &stop_asked()};
  how.measure.threads = threads;
  how.progress = [&](int done, int count) {
    line.show(fmt::format("timing variants {} {} of {}", progress_bar(static_cast<double>(done) / count),
                          done, count));
  };
  auto table = measure_latency_table(model, backends, how);
  line.clear();
  return table;
}

Result<int> elastify(ElastifyCommand& options) {
  if (options.batch == 0) options.batch = 32;
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(options.model));
  if (recorded) use_recorded(options.image, recorded->input);
  LIMBER_ASSIGN(const Classifier classifier, load_classifier(options, options.image));
  LIMBER_ASSIGN(const std::shared_ptr<const Dataset> data,
                open_dataset(options.data, {.split = Split::kTrain}));
  const BuildSpec spec = build_spec(options, false);
  const auto backends = make_backends(spec);
  catch_stop_signals();
  LIMBER_ASSIGN(ElasticFolder folder, find_model(options, classifier, *data, backends, thread_count(spec)));
  ProgressLine line;
  ElastifyOptions how;
  how.distill = {.batch = options.batch, .threads = thread_count(spec)};
  how.seconds = options.seconds;
  how.seconds_before = std::min(taught_before(folder.info), options.seconds);
  how.rate = options.rate;
  how.seed = options.seed;
  how.chosen = tuned_variants(folder.model, folder.info);
  how.input = classifier.input;
  how.input.padding = options.changes.padding;
  how.input.flip = options.changes.flip;
  LIMBER_ASSIGN(const bool labels, use_labels(options, classifier.model.graph, *data));
  how.tune = {.batch = options.batch, .threads = thread_count(spec), .label_share = labels ? 0.5 : 0};
  how.tune_rate = options.tune_rate;
  how.shares = options.shares;
  how.measure = [&] { return time_variants(folder.model, backends, thread_count(spec)); };
  how.on_bad_image = options.bad_images == "skip" ? OnBadImage::kSkip : OnBadImage::kFail;
  how.workers = options.workers;
  how.stop = &stop_asked();
  how.progress = [&](const ElastifyProgress& p) {
    line.show(fmt::format("{} {} {:.0f} of {:.0f} s  {} images  error {:.4f}", p.stage,
                          progress_bar(p.seconds / p.of_seconds), p.seconds, p.of_seconds, p.images,
                          p.error));
  };
  how.save = [&](double seconds, const std::vector<Variant>& chosen) {
    folder.info.notes[std::string(kTaught)] = fmt::format("{:.1f}", seconds);
    folder.info.notes[std::string(kTunedNote)] = tuned_note(chosen);
    return save_elastic(options.output, folder.model, folder.info);
  };
  const auto done = teach_alternatives(folder.model, data, backends, how);
  line.clear();
  if (!done.ok()) return done.status();
  const bool stopped = stop_asked().load();
  std::vector<TunedVariant> judged;
  if (!stopped && !done->chosen.empty()) {
    LIMBER_ASSIGN(judged, judge_tuned(options, labels, done->chosen));
  }
  LIMBER_TRY(report(options, folder.model, done->seconds, judged, stopped));
  if (!stopped) return kExitDone;
  fmt::print(stderr, "limber: stopped after {:.0f} s of teaching; the same command with --resume goes on\n",
             done->seconds);
  return kExitFailed;
}

}  // namespace

void add_elastify(CommandLine& line) {
  auto options = std::make_shared<ElastifyCommand>();
  ElastifyCommand& o = *options;
  Arguments arguments =
      line.add("elastify", "Give a model's blocks cheaper alternatives, taught by the model",
               [options] { return elastify(*options); });
  add_common(arguments, o);
  arguments.text("-d,--data", o.data, "DATA", "Images, with labels or without. See docs/training.md",
                 Arguments::Need::kRequired);
  arguments.text("-o,--output", o.output, "DIR", "Folder of the elastic model", Arguments::Need::kRequired);
  arguments.flag("--resume", o.resume, "Go on with what is in DIR");
  arguments.parsed("--budget", "TIME",
                   "How long alternatives are taught and tuned, as in 90s or 20min; default 10min",
                   [&o](const std::string& text) { return parse_seconds(text, o.seconds); });
  arguments.number("--lr", o.rate, 1e-7, 1.0, "Learning rate of teaching at the beginning; default 0.001");
  arguments.number("--tune-lr", o.tune_rate, 1e-7, 1.0, "The same of tuning; default 0.001");
  arguments.parsed("--tune-for", "SHARES",
                   "Shares of the latency for which variants are tuned; default 80%,60%",
                   [&o](const std::string& text) { return parse_shares(text, o.shares); });
  arguments.choice("--labels", o.labels, {"auto", "data", "original"},
                   "What variants are tuned to: labels and the model's answers, or its answers alone; auto "
                   "(default): labels where the data have the model's classes");
  arguments.number("--padding", o.changes.padding, 0, 1024, "Pixels a random cut may reach beyond the image");
  arguments.number("--flip", o.changes.flip, 0.0, 1.0, "Probability of mirroring an image");
  arguments.texts("--operators", o.operators, "NAME", "Kinds of alternatives to try; default all");
  arguments.number("--size-limit", o.size_limit, 1.0, 100.0,
                   "All parameters together by those of the model; default 2.7");
  add_image_arguments(arguments, o.image);
  arguments.choice("--bad-images", o.bad_images, {"fail", "skip"},
                   "Images that cannot be read; default fail");
  arguments.number("--workers", o.workers, 0, 256, "Threads that read images; default 1");
  arguments.footer(
      "The model's own blocks stay as they are. Alternatives that are not faster on this machine are left "
      "out.\n"
      "Ctrl-C stops after the batch under way and keeps what was taught.\n"
      "Examples:\n"
      "  limber elastify model.onnx --data photos -o elastic --budget 20min\n"
      "  limber elastify model.onnx --data photos -o elastic --budget 20min --resume");
}

}  // namespace limber
