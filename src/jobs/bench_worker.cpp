#include "jobs/bench_worker.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

#include "base/memory.h"
#include "base/random.h"
#include "jobs/bench_elastic.h"
#include "jobs/json.h"
#include "jobs/measured_step.h"
#include "runtime/timing.h"
#include "tensor/npy.h"

namespace limber {
namespace {

constexpr std::string_view kInferenceVerbs = "run COUNT, check IN.npy OUT.npy, info, memory, quit";
constexpr std::string_view kTrainingVerbs =
    "run COUNT, losses IMAGES.npy LABELS.npy COUNT RATE, toggle COUNT SETS AGAIN, survey RUNS, mask SHARE "
    "RUNS, "
    "share RHO RUNS, info, memory, quit";
constexpr uint64_t kToggleSeed = 1;

Status copy(const std::string& file, Tensor target) {
  LIMBER_ASSIGN(const Tensor tensor, read_npy(file));
  if (!target.valid() || tensor.type() != target.type()) {
    return invalid("{}: {}, the model wants {}", file, tensor.type().to_string(),
                   target.valid() ? target.type().to_string() : "nothing");
  }
  std::memcpy(target.raw(), tensor.raw(), tensor.bytes());
  return {};
}

// A random part of all parameters; how large a part is random too.
std::vector<std::string> random_set(const std::vector<std::string>& all, Random& random) {
  std::vector<std::string> set;
  const double share = random.uniform();
  for (const std::string& name : all) {
    if (random.uniform() < share) set.push_back(name);
  }
  if (set.empty()) set.push_back(all[random.below(all.size())]);
  return set;
}

}  // namespace

class BenchAnswers::Verbs {
 public:
  explicit Verbs(const BenchWorker& worker) : worker_(worker), elastic_(worker) {}

  Result<std::string> answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb, from, to;
    int count = 0, sets = 0, again = 0;
    double rate = 0;
    words >> verb;
    if (verb == "run" && words >> count && count > 0) return run(count);
    if (verb == "info") return info();
    if (verb == "memory") {
      return fmt::format("{} {}", worker_.idle_bytes, process_memory().peak);
    }
    if (worker_.training == nullptr) {
      if (verb == "check" && words >> from >> to) return check(from, to);
      return invalid("'{}' is none of: {}", line, kInferenceVerbs);
    }
    if (verb == "losses" && words >> from >> to >> count >> rate && count > 0)
      return losses(from, to, count, rate);
    if (verb == "toggle" && words >> count >> sets >> again && count > 0 && sets > 0 && again >= 0)
      return toggle(count, sets, again);
    if (verb == "survey" && words >> count && count > 0) return elastic_.survey(count);
    if (verb == "mask" && words >> rate >> count && count > 0) return elastic_.random_mask(rate, count);
    if (verb == "share" && words >> rate >> count && count > 0) return elastic_.share(rate, count);
    return invalid("'{}' is none of: {}", line, kTrainingVerbs);
  }

 private:
  Result<std::string> run(int count) const {
    std::string line;
    for (int i = 0; i < count; ++i) {
      LIMBER_ASSIGN(const double seconds, time_once(worker_.run));
      line += fmt::format("{}{:.6f}", i > 0 ? " " : "", 1e3 * seconds);
    }
    return line;
  }

  Result<std::string> check(const std::string& input, const std::string& output) const {
    LIMBER_TRY(copy(input, worker_.session->input(0)));
    LIMBER_TRY(worker_.session->run());
    LIMBER_TRY(write_npy(output, worker_.session->output(0)));
    return std::string("done");
  }

  Result<std::string> info() const {
    const Plan* plan = worker_.plan;
    if (worker_.training != nullptr) {
      LIMBER_ASSIGN(plan, worker_.training->plan());
    }
    Json out = Json::object({{"threads", plan->threads},
                             {"steps", plan->steps.size()},
                             {"reorders", plan->num_reorders()},
                             {"arena_bytes", plan->arena_bytes},
                             {"planned_bytes", plan->memory_bytes()}});
    if (worker_.training != nullptr) {
      int64_t elements = 0;
      for (const std::string& name : worker_.training->trained()) {
        LIMBER_ASSIGN(const TensorType type, worker_.training->params()->type(name));
        elements += type.shape.elements();
      }
      out.set("trained_tensors", worker_.training->trained().size());
      out.set("trained_elements", elements);
      out.set("parameter_bytes", worker_.training->params()->bytes());  // with the optimiser's state
    }
    return out.line();
  }

  // The losses of `count` steps on one batch, each before its update.
  Result<std::string> losses(const std::string& images, const std::string& labels, int count,
                             double rate) const {
    LIMBER_TRY(copy(images, worker_.training->images()));
    LIMBER_TRY(copy(labels, worker_.training->labels()));
    worker_.training->set_rate(rate);
    std::string line;
    for (int i = 0; i < count; ++i) {
      LIMBER_ASSIGN(const float loss, worker_.training->step());
      line += fmt::format("{}{:.9g}", i > 0 ? " " : "", loss);
    }
    worker_.training->set_rate(kBenchRate);
    return line;
  }

  // `count` times: one of `sets` random sets, a step, and `again` more steps with the same set.
  Result<std::string> toggle(int count, int sets, int again) {
    while (sets_.size() < static_cast<size_t>(sets))
      sets_.push_back(random_set(worker_.training->trainable(), random_));
    Json known = Json::array(), fresh = Json::array(), first = Json::array(), later = Json::array();
    for (int i = 0; i < count; ++i) {
      const size_t chosen = random_.below(static_cast<uint64_t>(sets));
      const bool is_new = seen_.insert(chosen).second;
      LIMBER_ASSIGN(const double switching,
                    time_once([&] { return worker_.training->set_trained(sets_[chosen]); }));
      (is_new ? fresh : known).push(1e3 * switching);
      LIMBER_ASSIGN(const double step, time_once(worker_.run));
      if (!is_new) first.push(1e3 * step);
      for (int j = 0; j < again; ++j) {
        LIMBER_ASSIGN(const double more, time_once(worker_.run));
        if (!is_new) later.push(1e3 * more);
      }
    }
    return Json::object({{"resident_bytes", process_memory().resident},
                         {"sets_seen", seen_.size()},
                         {"plans", worker_.training->compiled_plans()},
                         {"known_ms", known},
                         {"new_ms", fresh},
                         {"first_step_ms", first},
                         {"later_step_ms", later}})
        .line();
  }

  const BenchWorker& worker_;
  ElasticAnswers elastic_;
  Random random_{kToggleSeed};
  std::vector<std::vector<std::string>> sets_;
  std::set<size_t> seen_;
};

BenchAnswers::BenchAnswers(const BenchWorker& worker) : verbs_(std::make_unique<Verbs>(worker)) {}
BenchAnswers::~BenchAnswers() = default;

Result<std::string> BenchAnswers::answer(const std::string& line) { return verbs_->answer(line); }

}  // namespace limber
