// The demonstration: the other jobs one after the other on built-in data. Every number in its report is
// measured while it runs.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "jobs/elastify_job.h"
#include "jobs/eval_job.h"
#include "jobs/export_job.h"
#include "jobs/search_job.h"
#include "jobs/train_job.h"
#include "report/demo_page.h"

namespace limber {

struct DemoJobOptions {
  std::string folder;  // made by the job; it must not be there
  std::string model = "builtin:resnet14";
  std::string shifts = "night=0.7";  // the new domain, as synthetic data take it
  uint64_t seed = 0;
  int threads = 0;  // 0: every core
  bool quick = false;
  int base_images = 8000, base_epochs = 6;         // the first training
  int images = 4000, epochs = 16;                  // those on the new domain
  double rho = 0.54;                               // of elastic training
  int val_images = 500, judged_images = 2000;      // evaluated after each epoch, and in the end
  double elastify_s = 60;                          // seconds that making it elastic gets
  std::vector<double> budgets = {0.8, 0.65, 0.5};  // shares of the latency
  int searched_images = 500, evaluations = 60;
  double margin = 0.05;      // of a budget that the search leaves free
  double timed_seconds = 3;  // that the subnets are timed at the end
  // Seconds of serving: until a budget is found, then twice idle, busy, idle.
  double finding_s = 3, idle_s = 4, busy_s = 9;
};

// The same story with less data.
DemoJobOptions quick_demo();

// Which of the other jobs a step of the story is.
using DemoCall =
    std::variant<TrainJobOptions, EvalJobOptions, ElastifyJobOptions, SearchJobOptions, ExportJobOptions>;

// Who tells the story. Called from the thread that runs the job.
class DemoTeller {
 public:
  virtual ~DemoTeller() = default;
  virtual void on_chapter(int /*number*/, int /*of*/, const std::string& /*title*/,
                          const std::string& /*why*/) {}
  // Before a step. Returns how the report is to call it.
  virtual std::string on_call(const DemoCall& /*call*/) { return {}; }
  virtual void on_result(const std::string& /*text*/) {}
};

// Also writes report.html and demo.svg into the folder. kResourceExhausted when it was stopped; what was done
// until then is in the folder.
Result<DemoReport> run_demo(const DemoJobOptions& options, const JobControl& control = {},
                            DemoTeller* teller = nullptr);

}  // namespace limber
