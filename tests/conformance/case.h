// One case of ONNX's test suite: a folder with a model and sets of inputs and expected outputs.
#pragma once

#include <string>

namespace limber::conformance {

enum class Outcome : char { kPassed = 'P', kFailed = 'F', kSkipped = 'S' };

struct CaseResult {
  Outcome outcome = Outcome::kFailed;
  std::string reason;  // empty when passed
};

// kRoundTrip: what was imported is exported and imported again, then run by the reference backend.
enum class Runner { kReference, kCpu, kBoth, kRoundTrip };

// In this process.
CaseResult run_case(const std::string& folder, Runner runner);
// In a child process: a crash or more than `seconds` is a failure of the case, not of the tool.
CaseResult run_case_apart(const std::string& folder, Runner runner, int seconds);

}  // namespace limber::conformance
