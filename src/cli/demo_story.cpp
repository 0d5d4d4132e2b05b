#include "cli/demo_story.h"

#include <fmt/format.h>

#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/turns.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/demo_samples.h"
#include "cli/demo_timing.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/train_arguments.h"
#include "device/cpu.h"
#include "io/onnx.h"
#include "jobs/elastic_report.h"
#include "jobs/elastify_job.h"
#include "jobs/eval_job.h"
#include "jobs/search_job.h"
#include "jobs/version.h"

namespace limber {
namespace {

using Words = std::vector<std::string>;

// A training that the story tells: its folder, and the words after `limber train`.
struct Way {
  std::string name;
  Words words;
};

// Lets the others train after each epoch.
class PassOn : public TrainerHook {
 public:
  PassOn(Turns& turns, size_t who) : turns_(turns), who_(who) {}
  Status on_epoch_end(const EpochReport& /*report*/) override {
    turns_.pass(who_);
    return {};
  }

 private:
  Turns& turns_;
  const size_t who_;
};

// One bar for a training, with its name where several take turns.
class Bar : public JobObserver {
 public:
  explicit Bar(const std::string& name) : name_(name.empty() ? "" : fmt::format("{:<8}", name)) {}
  ~Bar() override { line_.clear(); }
  void on_progress(const JobProgress& progress) override {
    line_.show(fmt::format("{}{} {}", name_, progress_bar(progress.share), progress.text));
  }

 private:
  const std::string name_;
  ProgressLine line_;
};

struct Trained {
  Result<TrainResult> result = error(Code::kInternal, "not trained");
  double seconds = 0;  // that it was on
};

std::vector<Trained> train_in_turns(std::vector<TrainCommand>& commands, const std::vector<Way>& ways) {
  Turns turns(commands.size());
  std::vector<Trained> trained(commands.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < commands.size(); ++i) {
    threads.emplace_back([&, i] {
      turns.join(i);
      PassOn hook(turns, i);
      const std::string name = commands.size() > 1 ? ways[i].name : "";
      Bar bar(name);
      trained[i].result =
          run_train(commands[i], {.observer = &bar, .stop = &stop_asked()}, {.hooks = {&hook}});
      turns.leave(i);
    });
  }
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i].join();
    trained[i].seconds = turns.seconds(i);
  }
  return trained;
}

constexpr int kSteps = 6;
constexpr uint64_t kUnseen = 1'000'000;  // added to the seed: images that play no part but in the end

class Story {
 public:
  explicit Story(const DemoSettings& settings) : s_(settings) {}
  Result<DemoReport> tell();

 private:
  Status learn();
  Status change();
  Status adapt();
  Status make_elastic();
  Status search();
  Status run_subnets();

  void heading(const char* title, const char* why);
  void result(const std::string& text) const { fmt::print(s_.talk, "   -> {}\n", text); }
  void show(const std::string& command) const;
  // The words with what all commands get; shown, and timed until done() is called.
  Words begin(const char* command, Words words);
  Status done();

  Result<std::vector<DemoTraining>> train(std::vector<Way> ways);
  Result<double> judge(const std::string& model, const std::string& data);
  Result<std::string> export_variant(const ElasticFolder& folder, const Variant& variant,
                                     const std::string& name, int64_t& parameters);

  std::string in(const std::string& name) const { return s_.folder + "/" + name; }
  std::string old_domain(int count, uint64_t more = 0) const {
    return fmt::format("synthetic:count={},seed={}", count, s_.seed + more);
  }
  std::string new_domain(int count, uint64_t more = 0) const {
    return fmt::format("synthetic:{},count={},seed={}", s_.shifts, count, s_.seed + more);
  }

  const DemoSettings& s_;
  DemoReport report_;
  int step_ = 0;
  double began_ = 0;
};

// --- how it is told -------------------------------------------------------------------------------------

void Story::heading(const char* title, const char* why) {
  fmt::print(s_.talk, "\n{}/{}  {}\n     {}\n", ++step_, kSteps, title, why);
  std::fflush(s_.talk);
}

void Story::show(const std::string& command) const {
  fmt::print(s_.talk, "   $ {}\n", command);
  std::fflush(s_.talk);
}

Words Story::begin(const char* command, Words words) {
  if (s_.threads > 0) words.insert(words.end(), {"--threads", fmt::format("{}", s_.threads)});
  if (s_.seed > 0) words.insert(words.end(), {"--seed", fmt::format("{}", s_.seed)});
  const std::string line = fmt::format("limber {} {}", command, fmt::join(words, " "));
  show(line);
  report_.steps.push_back({line, 0});
  began_ = now_seconds();
  return words;
}

Status Story::done() {
  report_.steps.back().seconds = now_seconds() - began_;
  return stop_asked() ? error(Code::kResourceExhausted, "stopped") : Status();
}

// --- what the steps share -------------------------------------------------------------------------------

// Each into the folder of its name, epoch by epoch in turns. Evaluation after each epoch is there for the
// plot and no part of the time.
Result<std::vector<DemoTraining>> Story::train(std::vector<Way> ways) {
  const size_t first = report_.steps.size();
  std::vector<TrainCommand> commands(ways.size());
  for (size_t i = 0; i < ways.size(); ++i) {
    ways[i].words.insert(ways[i].words.end(), {"-o", in(ways[i].name)});
    const Words words = begin("train", ways[i].words);
    LIMBER_TRY(parse_words(words, [&](Arguments& arguments) { declare_train(arguments, commands[i]); }));
    LIMBER_TRY(check(commands[i]));
  }
  const std::vector<Trained> all = train_in_turns(commands, ways);
  LIMBER_TRY(done());
  std::vector<DemoTraining> trainings;
  for (size_t i = 0; i < ways.size(); ++i) {
    LIMBER_TRY(all[i].result.status());
    const TrainingSummary& summary = all[i].result->summary;
    DemoTraining training{.name = ways[i].name, .seconds = all[i].seconds, .wall_s = all[i].seconds};
    report_.steps[first + i].seconds = all[i].seconds;
    for (const EpochReport& epoch : summary.epochs) {
      if (epoch.validation) training.seconds -= epoch.validation->seconds;
    }
    training.val_best = summary.state.best_accuracy;
    LIMBER_ASSIGN(training.log, read_run(in(ways[i].name)));
    trainings.push_back(std::move(training));
  }
  return trainings;
}

Result<double> Story::judge(const std::string& model, const std::string& data) {
  begin("eval", {model, "--data", data});
  EvalJobOptions options;
  options.model = model;
  options.data = data;
  options.threads = s_.threads;
  options.seed = s_.seed;
  LIMBER_ASSIGN(const auto result, run_eval(options, {.stop = &stop_asked()}));
  LIMBER_TRY(done());
  return result->evaluation.top1;
}

// --- the steps ------------------------------------------------------------------------------------------

Status Story::learn() {
  heading("A small network learns to tell ten drawn shapes apart",
          "It stands for any ONNX model you have: all that follows starts from it.");
  LIMBER_ASSIGN(
      const auto base,
      train({{"base",
              {s_.model, "--init", "random", "--data", old_domain(s_.base_images), "--val",
               old_domain(s_.val_images), "--epochs", fmt::format("{}", s_.base_epochs), "--lr", "0.05"}}}));
  LIMBER_ASSIGN(report_.base_accuracy, judge(in("base"), old_domain(s_.judged_images, kUnseen)));
  result(fmt::format("{:.1f} % of {} new images right, after {:.0f} s of training",
                     100 * report_.base_accuracy, s_.judged_images, base[0].seconds));
  return {};
}

Status Story::change() {
  heading("The world changes",
          "The same shapes in another light. A model that stands still is worth less from day to day.");
  LIMBER_ASSIGN(report_.samples_png, draw_samples(old_domain(s_.val_images), new_domain(s_.val_images)));
  LIMBER_ASSIGN(report_.base_shifted, judge(in("base"), new_domain(s_.judged_images, kUnseen)));
  result(fmt::format("{:.1f} % right now; it was {:.1f} %. It has to learn again, here",
                     100 * report_.base_shifted, 100 * report_.base_accuracy));
  return {};
}

Status Story::adapt() {
  heading("It learns the new domain: everything, what is worth it, the last layer",
          "Elastic training times a step, measures what each tensor is worth, and trains the best of it.\n"
          "     The three take turns, epoch by epoch: a machine that gets slower does so for all of them.");
  const Words common = {in("base"),
                        "--data",
                        new_domain(s_.images),
                        "--val",
                        new_domain(s_.val_images),
                        "--epochs",
                        fmt::format("{}", s_.epochs),
                        "--lr",
                        "0.02"};
  std::vector<Way> ways = {
      {"full", {}}, {"elastic", {"--rho", fmt::format("{:g}", s_.rho)}}, {"last", {"--strategy", "last"}}};
  for (Way& way : ways) way.words.insert(way.words.begin(), common.begin(), common.end());
  LIMBER_ASSIGN(report_.trainings, train(std::move(ways)));
  for (DemoTraining& now : report_.trainings) {
    LIMBER_ASSIGN(now.accuracy, judge(in(now.name), new_domain(s_.judged_images, kUnseen)));
    const DemoTraining& full = report_.trainings[0];
    const std::string gain =
        &now == &full ? "" : fmt::format(", {:.2f} times as fast", full.seconds / now.seconds);
    result(fmt::format("{}: {:.1f} % right after {:.1f} s of training{}", now.name, 100 * now.accuracy,
                       now.seconds, gain));
  }
  return {};
}

Status Story::make_elastic() {
  heading("The adapted model becomes elastic",
          "Its blocks get cheaper alternatives, taught by the blocks they replace: one model, many shapes.");
  std::string shares;
  for (const int percent : s_.percents) shares += fmt::format("{}{}%", shares.empty() ? "" : ",", percent);
  begin("elastify", {in("elastic"), "--data", new_domain(s_.images), "--budget",
                     fmt::format("{:g}s", s_.teach), "--tune-for", shares, "-o", in("shapes")});
  ElastifyJobOptions job;
  job.model = in("elastic");
  job.data = new_domain(s_.images);
  job.output = in("shapes");
  job.budget = s_.teach;
  job.shares.clear();
  for (const int percent : s_.percents) job.shares.push_back(percent / 100.0);
  job.threads = s_.threads;
  job.seed = s_.seed;
  ConsoleControl console;
  LIMBER_ASSIGN(const ElastifyOutcome outcome, run_elastify(job, console.control));
  console.console.clear();
  LIMBER_TRY(done());
  result(fmt::format("{} blocks with {} alternatives: {:.3g} variants, one of them the model itself",
                     outcome.folder.model.blocks.size(), outcome.alternatives,
                     count_variants(outcome.folder.model)));
  return {};
}

Status Story::search() {
  heading("A search finds the best variant for each budget",
          "Timed on this machine, judged on images: what is promised is what was measured.");
  std::unique_ptr<ElasticWork> work;
  ConsoleControl console;
  for (const int percent : s_.percents) {
    begin("search",
          {in("shapes"), "--data", new_domain(s_.searched_images), "--latency", fmt::format("{}%", percent),
           "--margin", fmt::format("{:g}", s_.margin), "--images", fmt::format("{}", s_.searched_images),
           "--evaluations", fmt::format("{}", s_.evaluations)});
    SearchJobOptions job;
    job.model = in("shapes");
    job.source.data = new_domain(s_.searched_images);
    job.source.images = s_.searched_images;
    job.latency_share = percent / 100.0;
    job.margin = s_.margin;
    job.evaluations = s_.evaluations;
    job.threads = s_.threads;
    job.seed = s_.seed;
    if (work == nullptr) {  // three commands would load and time three times
      LIMBER_ASSIGN(work, open_elastic(job));
      LIMBER_TRY(load_images(*work, job.source, job, console.control));
      LIMBER_ASSIGN(work->table, time_blocks(work->folder.model, work->backends, work->threads,
                                             "timing blocks", console.control));
    }
    const Result<SearchOutcome> searched = find_variant(job, *work, console.control);
    console.console.clear();
    LIMBER_TRY(done());
    if (searched.status().code() == Code::kInvalidArgument) {
      report_.unreachable.push_back(percent / 100.0);
      result(fmt::format("within {} %: {}", percent, searched.status().message()));
      continue;
    }
    LIMBER_TRY(searched.status());
    const SearchOutcome& found = *searched;
    report_.budgets.push_back({.share = percent / 100.0,
                               .promised_share = found.best_s / found.original_s,
                               .promised_s = found.best_s,
                               .promised_accuracy = found.best.accuracy,
                               .variant = print(work->folder.model, found.best.variant),
                               .file = fmt::format("subnet-{}.onnx", percent)});
    result(fmt::format("within {} %: {} of {}, {:.1f} % right ({} variants tried)", percent,
                       show_seconds(found.best_s), show_seconds(found.original_s), 100 * found.best.accuracy,
                       found.evaluated));
  }
  report_.searched_images = work->images.count();
  LIMBER_ASSIGN(report_.elastic, read_elastic_report(in("shapes")));
  return {};
}

Result<std::string> Story::export_variant(const ElasticFolder& folder, const Variant& variant,
                                          const std::string& name, int64_t& parameters) {
  begin("export", {folder.path, "--variant", print(folder.model, variant), "-o", in(name)});
  LIMBER_ASSIGN(const Graph graph, materialize(folder.model, variant));
  LIMBER_TRY(export_onnx(graph, *folder.model.params, in(name), {}));
  LIMBER_TRY(done());
  LIMBER_ASSIGN(const Model exported, load_model(in(name)));
  parameters = parameter_elements(exported);
  return in(name);
}

Status Story::run_subnets() {
  heading("Each subnet is exported, loaded again and timed in turns with the original",
          "A promise counts when the file that is shipped keeps it.");
  LIMBER_ASSIGN(const ElasticFolder folder, load_elastic(in("shapes")));
  std::vector<std::string> files(1);
  LIMBER_ASSIGN(files[0], export_variant(folder, original_variant(folder.model), "original.onnx",
                                         report_.original_parameters));
  for (DemoBudget& budget : report_.budgets) {
    LIMBER_ASSIGN(const Variant variant, parse_variant(folder.model, budget.variant));
    LIMBER_ASSIGN(std::string file, export_variant(folder, variant, budget.file, budget.parameters));
    files.push_back(std::move(file));
  }
  LIMBER_ASSIGN(const TurnTimes times, time_in_turns(files, report_.threads, s_.timed_seconds));
  report_.original_s = times.medians[0];
  report_.timed_runs = times.runs;
  const std::string unseen = new_domain(s_.judged_images, kUnseen);
  LIMBER_ASSIGN(report_.original_accuracy, judge(files[0], unseen));
  for (size_t i = 0; i < report_.budgets.size(); ++i) {
    DemoBudget& budget = report_.budgets[i];
    budget.measured_s = times.medians[i + 1];
    LIMBER_ASSIGN(budget.accuracy, judge(files[i + 1], unseen));
    result(fmt::format("{}: {} of {} = {:.0f} %, {}", budget.file, show_seconds(budget.measured_s),
                       show_seconds(report_.original_s), 100 * report_.measured_share(budget),
                       report_.within(budget) ? "within its budget" : "OVER its budget"));
  }
  return {};
}

Result<DemoReport> Story::tell() {
  const double start = now_seconds();
  std::error_code problem;
  std::filesystem::create_directories(s_.folder, problem);
  if (problem) return error(Code::kIo, "cannot make the folder {}: {}", s_.folder, problem.message());
  report_.folder = s_.folder;
  report_.machine = cpu_info().name;
  report_.version = version_text().substr(0, version_text().find('\n'));
  report_.threads = thread_count({.threads = s_.threads});
  report_.model = s_.model;
  report_.domain = s_.shifts;
  report_.seed = s_.seed;
  report_.quick = s_.quick;
  report_.judged_images = s_.judged_images;
  for (Status (Story::*step)() : {&Story::learn, &Story::change, &Story::adapt, &Story::make_elastic,
                                  &Story::search, &Story::run_subnets}) {
    LIMBER_TRY((this->*step)());
  }
  report_.seconds = now_seconds() - start;
  return std::move(report_);
}

}  // namespace

DemoSettings quick_demo() {
  DemoSettings settings;
  settings.quick = true;
  settings.base_images = 3000;
  settings.base_epochs = 6;
  settings.images = 2000;
  settings.epochs = 8;
  settings.val_images = 200;
  settings.judged_images = 1000;
  settings.teach = 15;
  settings.searched_images = 200;
  settings.evaluations = 24;
  settings.timed_seconds = 1.5;
  return settings;
}

Result<DemoReport> tell_story(const DemoSettings& settings) { return Story(settings).tell(); }

}  // namespace limber
