// The demonstration, step by step: every number in its report is measured while it runs.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "base/status.h"
#include "report/demo_page.h"

namespace limber {

struct DemoSettings {
  std::string folder;  // made by the story; REQUIRES: it is not there
  std::string model = "builtin:resnet14";
  std::string shifts = "night=0.7";  // the new domain, as synthetic data take it
  uint64_t seed = 0;
  int threads = 0;  // 0: every core
  bool quick = false;
  int base_images = 8000, base_epochs = 6;     // the first training
  int images = 4000, epochs = 16;              // those on the new domain
  double rho = 0.54;                           // of elastic training
  int val_images = 500, judged_images = 2000;  // evaluated after each epoch, and in the end
  double teach = 50;                           // seconds that elastify gets
  std::vector<int> percents = {80, 65, 50};    // budgets
  int searched_images = 500, evaluations = 60;
  double margin = 0.05;      // of a budget that the search leaves free
  double timed_seconds = 3;  // that the subnets are timed at the end
  std::FILE* talk = stdout;  // where the story is told
};

// The same story with less data.
DemoSettings quick_demo();

// kResourceExhausted when stop_asked() ended it; what was done until then is in the folder.
Result<DemoReport> tell_story(const DemoSettings& settings);

}  // namespace limber
