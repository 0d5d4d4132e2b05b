#include "jobs/demo_job.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/show.h"
#include "base/turns.h"
#include "device/cpu.h"
#include "jobs/demo_samples.h"
#include "jobs/demo_serving.h"
#include "jobs/elastic_report.h"
#include "jobs/measured_step.h"
#include "jobs/output.h"
#include "jobs/version.h"
#include "runtime/timing.h"

namespace limber {
namespace {

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

// Says which of several trainings it is, and what only one who watches it alone would want to know more
// quietly. Trainings that take turns never talk at once.
class NamedObserver : public JobObserver {
 public:
  NamedObserver(JobObserver* to, const std::string& name) : to_(to), stage_(fmt::format("{:<8}", name)) {}
  void on_note(NoteKind kind, const std::string& text) override {
    if (to_ != nullptr) to_->on_note(kind == NoteKind::kNote ? NoteKind::kInfo : kind, text);
  }
  void on_progress(const JobProgress& progress) override {
    if (to_ != nullptr) to_->on_progress({stage_, progress.share, progress.text});
  }

 private:
  JobObserver* const to_;
  const std::string stage_;
};

struct Trained {
  Result<TrainResult> result = error(Code::kInternal, "not trained");
  double seconds = 0;  // that it was on
};

std::string name_of(const TrainJobOptions& training) {
  return std::filesystem::path(training.output).filename().string();
}

std::vector<Trained> train_in_turns(const std::vector<TrainJobOptions>& trainings,
                                    const JobControl& control) {
  Turns turns(trainings.size());
  std::vector<Trained> trained(trainings.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < trainings.size(); ++i) {
    threads.emplace_back([&, i] {
      turns.join(i);
      PassOn hook(turns, i);
      NamedObserver observer(control.observer, name_of(trainings[i]));
      trained[i].result =
          run_train(trainings[i], {.observer = &observer, .stop = control.stop}, {.hooks = {&hook}});
      turns.leave(i);
    });
  }
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i].join();
    trained[i].seconds = turns.seconds(i);
  }
  return trained;
}

constexpr int kChapters = 7;
constexpr uint64_t kUnseen = 1'000'000;  // added to the seed: images that play no part but in the end

int percent_of(double share) { return static_cast<int>(std::lround(100 * share)); }

std::string served_text(const DemoServed& run, const DemoPhase& phase) {
  return fmt::format("{}, {}: {:.1f} % of {} requests in time, p50 {}, p95 {}, {:.1f} % right, {}", run.name,
                     phase.busy ? "busy neighbour" : "idle", 100 * phase.share_within(), phase.requests,
                     show_seconds(phase.p50_s), show_seconds(phase.p95_s), 100 * phase.accuracy,
                     phase.switches == 1 ? "1 switch" : fmt::format("{} switches", phase.switches));
}

class Story {
 public:
  Story(const DemoJobOptions& options, const JobControl& control, DemoTeller& teller)
      : s_(options), control_(control), teller_(teller) {}
  Result<DemoReport> tell();

 private:
  Status learn();
  Status change();
  Status adapt();
  Status make_elastic();
  Status search();
  Status run_subnets();
  Status serve();
  Status time_files(const std::vector<std::string>& files, std::vector<double>& seconds);

  void chapter(const char* title, const char* why) { teller_.on_chapter(++chapter_, kChapters, title, why); }
  void result(const std::string& text) const { teller_.on_result(text); }
  // A step begins, and is timed until done() is called.
  void begin(const DemoCall& call);
  Status done();

  template <typename Options>
  Options options_for(const std::string& model) const;
  TrainJobOptions training(const std::string& model, const std::string& data, const std::string& validation,
                           int epochs, double rate, const std::string& name) const;
  Result<std::vector<DemoTraining>> train(const std::vector<TrainJobOptions>& trainings);
  Result<double> judge(const std::string& model, const std::string& data);
  Result<std::string> export_variant(const std::string& variant, const std::string& name,
                                     int64_t& parameters);

  std::string in(const std::string& name) const { return s_.folder + "/" + name; }
  std::string old_domain(int count, uint64_t more = 0) const {
    return fmt::format("synthetic:count={},seed={}", count, s_.seed + more);
  }
  std::string new_domain(int count, uint64_t more = 0) const {
    return fmt::format("synthetic:{},count={},seed={}", s_.shifts, count, s_.seed + more);
  }

  const DemoJobOptions& s_;
  const JobControl& control_;
  DemoTeller& teller_;
  DemoReport report_;
  int chapter_ = 0;
  double began_ = 0;
};

// --- what the chapters share ----------------------------------------------------------------------------

void Story::begin(const DemoCall& call) {
  report_.steps.push_back({teller_.on_call(call), 0});
  began_ = now_seconds();
}

Status Story::done() {
  report_.steps.back().seconds = now_seconds() - began_;
  return control_.stop_asked() ? error(Code::kResourceExhausted, "stopped") : Status();
}

template <typename Options>
Options Story::options_for(const std::string& model) const {
  Options options;
  options.model = model;
  options.threads = s_.threads;
  options.seed = s_.seed;
  return options;
}

TrainJobOptions Story::training(const std::string& model, const std::string& data,
                                const std::string& validation, int epochs, double rate,
                                const std::string& name) const {
  auto options = options_for<TrainJobOptions>(model);
  options.data = data;
  options.validation = validation;
  options.trainer.epochs = epochs;
  options.rate = rate;
  options.output = in(name);
  return options;
}

// Each into the folder of its name, epoch by epoch in turns. Evaluation after each epoch is there for the
// plot and no part of the time.
Result<std::vector<DemoTraining>> Story::train(const std::vector<TrainJobOptions>& trainings) {
  const size_t first = report_.steps.size();
  for (const TrainJobOptions& one : trainings) begin(one);
  const std::vector<Trained> all = train_in_turns(trainings, control_);
  LIMBER_TRY(done());
  std::vector<DemoTraining> told;
  for (size_t i = 0; i < trainings.size(); ++i) {
    LIMBER_TRY(all[i].result.status());
    const TrainingSummary& summary = all[i].result->summary;
    DemoTraining one{.name = name_of(trainings[i]), .seconds = all[i].seconds, .wall_s = all[i].seconds};
    report_.steps[first + i].seconds = all[i].seconds;
    for (const EpochReport& epoch : summary.epochs) {
      if (epoch.validation) one.seconds -= epoch.validation->seconds;
    }
    one.val_best = summary.state.best_accuracy;
    LIMBER_ASSIGN(one.log, read_run(trainings[i].output));
    told.push_back(std::move(one));
  }
  return told;
}

Result<double> Story::judge(const std::string& model, const std::string& data) {
  auto options = options_for<EvalJobOptions>(model);
  options.data = data;
  begin(options);
  LIMBER_ASSIGN(const auto evaluated, run_eval(options, control_));
  LIMBER_TRY(done());
  return evaluated->evaluation.top1;
}

// --- the chapters ---------------------------------------------------------------------------------------

Status Story::learn() {
  chapter("A small network learns to tell ten drawn shapes apart",
          "It stands for any ONNX model you have: all that follows starts from it.");
  TrainJobOptions options =
      training(s_.model, old_domain(s_.base_images), old_domain(s_.val_images), s_.base_epochs, 0.05, "base");
  options.from_scratch = true;
  LIMBER_ASSIGN(const auto base, train({options}));
  LIMBER_ASSIGN(report_.base_accuracy, judge(in("base"), old_domain(s_.judged_images, kUnseen)));
  result(fmt::format("{:.1f} % of {} new images right, after {:.0f} s of training",
                     100 * report_.base_accuracy, s_.judged_images, base[0].seconds));
  return {};
}

Status Story::change() {
  chapter("The world changes",
          "The same shapes in another light. A model that stands still is worth less from day to day.");
  LIMBER_ASSIGN(report_.samples_png, draw_samples(old_domain(s_.val_images), new_domain(s_.val_images)));
  LIMBER_ASSIGN(report_.base_shifted, judge(in("base"), new_domain(s_.judged_images, kUnseen)));
  result(fmt::format("{:.1f} % right now; it was {:.1f} %. It has to learn again, here",
                     100 * report_.base_shifted, 100 * report_.base_accuracy));
  return {};
}

Status Story::adapt() {
  chapter("It learns the new domain: everything, what is worth it, the last layer, everything for as long",
          "Elastic training times a step, measures what each tensor is worth, and trains the best of it.\n"
          "They take turns, epoch by epoch: a machine that gets slower does so for all of them.");
  std::vector<TrainJobOptions> trainings;
  for (const char* name : {"full", "elastic", "last", "shorter"})
    trainings.push_back(
        training(in("base"), new_domain(s_.images), new_domain(s_.val_images), s_.epochs, 0.02, name));
  trainings[1].rho = s_.rho;
  trainings[2].strategy = Strategy::kLastLayer;
  // What anybody would do who has only the time of elastic training.
  trainings[3].trainer.epochs = std::max<int64_t>(1, std::llround(s_.rho * s_.epochs));
  LIMBER_ASSIGN(report_.trainings, train(trainings));
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
  chapter("The adapted model becomes elastic",
          "Its blocks get cheaper alternatives, taught by the blocks they replace: one model, many shapes.");
  auto options = options_for<ElastifyJobOptions>(in("elastic"));
  options.data = new_domain(s_.images);
  options.budget = s_.elastify_s;
  options.shares = s_.budgets;
  options.output = in("shapes");
  begin(options);
  auto run = run_elastify(options, control_);
  LIMBER_TRY(done());
  // A slow or busy machine needs more for what teaching needs around it.
  for (int i = 0; i < 3 && run.status().code() == Code::kResourceExhausted; ++i) {
    result(run.status().message());
    options.budget *= 2;
    begin(options);
    run = run_elastify(options, control_);
    LIMBER_TRY(done());
  }
  LIMBER_TRY(run.status());
  const ElastifyOutcome& made = *run;
  result(fmt::format("{} blocks with {} alternatives: {:.3g} variants, one of them the model itself",
                     made.folder.model.blocks.size(), made.alternatives, count_variants(made.folder.model)));
  return {};
}

Status Story::search() {
  chapter("A search finds the best variant for each budget",
          "Timed on this machine, judged on images: what is promised is what was measured.");
  auto options = options_for<SearchJobOptions>(in("shapes"));
  options.source.data = new_domain(s_.searched_images);
  options.source.images = s_.searched_images;
  options.margin = s_.margin;
  options.evaluations = s_.evaluations;
  std::unique_ptr<ElasticWork> work;
  for (const double share : s_.budgets) {
    options.latency_share = share;
    begin(options);
    if (work == nullptr) {  // three searches would load and time three times
      LIMBER_ASSIGN(work, open_elastic(options));
      LIMBER_TRY(load_images(*work, options.source, options, control_));
      LIMBER_ASSIGN(work->table, time_blocks(work->folder.model, work->backends, work->threads,
                                             "timing blocks", control_));
    }
    const Result<SearchOutcome> searched = find_variant(options, *work, control_);
    LIMBER_TRY(done());
    if (searched.status().code() == Code::kInvalidArgument) {
      report_.unreachable.push_back(share);
      result(fmt::format("within {} %: {}", percent_of(share), searched.status().message()));
      continue;
    }
    LIMBER_TRY(searched.status());
    const SearchOutcome& found = *searched;
    report_.budgets.push_back({.share = share,
                               .promised_share = found.best_s / found.original_s,
                               .promised_s = found.best_s,
                               .promised_accuracy = found.best.accuracy,
                               .variant = print(work->folder.model, found.best.variant),
                               .file = fmt::format("subnet-{}.onnx", percent_of(share))});
    result(fmt::format("within {} %: {} of {}, {:.1f} % right ({} variants tried)", percent_of(share),
                       show_seconds(found.best_s), show_seconds(found.original_s), 100 * found.best.accuracy,
                       found.evaluated));
  }
  report_.searched_images = work->images.count();
  LIMBER_ASSIGN(report_.elastic, read_elastic_report(in("shapes")));
  return {};
}

Result<std::string> Story::export_variant(const std::string& variant, const std::string& name,
                                          int64_t& parameters) {
  auto options = options_for<ExportJobOptions>(in("shapes"));
  options.variant = variant;
  options.output = in(name);
  begin(options);
  LIMBER_TRY(run_export(options, control_).status());
  LIMBER_TRY(done());
  LIMBER_ASSIGN(const Model exported, load_model(in(name)));
  parameters = parameter_elements(exported);
  return in(name);
}

// In turns, each for one sample.
Status Story::time_files(const std::vector<std::string>& files, std::vector<double>& seconds) {
  std::vector<std::unique_ptr<Session>> sessions;
  constexpr int kRuns = 5;  // of a round
  TurnTimer timer({.seconds = s_.timed_seconds / static_cast<double>(files.size()),
                   .min_rounds = 6,
                   .max_rounds = 10000,
                   .runs = kRuns,
                   .warm_up = 5});
  BuildSpec how;
  how.threads = report_.threads;
  how.batch = 1;
  for (const std::string& file : files) {
    LIMBER_ASSIGN(const Model model, load_model(file));
    LIMBER_ASSIGN(auto plan, build_plan(model, how));
    LIMBER_ASSIGN(auto session, Session::create(std::move(plan)));
    fill_random(*session, /*seed=*/1);
    timer.add(*session);
    sessions.push_back(std::move(session));
  }
  const std::string text = fmt::format("{} models", files.size());
  control_.progress({"timing in turns", -1, text});
  LIMBER_TRY(timer.run(control_.stop));
  for (size_t i = 0; i < files.size(); ++i) seconds.push_back(timer.seconds(i));
  report_.timed_runs = kRuns * static_cast<int>(timer.rounds());
  return {};
}

Status Story::run_subnets() {
  chapter("Each subnet is exported, loaded again and timed in turns with the original",
          "A promise counts when the file that is shipped keeps it.");
  std::vector<std::string> files(1);
  LIMBER_ASSIGN(files[0], export_variant("", "original.onnx", report_.original_parameters));
  for (DemoBudget& budget : report_.budgets) {
    LIMBER_ASSIGN(std::string file, export_variant(budget.variant, budget.file, budget.parameters));
    files.push_back(std::move(file));
  }
  std::vector<double> seconds;
  LIMBER_TRY(time_files(files, seconds));
  report_.original_s = seconds[0];
  const std::string unseen = new_domain(s_.judged_images, kUnseen);
  LIMBER_ASSIGN(report_.original_accuracy, judge(files[0], unseen));
  for (size_t i = 0; i < report_.budgets.size(); ++i) {
    DemoBudget& budget = report_.budgets[i];
    budget.measured_s = seconds[i + 1];
    LIMBER_ASSIGN(budget.accuracy, judge(files[i + 1], unseen));
    result(fmt::format("{}: {} of {} = {:.0f} %, {}", budget.file, show_seconds(budget.measured_s),
                       show_seconds(report_.original_s), 100 * report_.measured_share(budget),
                       report_.within(budget) ? "within its budget" : "OVER its budget"));
  }
  return {};
}

Status Story::serve() {
  chapter(
      "It is served, and a busy neighbour arrives",
      "The same requests to the model as it is and to the elastic one, which a closed loop lets change its\n"
      "shape. Another program takes the cores for a while, and goes.");
  ServingTrialOptions options{.folder = in("shapes"), .data = new_domain(s_.val_images, kUnseen)};
  options.images = s_.val_images;
  options.workers = std::min(s_.threads, ServingTrialOptions::kMostWorkers);
  options.finding_s = s_.finding_s;
  options.idle_s = s_.idle_s;
  options.busy_s = s_.busy_s;
  options.seed = s_.seed;
  LIMBER_ASSIGN(const auto trial, ServingTrial::open(options, control_));
  LIMBER_TRY(trial->find_budget());
  const DemoServing& told = trial->outcome();
  result(
      fmt::format("{:.3g} requests a second, {} images each. The fixed model answers nine of ten within {}: "
                  "the budget is {}",
                  told.rate, told.batch, show_seconds(told.idle_p90_s), show_seconds(told.budget_s)));
  for (const auto& [name, policy] :
       {std::pair("fixed", Policy::kFixed), std::pair("elastic", Policy::kFeedback)}) {
    LIMBER_TRY(trial->play(name, policy));
    for (const DemoPhase& phase : told.runs.back().phases) result(served_text(told.runs.back(), phase));
  }
  result(told.verdict());
  report_.serving = told;
  return {};
}

Result<DemoReport> Story::tell() {
  const double start = now_seconds();
  std::error_code problem;
  std::filesystem::create_directories(s_.folder, problem);
  if (problem) return error(Code::kIo, "cannot make the folder {}: {}", s_.folder, problem.message());
  report_.folder = s_.folder;
  report_.machine = cpu_info().name;
  report_.version = "limber " + version_number();
  report_.threads = thread_count({.threads = s_.threads});
  report_.model = s_.model;
  report_.domain = s_.shifts;
  report_.seed = s_.seed;
  report_.quick = s_.quick;
  report_.judged_images = s_.judged_images;
  for (Status (Story::*step)() : {&Story::learn, &Story::change, &Story::adapt, &Story::make_elastic,
                                  &Story::search, &Story::run_subnets, &Story::serve}) {
    LIMBER_TRY((this->*step)());
  }
  report_.seconds = now_seconds() - start;
  return std::move(report_);
}

Status check(const DemoJobOptions& options) {
  std::error_code ignored;
  if (options.folder.empty()) return invalid("folder is missing: where the demonstration writes");
  if (std::filesystem::exists(options.folder, ignored))
    return invalid("{} is there already; give another folder, or remove it: a demonstration starts afresh",
                   options.folder);
  LIMBER_TRY(check_output_parent(options.folder));
  if (options.budgets.empty()) return invalid("budgets is empty; expected shares of the latency");
  if (options.threads < 0) return invalid("threads is {}; expected 0 or more", options.threads);
  return {};
}

}  // namespace

DemoJobOptions quick_demo() {
  DemoJobOptions options;
  options.quick = true;
  options.base_images = 3000;
  options.base_epochs = 6;
  options.images = 2000;
  options.epochs = 8;
  options.val_images = 200;
  options.judged_images = 1000;
  options.elastify_s = 30;
  options.searched_images = 200;
  options.evaluations = 24;
  options.timed_seconds = 1.5;  // seconds, as the next three: a part of the full story's
  options.finding_s = 1.5;
  options.idle_s = 1.5;
  options.busy_s = 3;
  return options;
}

Result<DemoReport> run_demo(const DemoJobOptions& options, const JobControl& control, DemoTeller* teller) {
  LIMBER_TRY(check(options));
  DemoTeller silent;
  LIMBER_ASSIGN(DemoReport report, Story(options, control, teller == nullptr ? silent : *teller).tell());
  LIMBER_TRY(os_files().write(options.folder + "/report.html", demo_page(report)));
  LIMBER_TRY(os_files().write(options.folder + "/demo.svg", demo_picture(report)));
  return report;
}

}  // namespace limber
