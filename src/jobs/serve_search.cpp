#include "jobs/serve_search.h"

#include <algorithm>

#include "base/priority.h"
#include "jobs/search_job.h"
#include "variant/elastic_folder.h"

namespace limber {
namespace {

// A wish for nearly what was searched for already finds nothing new.
constexpr double kWorthIt = 0.9;
// Hardly any model has a variant of less than a tenth of its latency: it is not tried for.
constexpr double kLeastShare = 0.1;

}  // namespace

BackgroundSearch::BackgroundSearch(const ServeJobOptions& job, const ServedFolder& folder,
                                   ModelServer& server, const JobControl& control)
    : job_(job), folder_(folder), server_(server), control_(control), thread_([this] { work(); }) {}

BackgroundSearch::~BackgroundSearch() {
  stop_ = true;
  asked_.notify_all();
  thread_.join();
  for (const auto& [name, model] : server_.models()) model->on_nothing_fits({});
}

// Models come and go: those that are there now.
void BackgroundSearch::listen() {
  for (const auto& [name, model] : server_.models())
    if (!folder_.elastic_folder(name).empty())
      model->on_nothing_fits([this, name = name](double share) { ask(name, share); });
}

// The last wish of a model knows the machine best.
void BackgroundSearch::ask(const std::string& model, double share) {
  const std::lock_guard lock(mutex_);
  const auto before = searched_.find(model);
  if (before != searched_.end() && share > kWorthIt * before->second) return;
  std::erase_if(wishes_, [&](const Wish& wish) { return wish.model == model; });
  wishes_.push_back({model, share});
  asked_.notify_all();
}

void BackgroundSearch::work() {
  run_when_idle();
  while (true) {
    listen();
    Wish wish;
    {
      std::unique_lock lock(mutex_);
      asked_.wait_for(lock, std::chrono::seconds(1), [&] { return stop_ || !wishes_.empty(); });
      if (stop_) return;
      if (wishes_.empty()) continue;
      wish = wishes_.front();
      wishes_.erase(wishes_.begin());
      searched_[wish.model] = wish.share;
    }
    if (const Status status = search(wish); !status.ok() && !stop_)
      control_.note(NoteKind::kWarning,
                    fmt::format("{}: the search for a variant of {:.0f} % of the latency failed: {}",
                                wish.model, 100 * wish.share, status.message()));
  }
}

// A share, since what is timed beside requests takes longer, the original as well. Where nothing is as quick
// as that, the quickest that there is helps too.
Status BackgroundSearch::search(const Wish& wish) {
  const std::string path = folder_.elastic_folder(wish.model);
  const int threads = thread_count({.threads = job_.threads});
  SearchJobOptions job;
  static_cast<EngineOptions&>(job) = job_;
  job.model = path;
  job.source = job_.search;
  job.latency_share = std::max(kLeastShare, wish.share);
  job.evaluations = 60;  // a few minutes of what is left of a core; each adds to the table for the next time
  LIMBER_ASSIGN(const ElasticFolder folder, load_elastic(path));
  LIMBER_ASSIGN(const JudgedVariants before, served_variants(path, folder.model, threads, false));
  // As many images as before, so that what was judged and what will be compare.
  if (before.images > 0) job.source.images = before.images;
  Status status = run_search(job, {.stop = &stop_}).status();
  constexpr double kSlower = 1.25;  // a step that is worth a try of some seconds
  while (status.code() == Code::kInvalidArgument && job.latency_share * kSlower < 1 && !stop_) {
    job.latency_share *= kSlower;
    status = run_search(job, {.stop = &stop_}).status();
  }
  LIMBER_TRY(status);
  LIMBER_ASSIGN(JudgedVariants found, served_variants(path, folder.model, threads, false));
  for (const auto& [name, model] : server_.models())
    if (name == wish.model) LIMBER_TRY(model->use_variants(std::move(found.variants), found.judged_by));
  return {};
}

}  // namespace limber
