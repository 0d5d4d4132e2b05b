// From a model to one that can change its shape.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "jobs/judged_images.h"
#include "jobs/source.h"
#include "passes/answers.h"
#include "supernet/teach/chain.h"
#include "variant/elastic_folder.h"

namespace limber {

// What variants are tuned to.
enum class TuneTo : uint8_t {
  kAuto,      // kLabels where the data have the model's classes, else kOriginal
  kLabels,    // labels and the model's answers
  kOriginal,  // the model's answers alone
};

struct ElastifyJobOptions : JobOptions {
  std::string data, output;
  // Images that alternatives are taught on, without their labels, before variants are tuned on `data`; empty:
  // `data`. Of a model that was trained in two steps they may be those of the first.
  std::string teach_data;
  bool resume = false;  // go on with what is in `output`
  // Seconds for everything, from loading to judging and saving; with `resume` those before count too.
  // 0: alternatives are made, and nothing is taught.
  double budget = 600;
  ImageOptions image;
  AugmentOptions changes;                      // random ones
  double rate = 1e-3;                          // of teaching, at the beginning
  double tune_rate = 1.5e-3;                   // of tuning, of the fastest variant
  std::vector<double> shares = whole_range();  // of the latency, for which variants are tuned
  TuneTo tune_to = TuneTo::kAuto;
  // What the model says of an image; nothing: the class where it is a classifier, else values. What is no
  // class is learnt from the model alone, and accuracy is how near variants are to it.
  std::optional<Answers> answers;
  std::vector<std::string> operators;  // kinds of alternatives to try; empty: all
  double size_limit = 2.7;             // all parameters together by those of the model
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = kAutoWorkers;
};
Status check(const ElastifyJobOptions& job);

// A variant that was tuned, and how good it is now.
struct TunedVariant {
  Variant variant;
  double share = 1;  // of the original's latency, as predicted; 0: nobody noted it
  double accuracy = 0;
};

struct ElastifyOutcome {
  ElasticFolder folder;
  size_t alternatives = 0;           // without the originals
  double size_ratio = 1;             // all parameters by those of the model
  double taught_s = 0;               // of teaching and tuning, also by processes before this one
  double seconds = 0;                // of everything, by this process
  std::vector<TunedVariant> judged;  // the original first; empty when nothing was tuned
  JudgedImages images;               // that these accuracies are of: none was learnt from
  double range_accuracy = 0;         // mean over latencies, see range_accuracy(); 0 when nothing was judged
  bool stopped = false;              // what is there is kept
};

// Makes the folder `output`, or goes on with it. Several outputs of the model are joined into one, which
// export and serve take apart again. Before anything is written: kInvalidArgument when the model has no such
// answers; kResourceExhausted when the budget is too small for what teaching needs around it, saying
// how much does, or when it was stopped.
Result<ElastifyOutcome> run_elastify(const ElastifyJobOptions& job, const JobControl& control = {});

}  // namespace limber
