// A server under load: how fast it answers, how often too late, and how right.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "jobs/judged_images.h"
#include "jobs/source.h"
#include "serve/loadgen/client.h"
#include "serve/loadgen/schedule.h"
#include "serve/loadgen/summary.h"

namespace limber {

struct LoadgenJobOptions {
  std::string url;             // "http://HOST:PORT"
  std::string model, version;  // model empty: the only one there; version empty: the newest
  // Open loop: `rate` for `seconds`, or `phases` one after the other where there are any.
  double rate = 100;  // requests a second
  double seconds = 10;
  std::vector<LoadPhase> phases;
  Arrivals arrivals = Arrivals::kPoisson;
  int closed = 0;  // above 0: so many callers that ask again when they were answered, for `seconds`
  int connections = 64;
  double deadline = 0;        // seconds from when a request was due; 0: none
  bool send_deadline = true;  // as the request's timeout
  double give_up = 10;        // seconds after which a request counts as lost
  double malformed = 0;       // share
  Encoding encoding = Encoding::kBinary;
  std::string data;            // labelled images to send; empty: random numbers
  Split split = Split::kTest;  // where the data have parts
  int64_t images = 1000;       // at most; drawn by seed, then sent over and over
  std::string like;     // model whose record says what images become and what classes are; may be empty
  ImageOptions image;   // for models without such a record
  std::string records;  // CSV file to write every request to; empty: none
  uint64_t seed = 0;
};
Status check(const LoadgenJobOptions& job);

struct LoadgenOutcome {
  LoadTarget target;
  ModelMetadata model;
  LoadSummary summary;
  std::vector<std::string> variants;  // as LoadSummary::variants
  std::map<std::string, LoadProblem> problems;
  std::map<std::string, int64_t> malformed;  // kinds that got no 4xx
  JudgedImages images;                       // count 0: random numbers were sent
  double started_unix = 0, seconds = 0;
  int64_t connections = 0;
  bool stopped = false;
};

// Stopped, it reports on what was sent until then.
Result<LoadgenOutcome> run_loadgen(const LoadgenJobOptions& job, const JobControl& control = {});

// One line for each request: due_s,sent_s,done_s,status,variant,predicted,label,malformed. Times that there
// are not, unknown classes and variants are empty.
std::string records_csv(const LoadLog& log);

}  // namespace limber
