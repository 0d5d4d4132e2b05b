#include "elastic/gains.h"

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

// What an update said counts e times less after so many more: long enough for a mean over the noise of
// batches, short enough to follow a training whose whole length is a few hundred.
constexpr double kMemory = 64;
// Earlier updates, as weights count them, for which a tensor's own numbers weigh as much as the norm of its
// gradient: two updates at a momentum of 0.9 that had long been under way.
constexpr double kPrior = 20;

}  // namespace

Gains::Gains(size_t tensors, const OptimizerOptions& optimizer)
    : optimizer_(optimizer),
      has_velocity_(optimizer.kind == OptimizerKind::kSgd && optimizer.momentum > 0),
      seen_(tensors),
      in_row_(tensors, 0) {}

// How many earlier updates a velocity holds, by momentum, that began at zero before so many.
double Gains::momentum_weight(int64_t updates) const {
  const double m = optimizer_.momentum;
  const double sum =
      m < 1 ? (1 - std::pow(m, static_cast<double>(updates))) / (1 - m) : static_cast<double>(updates);
  return (optimizer_.nesterov ? m * m : m) * sum;
}

void Gains::add(const std::vector<size_t>& trained, const std::vector<Effect>& effects, double rate) {
  const double keep = std::exp(-1 / kMemory);
  for (Seen& seen : seen_)
    seen = {keep * seen.lowered, keep * seen.weight, keep * seen.squares, keep * seen.updates};
  std::vector<int64_t> before(in_row_.size(), 0);
  std::swap(before, in_row_);
  for (size_t i = 0; i < trained.size(); ++i) {
    const size_t k = trained[i];
    in_row_[k] = before[k] + 1;
    if (rate <= 0) continue;
    const Effect& effect = effects[i];
    const double of_now = (optimizer_.nesterov ? 1 + optimizer_.momentum : 1) * effect.gradient_squares;
    seen_[k].lowered += has_velocity_ ? effect.gain / rate - of_now : effect.gain / rate;
    seen_[k].weight += has_velocity_ ? momentum_weight(before[k]) : 1;
    seen_[k].squares += effect.gradient_squares;
    seen_[k].updates += 1;
  }
}

std::vector<double> Gains::worth() const {
  double falls = 0, squares = 0;  // of those of which anything is known
  for (const Seen& seen : seen_) {
    if (seen.weight <= 0) continue;
    falls += std::max(seen.lowered / seen.weight, 0.0);
    squares += seen.squares / seen.updates;
  }
  const double by_square = squares > 0 ? falls / squares : 0;
  std::vector<double> worth;
  for (const Seen& seen : seen_) {
    const double prior = seen.updates > 0 ? by_square * seen.squares / seen.updates : 0;
    const double fall = (seen.lowered + kPrior * prior) / (seen.weight + kPrior);
    worth.push_back(std::sqrt(std::max(0.0, fall)));
  }
  return worth;
}

std::vector<std::vector<double>> Gains::state() const {
  std::vector<std::vector<double>> state;
  for (size_t k = 0; k < seen_.size(); ++k)
    state.push_back({seen_[k].lowered, seen_[k].weight, seen_[k].squares, seen_[k].updates,
                     static_cast<double>(in_row_[k])});
  return state;
}

bool Gains::is_state(const std::vector<double>& numbers) {
  constexpr double kMostUpdates = 1e15;  // that a double counts one by one, and an integer holds
  const auto is_number = [](double x) { return std::isfinite(x); };
  return numbers.size() == 5 && std::all_of(numbers.begin(), numbers.end(), is_number) &&
         std::all_of(numbers.begin() + 1, numbers.end(), [](double x) { return x >= 0; }) &&
         numbers[4] <= kMostUpdates;
}

void Gains::set_state(const std::vector<std::vector<double>>& state) {
  for (size_t k = 0; k < seen_.size() && k < state.size(); ++k) {
    seen_[k] = {state[k][0], state[k][1], state[k][2], state[k][3]};
    in_row_[k] = static_cast<int64_t>(state[k][4]);
  }
}

}  // namespace limber
