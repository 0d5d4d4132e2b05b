// What an application's options will bring in a domain, from what they brought in domains like it.
//
// Starts from a guess that the caller has (from a study before it was deployed), takes up what really
// happened, and counts domains the more the nearer they are. How far guesses were off lately corrects options
// that were never tried.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace limber::sched {

struct Expected {
  double before = 0, after = 0;  // accuracy
};

// 0: the same domain. As adapt::distance().
using Distance = std::function<double(int64_t domain)>;

// Of one application. Memory: a few numbers for each domain and option; the oldest domains are forgotten.
class Expectations {
 public:
  explicit Expectations(size_t options) : errors_(options) {}

  // `guess`: by option. REQUIRES: option below their number
  Expected expect(size_t option, const Expected& guess, const Distance& distance) const;

  // What an option really brought in a domain; what is not known is left out. `guess` as it was given then.
  void happened(int64_t domain, size_t option, const Expected& guess, std::optional<double> before,
                std::optional<double> after);

  static constexpr size_t kRemembered = 256;  // observations of each option

 private:
  struct Error {
    int64_t domain = 0;
    std::optional<double> before, after;  // that the guess was too low by
  };
  struct Mean {
    double sum = 0, weight = 0;
  };
  double correction(size_t option, const Distance& distance, std::optional<double> Error::*of) const;

  std::vector<std::vector<Error>> errors_;  // by option, oldest first
};

}  // namespace limber::sched
