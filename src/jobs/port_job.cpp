#include "jobs/port_job.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/show.h"
#include "io/onnx.h"
#include "jobs/device_profile.h"
#include "jobs/json.h"
#include "jobs/port_start.h"
#include "porting/goal_tree.h"
#include "porting/port_goal.h"
#include "variant/measure.h"

namespace limber {
namespace {

constexpr size_t kMostGoalsFile = size_t{64} << 20, kMostProfile = size_t{1} << 20;
constexpr double kTimingSeconds = 0.2;

std::optional<double> given(double limit) {
  return std::isfinite(limit) ? std::optional(limit) : std::nullopt;
}

Result<std::string> read_goals_file(const std::string& path) { return os_files().read(path, kMostGoalsFile); }

Result<std::vector<Goal>> parse_goals_of(const std::string& path, const std::string& text) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  auto goals = parse_goals(
      text, [&](const std::string& file) { return os_files().read((folder / file).string(), kMostProfile); });
  if (!goals.ok()) return goals.status().in(path);
  return goals;
}

class Porting {
 public:
  Porting(const PortJobOptions& job, const JobControl& control) : job_(job), control_(control) {}

  Result<PortOutcome> run() {
    LIMBER_ASSIGN(goals_text_, read_goals_file(job_.goals));
    LIMBER_ASSIGN(goals_, parse_goals_of(job_.goals, goals_text_));
    if (!job_.plan_only) {
      LIMBER_ASSIGN(folder_, open_folder());
    }
    LIMBER_ASSIGN(start_, start_porting(job_, control_));
    start_->on_doing = [this] { tell(); };
    LIMBER_TRY(measure_machine());
    make_tree();
    out_.prepare_s = now_seconds() - began_;
    if (!job_.plan_only) LIMBER_TRY(port_all());
    fill_outcome();
    return std::move(out_);
  }

 private:
  Result<std::optional<PortFolder>> open_folder() const {
    LIMBER_ASSIGN(PortFolder folder, PortFolder::open(job_.output, job_.resume));
    return std::optional(std::move(folder));
  }
  const Ported& root() const { return start_->executor->root(); }

  Result<double> time_here(const Model& model) const {
    const Workshop& shop = start_->shop;
    return measure_latency(model.graph, model.params, shop.backends,
                           {.threads = shop.threads, .seconds = kTimingSeconds});
  }

  Status measure_machine() {
    const Workshop& shop = start_->shop;
    LIMBER_ASSIGN(out_.model_s, time_here(root().model));
    LIMBER_ASSIGN(here_, measure_profile(root().model, root().cost, shop.backends, shop.threads));
    for (Goal& goal : goals_) settle(goal);
    return {};
  }

  void settle(Goal& goal) const {
    if (!goal.device.here) return;
    goal.device.operations_per_s = here_.operations_per_s;
    goal.device.bytes_per_s = here_.bytes_per_s;
  }

  void make_tree() {
    const double start = now_seconds();
    std::vector<Bounds> bounds;
    for (const Goal& goal : goals_) bounds.push_back(bounds_of(goal));
    tree_.emplace(bounds_of(root().cost), bounds);
    out_.tree_s = now_seconds() - start;
    records_.resize(goals_.size());
  }

  std::string asked(const Goal& goal) const {
    Hasher hash;
    hash.add(start_->identity).add(goal.name).add(goal.device.here ? "here" : goal.device.name);
    const Figures limits = limits_of(goal);
    std::string figures = fmt::format("{} {}", fmt::format("{} {} {}", limits[0], limits[1], limits[2]),
                                      goal.targets.accuracy.value_or(0));
    if (!goal.device.here)
      figures += fmt::format(" {} {}", goal.device.operations_per_s, goal.device.bytes_per_s);
    return fmt::format("{:016x}", hash.add(figures).digest());
  }

  // --- all goals ------------------------------------------------------------------------------------------

  Status port_all() {
    LIMBER_TRY(recall());
    while (true) {
      const auto order = tree_->order();
      const auto next =
          std::find_if(order.begin(), order.end(), [this](size_t goal) { return !records_[goal]; });
      LIMBER_TRY(save_tree());
      if (next == order.end()) return {};
      if (control_.stop_asked()) break;
      const Status done = port(*next);
      if (!done.ok() && control_.stop_asked()) break;
      LIMBER_TRY(done);
      take_new_goals();
    }
    out_.stopped = true;
    return {};
  }

  // What is done already.
  Status recall() {
    for (size_t i = 0; i < goals_.size(); ++i) {
      auto record = folder_->find(goals_[i].name);
      if (!record) continue;
      if (record->asked != asked(goals_[i])) {
        control_.note(
            NoteKind::kNote,
            fmt::format("{} was made for another goal, or otherwise; it is made anew", goals_[i].name));
        continue;
      }
      records_[i] = *std::move(record);
      ++out_.known;
    }
    return {};
  }

  // Whose model it begins with: the nearest on the way to the root that has one. -1: the model itself.
  int parent_of(size_t goal) const {
    int at = tree_->parent(goal);
    while (at != GoalTree::kRoot && !records_[static_cast<size_t>(at)]->made)
      at = tree_->parent(static_cast<size_t>(at));
    return at;
  }

  Status port(size_t index) {
    const double start = now_seconds();
    const Goal& goal = goals_[index];
    const int from = parent_of(index);
    current_ =
        fmt::format("{} from {}", goal.name, from < 0 ? "the model" : goals_[static_cast<size_t>(from)].name);
    start_->doing.clear();
    tell();
    Ported loaded;
    if (from >= 0) {
      LIMBER_ASSIGN(loaded, folder_->load(*records_[static_cast<size_t>(from)]));
    }
    PortGoalOptions how;
    how.time_here = [this](const Model& model) { return time_here(model); };
    how.progress = [this](double excess, int steps) {
      start_->doing = fmt::format("step {}, {:.0f} % above", steps, 100 * excess);
      tell();
    };
    auto ported = port_goal(*start_->executor, goal, from < 0 ? root() : loaded, how);
    if (!ported.ok()) return ported.status().in(goal.path);
    GoalRecord record{.name = goal.name,
                      .device = goal.device.name,
                      .executor = start_->executor_name,
                      .asked = asked(goal),
                      .parent = from < 0 ? "" : goals_[static_cast<size_t>(from)].name,
                      .refused = ported->refused};
    set_limits(goal, record);
    record.steps = ported->steps;
    record.way = ported->way;
    if (ported->refused.empty()) LIMBER_TRY(keep(goal, *ported, record));
    record.seconds = now_seconds() - start;
    LIMBER_TRY(folder_->save(record));
    tell_done(goal, record);
    records_[index] = std::move(record);
    return {};
  }

  static void set_limits(const Goal& goal, GoalRecord& record) {
    const Figures limits = limits_of(goal);
    record.latency_limit = given(limits[0]);
    record.memory_limit = given(limits[1]);
    record.parameters_limit = given(limits[2]);
    record.accuracy_limit = goal.targets.accuracy;
  }

  // Writes the model, reads it back, and holds what was read against the goal.
  Status keep(const Goal& goal, const PortedGoal& ported, GoalRecord& record) {
    record.variant = ported.ported.variant;
    record.accuracy = ported.ported.accuracy;
    LIMBER_TRY(folder_->save_model(goal.name, ported.ported.model, start_->card));
    record.made = true;
    LIMBER_ASSIGN(const Ported read, folder_->load(record));
    LIMBER_ASSIGN(const PortCost cost, cost_of(start_->shop, read.model));
    record.operations = cost.operations;
    record.moved_bytes = cost.moved_bytes;
    record.memory = cost.memory;
    record.parameters = cost.parameters;
    record.promised_s = goal.device.latency(cost);
    LIMBER_ASSIGN(record.measured_s, time_here(read.model));
    if (goal.device.here && record.latency_limit) LIMBER_TRY(time_again(read.model, record));
    const Figures limits = limits_of(goal);
    Figures figures = figures_of(cost, goal.device);
    if (goal.device.here) figures[0] = record.measured_s;
    for (size_t i = 0; i < kConstraints; ++i) {
      Figures one = {};
      one[i] = figures[i];
      const auto which = static_cast<Constraint>(i);
      if (!keeps(one, limits))
        record.refused = fmt::format(
            "{}.targets.{}: {} is missed by the file that was written, which takes {}", goal.path,
            constraint_name(which), show_figure(which, limits[i]), show_figure(which, figures[i]));
    }
    if (record.accuracy.value_or(0) < goal.targets.accuracy.value_or(0))
      record.refused = fmt::format(
          "{}.targets.accuracy: {} is out of reach with the other targets; the nearest is {}", goal.path,
          show_percent(*goal.targets.accuracy), show_percent(record.accuracy.value_or(0)));
    return {};
  }

  // A machine that was disturbed for a moment is asked again before a promise is broken.
  Status time_again(const Model& model, GoalRecord& record) const {
    constexpr int kTimes = 3;
    for (int i = 0; i < kTimes && record.measured_s > *record.latency_limit; ++i) {
      LIMBER_ASSIGN(const double again, time_here(model));
      record.measured_s = std::min(record.measured_s, again);
    }
    return {};
  }

  // --- while it runs --------------------------------------------------------------------------------------

  // Goals may be added to the file at any time; what is wrong with it then is no reason to stop.
  void take_new_goals() {
    auto text = read_goals_file(job_.goals);
    if (!text.ok() || *text == goals_text_) return;
    goals_text_ = *std::move(text);
    auto goals = parse_goals_of(job_.goals, goals_text_);
    if (!goals.ok()) return control_.note(NoteKind::kWarning, goals.status().message());
    for (Goal& goal : *goals) {
      const auto known = std::find_if(goals_.begin(), goals_.end(),
                                      [&](const Goal& other) { return other.name == goal.name; });
      if (known != goals_.end()) continue;
      settle(goal);
      tree_->insert(bounds_of(goal), [this](size_t other) { return !records_[other]; });
      control_.note(NoteKind::kNote, fmt::format("{} is new", goal.name));
      goals_.push_back(std::move(goal));
      records_.emplace_back();
    }
  }

  void tell() const {
    const auto done = static_cast<double>(std::count_if(
        records_.begin(), records_.end(), [](const auto& record) { return record.has_value(); }));
    const std::string text =
        fmt::format("{:.0f} of {} goals  {}  {}", done, goals_.size(), current_, start_->doing);
    control_.progress({"porting", done / static_cast<double>(goals_.size()), text});
  }

  void tell_done(const Goal& goal, const GoalRecord& record) const {
    if (!record.refused.empty()) return control_.note(NoteKind::kWarning, record.refused);
    control_.note(
        NoteKind::kInfo,
        fmt::format("{}: {} promised, {} here, {} accuracy", goal.name, show_seconds(record.promised_s),
                    show_seconds(record.measured_s), show_percent(record.accuracy.value_or(0))));
  }

  Status save_tree() const {
    Json goals = Json::array();
    for (const size_t i : tree_->order()) {
      const int parent = tree_->parent(i);
      const char* state = !records_[i] ? "waiting" : records_[i]->refused.empty() ? "kept" : "refused";
      goals.push(Json::object({{"name", goals_[i].name},
                               {"parent", parent < 0 ? "" : goals_[static_cast<size_t>(parent)].name},
                               {"way", tree_->way(i)},
                               {"state", state}}));
    }
    return folder_->save_tree(Json::object({{"format", 1}, {"goals", std::move(goals)}}).text());
  }

  void fill_outcome() {
    out_.folder = job_.output;
    out_.executor = start_->executor_name;
    out_.images = start_->judged;
    out_.model = root().cost;
    out_.model_accuracy = root().accuracy;
    for (const size_t i : tree_->order()) {
      const int parent = tree_->parent(i);
      PortOutcome::Entry entry{.planned = parent < 0 ? "" : goals_[static_cast<size_t>(parent)].name,
                               .way = tree_->way(i),
                               .depth = tree_->depth(i),
                               .done = records_[i].has_value()};
      if (entry.done) {
        entry.record = *records_[i];
        ++(entry.record.refused.empty() ? out_.kept : out_.refused);
      } else {
        entry.record = {.name = goals_[i].name, .device = goals_[i].device.name};
        set_limits(goals_[i], entry.record);
      }
      out_.goals.push_back(std::move(entry));
      const Bounds own = bounds_of(goals_[i]);
      out_.alone_way += GoalTree(bounds_of(root().cost), std::span(&own, 1)).total();
    }
    out_.tree_way = tree_->total();
    out_.seconds = now_seconds() - began_;
  }

  const PortJobOptions& job_;
  const JobControl& control_;
  const double began_ = now_seconds();
  std::string goals_text_;
  std::vector<Goal> goals_;
  std::vector<std::optional<GoalRecord>> records_;  // of goals that are done
  std::optional<PortFolder> folder_;
  std::unique_ptr<PortStart> start_;
  DeviceProfile here_;
  std::optional<GoalTree> tree_;
  std::string current_;
  PortOutcome out_;
};

}  // namespace

std::string_view port_by_name(PortBy by) {
  return by == PortBy::kAuto ? "auto" : by == PortBy::kSupernet ? "supernet" : "filters";
}

Status check(const PortJobOptions& o) {
  if (o.goals.empty()) return invalid("goals is missing: the file that says what to port to");
  if (o.model.empty()) return invalid("model is missing: what is ported");
  if (o.data.empty()) return invalid("data is missing: images to learn from and to judge by");
  if (o.plan_only && o.by == PortBy::kSupernet && !is_elastic(o.model))
    return invalid("plan_only makes nothing, and {} would have to be made elastic first", o.model);
  if (o.output.empty() && !o.plan_only) return invalid("output is missing: the folder for the models");
  if (o.images < 1) return invalid("images is {}; expected 1 or more", o.images);
  if (o.epochs.value_or(0) < 0) return invalid("epochs is {}; expected 0 or more", *o.epochs);
  if (!(o.rate > 0 && o.rate <= 1)) return invalid("rate is {}; expected above 0 and at most 1", o.rate);
  if (o.evaluations < 1) return invalid("evaluations is {}; expected 1 or more", o.evaluations);
  if (!(o.step_images >= 0 && o.step_images <= 1))
    return invalid("step_images is {}; expected a share from 0 to 1", o.step_images);
  if (!(o.budget >= 0 && std::isfinite(o.budget))) return invalid("budget is {}; expected seconds", o.budget);
  return {};
}

Result<PortOutcome> run_port(const PortJobOptions& options, const JobControl& control) {
  LIMBER_TRY(check(options));
  return Porting(options, control).run();
}

}  // namespace limber
