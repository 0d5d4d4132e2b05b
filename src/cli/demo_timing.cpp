#include "cli/demo_timing.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/median.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signals.h"

namespace limber {

Result<TurnTimes> time_in_turns(const std::vector<std::string>& models, int threads, double seconds) {
  constexpr int kWarmUp = 5, kRunsPerTurn = 5, kLeastTurns = 6;
  std::vector<std::unique_ptr<Session>> sessions;
  for (const std::string& name : models) {
    LIMBER_ASSIGN(const Model model, load_model(name));
    BuildSpec spec;
    spec.threads = threads;
    spec.batch = 1;
    LIMBER_ASSIGN(auto plan, build_plan(model, spec));
    LIMBER_ASSIGN(auto session, Session::create(std::move(plan)));
    fill_random(*session, /*seed=*/1);
    for (int i = 0; i < kWarmUp; ++i) LIMBER_TRY(session->run());
    sessions.push_back(std::move(session));
  }
  ProgressLine line;
  std::vector<std::vector<double>> times(sessions.size());
  const double start = now_seconds();
  for (int turn = 0; turn < kLeastTurns || now_seconds() - start < seconds; ++turn) {
    if (stop_asked()) return error(Code::kResourceExhausted, "stopped while timing {} models", models.size());
    line.show(fmt::format("timing {} models in turns {}", models.size(),
                          progress_bar((now_seconds() - start) / seconds)));
    for (size_t i = 0; i < sessions.size(); ++i) {
      LIMBER_TRY(sessions[i]->run());  // brings its weights back into the caches
      double quickest = std::numeric_limits<double>::infinity();
      for (int k = 0; k < kRunsPerTurn; ++k) {
        const double before = now_seconds();
        LIMBER_TRY(sessions[i]->run());
        quickest = std::min(quickest, now_seconds() - before);
      }
      times[i].push_back(quickest);
    }
  }
  line.clear();
  TurnTimes result;
  for (std::vector<double>& of : times) {
    result.runs = kRunsPerTurn * static_cast<int>(of.size());
    result.medians.push_back(median(std::move(of)));
  }
  return result;
}

}  // namespace limber
