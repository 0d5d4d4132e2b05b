// What others do with the same machine: shares that are fixed for the window, every model as it is.
#pragma once

#include <span>
#include <vector>

#include "sched/application.h"

namespace limber::sched {

// A share of the machine for answering and one for retraining; retraining starts when the window does, and
// what it had goes to those that answer once it has ended.
struct Allotment {
  size_t option = 0;
  bool retrain = false;
  double answering = 0, retraining = 0;
};

// Mean accuracy of each application over the window. Those that are late in answering skip images: for them
// the last answer counts, which is right less often. `delay_s` of the window is over before retraining
// starts.
std::vector<double> accuracies_of(std::span<const Application> applications, const Window& window,
                                  std::span<const Allotment> allotments, double delay_s = 0);
// When each retraining ends, as above; beyond the window: it does not.
std::vector<double> ends_of(std::span<const Application> applications, const Window& window,
                            std::span<const Allotment> allotments, double delay_s = 0);

// Accuracy of answers when only one of `every` images is looked at, by that of all. Ekya's figures.
double skipping_factor(double every);

// The whole model, retrained as long as there is an option for; of those that keep latency, if any does.
size_t fixed_option(const Application& application);

// Nobody retrains, each answers with its fixed option.
std::vector<Allotment> no_retraining(std::span<const Application> applications);

// Everybody retrains its fixed option on an equal share, of which its answering comes first.
std::vector<Allotment> uniform(std::span<const Application> applications);

// Ekya's thief: equal shares of all jobs that answer or retrain; then each takes from each other what is
// best, three times, where everybody retrains the whole model as is best for what it has. Sees what
// micro-profiling found, `delay_s` of it.
std::vector<Allotment> thief(std::span<const Application> found, const Window& window, double delay_s);

// What micro-profiling takes of each window: 5 of 30 epochs on a tenth of the data for each way to retrain
// the whole model.
double profiling_seconds(std::span<const Application> applications, const Window& window);

}  // namespace limber::sched
