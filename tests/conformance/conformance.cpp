// Runs ONNX's own test suite:
//   limber_conformance [DATA] [--backend ref|cpu|both|export] [--filter TEXT] [--list] [--verbose] [--update]
// --backend export runs what comes back after exporting and importing again, with the reference backend.
// Ends with "N passed, N failed, N skipped". A case in passed.txt that does not pass is a failure;
// --update adds to that list what passes now.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "case.h"

namespace limber::conformance {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string data = "/usr/share/libonnx-testdata/data";
  Runner runner = Runner::kBoth;
  std::string filter;
  bool list = false, verbose = false, update = false;
};

struct Counts {
  int passed = 0, failed = 0, skipped = 0;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--list") {
      options.list = true;
    } else if (arg == "--verbose") {
      options.verbose = true;
    } else if (arg == "--update") {
      options.update = true;
    } else if (arg == "--filter" && has_value) {
      options.filter = argv[++i];
    } else if (arg == "--backend" && has_value) {
      const std::string name = argv[++i];
      const std::map<std::string, Runner> runners = {{"ref", Runner::kReference},
                                                     {"cpu", Runner::kCpu},
                                                     {"both", Runner::kBoth},
                                                     {"export", Runner::kRoundTrip}};
      if (!runners.contains(name)) return false;
      options.runner = runners.at(name);
    } else if (arg[0] != '-') {
      options.data = arg;
    } else {
      return false;
    }
  }
  return true;
}

std::set<std::string> read_pinned() {
  std::set<std::string> names;
  std::ifstream file(LIMBER_PASSED_LIST);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) names.insert(line);
  }
  return names;
}

void write_pinned(const std::set<std::string>& names) {
  std::ofstream file(LIMBER_PASSED_LIST);
  for (const std::string& name : names) file << name << '\n';
}

// "node/test_abs" ...
std::vector<std::string> find_cases(const Options& options) {
  std::vector<std::string> cases;
  for (const char* suite : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    const fs::path folder = fs::path(options.data) / suite;
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = fmt::format("{}/{}", suite, entry.path().filename().string());
      if (name.find(options.filter) != std::string::npos) cases.push_back(name);
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

int run(const Options& options) {
  const std::vector<std::string> cases = find_cases(options);
  if (cases.empty()) {
    fmt::print(stderr, "no cases under {}; install the package libonnx-testdata\n", options.data);
    return 2;
  }
  std::set<std::string> pinned = read_pinned();
  std::map<std::string, Counts> suites;
  Counts total;
  for (const std::string& name : cases) {
    if (options.list) {
      fmt::print("{}\n", name);
      continue;
    }
    CaseResult result = run_case_apart((fs::path(options.data) / name).string(), options.runner, 30);
    if (result.outcome == Outcome::kSkipped && pinned.contains(name)) {
      result = {Outcome::kFailed, "used to pass; now: " + result.reason};
    }
    Counts& suite = suites[name.substr(0, name.find('/'))];
    for (Counts* counts : {&suite, &total}) {
      ++(result.outcome == Outcome::kPassed   ? counts->passed
         : result.outcome == Outcome::kFailed ? counts->failed
                                              : counts->skipped);
    }
    if (result.outcome == Outcome::kPassed && options.update) pinned.insert(name);
    const bool failed = result.outcome == Outcome::kFailed;
    if (failed || (options.verbose && result.outcome == Outcome::kSkipped)) {
      fmt::print("{} {}: {}\n", failed ? "FAILED" : "skipped", name, result.reason);
    }
  }
  if (options.list) return 0;
  if (options.update) write_pinned(pinned);
  for (const auto& [suite, c] : suites) {
    fmt::print("{}: {} of {} passed, {} failed, {} skipped\n", suite, c.passed,
               c.passed + c.failed + c.skipped, c.failed, c.skipped);
  }
  fmt::print("{} passed, {} failed, {} skipped\n", total.passed, total.failed, total.skipped);
  return total.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace limber::conformance

int main(int argc, char** argv) {
  limber::conformance::Options options;
  if (!limber::conformance::parse(argc, argv, options)) {
    fmt::print(stderr,
               "usage: limber_conformance [DATA] [--backend ref|cpu|both|export] [--filter TEXT] [--list] "
               "[--verbose] "
               "[--update]\n");
    return 2;
  }
  return limber::conformance::run(options);
}
