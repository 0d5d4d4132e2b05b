// limber eval: how good a classifier is on a data set.
#include "cli/commands.h"
#include "cli/eval_work.h"
#include "cli/image_arguments.h"
#include "cli/json.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "jobs/classifier.h"

namespace limber {
namespace {

constexpr int64_t kDefaultBatch = 64;

void report(const EvalCommand& options, const Evaluation& e) {
  const double rate = static_cast<double>(e.images) / std::max(e.seconds, 1e-9);
  if (options.json) {
    const Json out = Json::object({{"model", options.model},
                                   {"data", options.data},
                                   {"images", e.images},
                                   {"accuracy", e.top1},
                                   {"top5", e.top5},
                                   {"loss", e.loss},
                                   {"skipped", e.skipped},
                                   {"seconds", e.seconds},
                                   {"images_per_s", rate}});
    fmt::print("{}\n", out.text());
    return;
  }
  fmt::print("{} on {}: {} images in {} ({:.0f} images/s)\n", options.model, options.data, e.images,
             show_seconds(e.seconds), rate);
  fmt::print("accuracy   {:.2f} %\ntop 5      {:.2f} %\nloss       {:.4f}\n", 100 * e.top1, 100 * e.top5,
             e.loss);
  if (e.skipped > 0) fmt::print("skipped    {} images that cannot be read\n", e.skipped);
}

Result<int> evaluate(EvalCommand& options) {
  LIMBER_ASSIGN(const auto result, run_eval(options));
  LIMBER_ASSERT(result.has_value());  // nothing asks to stop
  report(options, *result);
  return kExitDone;
}

}  // namespace

Result<std::optional<Evaluation>> run_eval(EvalCommand& options) {
  if (options.batch == 0) options.batch = kDefaultBatch;
  OpenOptions how{.split = options.split == "test" ? Split::kTest : Split::kTrain};
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(options.model));
  if (recorded) {
    use_recorded(options.image, recorded->input);
    how.expected = recorded->classes;
  }
  LIMBER_ASSIGN(const Classifier classifier, load_classifier(options, options.image));
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data, open_dataset(options.data, how));
  const BuildSpec spec = build_spec(options, false);
  const EvaluationOptions evaluation{
      .batch = options.batch,
      .threads = thread_count(spec),
      .workers = options.workers,
      .input = classifier.input,
      .on_bad_image = options.bad_images == "skip" ? OnBadImage::kSkip : OnBadImage::kFail};
  LIMBER_ASSIGN(const auto evaluator, Evaluator::create(classifier.model.graph, classifier.model.params,
                                                        make_backends(spec), std::move(data), evaluation));
  return evaluator->run(&stop_asked());
}

void declare_eval(Arguments& arguments, EvalCommand& o) {
  add_common(arguments, o);
  arguments.text("-d,--data", o.data, "DATA", "A folder, file or 'synthetic'; see docs/training.md",
                 Arguments::Need::kRequired);
  arguments.choice("--split", o.split, {"train", "test"},
                   "Which part, where the data has parts; default test");
  add_image_arguments(arguments, o.image);
  arguments.choice("--bad-images", o.bad_images, {"fail", "skip"},
                   "Images that cannot be read; default fail");
  add_workers_argument(arguments, o.workers);
  arguments.footer(
      "A training's folder stands for its best checkpoint, which also says how images are prepared.\n"
      "Examples:\n"
      "  limber eval model.onnx --data photos --size 256 --crop 224 --mean 0.485,0.456,0.406 --std "
      "0.229,0.224,0.225\n"
      "  limber eval RUN --data photos/test --json");
}

void add_eval(CommandLine& line) {
  auto options = std::make_shared<EvalCommand>();
  Arguments arguments = line.add("eval", "Accuracy and loss of a classifier on labelled images",
                                 [options] { return evaluate(*options); });
  declare_eval(arguments, *options);
}

}  // namespace limber
