#include "jobs/serve_search.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/show.h"
#include "jobs/search_job.h"
#include "variant/elastic_folder.h"

namespace limber {
namespace {

// Below every priority: the thread, and those it starts, get what is left. Where that is not allowed, the
// lowest.
void run_when_idle() {
  const sched_param none{};
  if (sched_setscheduler(0, SCHED_IDLE, &none) != 0)
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
}

// A wish for nearly what was searched for already finds nothing new.
constexpr double kWorthIt = 0.9;

}  // namespace

BackgroundSearch::BackgroundSearch(const ServeJobOptions& job, const ServedFolder& folder,
                                   ModelServer& server, const JobControl& control)
    : job_(job), folder_(folder), server_(server), control_(control), thread_([this] { work(); }) {
  for (const auto& [name, model] : server.models())
    if (!folder.elastic_folder(name).empty())
      model->on_nothing_fits([this, name = name](double latency_s) { ask(name, latency_s); });
}

BackgroundSearch::~BackgroundSearch() {
  for (const auto& [name, model] : server_.models()) model->on_nothing_fits({});
  stop_ = true;
  asked_.notify_all();
  thread_.join();
}

void BackgroundSearch::ask(const std::string& model, double latency_s) {
  const std::lock_guard lock(mutex_);
  const auto before = searched_.find(model);
  if (before != searched_.end() && latency_s > kWorthIt * before->second) return;
  searched_[model] = latency_s;
  wishes_.push_back({model, latency_s});
  asked_.notify_all();
}

void BackgroundSearch::work() {
  run_when_idle();
  while (true) {
    Wish wish;
    {
      std::unique_lock lock(mutex_);
      asked_.wait_for(lock, std::chrono::seconds(1), [&] { return stop_ || !wishes_.empty(); });
      if (stop_) return;
      if (wishes_.empty()) continue;
      wish = wishes_.back();  // the newest knows the machine best
      wishes_.clear();
    }
    if (const Status status = search(wish); !status.ok() && !stop_)
      control_.note(NoteKind::kWarning,
                    fmt::format("{}: the search for a variant of {} failed: {}", wish.model,
                                show_seconds(wish.latency_s), status.message()));
  }
}

Status BackgroundSearch::search(const Wish& wish) {
  const std::string path = folder_.elastic_folder(wish.model);
  SearchJobOptions job;
  static_cast<EngineOptions&>(job) = job_;
  job.model = path;
  job.source = job_.search;
  job.latency = wish.latency_s;
  job.evaluations = 60;  // a few minutes of what is left of a core; each adds to the table for the next time
  LIMBER_TRY(run_search(job, {.stop = &stop_}).status());
  LIMBER_ASSIGN(const ElasticFolder folder, load_elastic(path));
  std::string note;
  LIMBER_ASSIGN(auto variants, served_variants(path, folder.model, thread_count({.threads = job_.threads}),
                                               job_.exits, note));
  for (const auto& [name, model] : server_.models())
    if (name == wish.model) LIMBER_TRY(model->use_variants(std::move(variants)));
  return {};
}

}  // namespace limber
