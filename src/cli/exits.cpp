// limber exits: gives an elastic model exits, and finds the confidence at which they may be taken.
#include <fmt/core.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/elastic_arguments.h"
#include "cli/exit_report.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/say.h"

namespace limber {
namespace {

struct ExitsCommand {
  ExitsJobOptions job;
  double max_drop = 1, storage = 3, sparse = 0;  // in percent
  double latency = 0, latency_share = 0;
  bool json = false;
};

Result<int> exits(ExitsCommand& options) {
  options.job.max_drop = options.max_drop / 100;
  options.job.storage = options.storage / 100;
  options.job.kept_weights = 1 - options.sparse / 100;
  if (const Status wrong = check(options.job); !wrong.ok()) return usage_error(wrong);
  LIMBER_ASSIGN(const ExitsOutcome found, on_console(run_exits, options.job));
  const double within = options.latency > 0 ? options.latency : options.latency_share * found.full_seconds();
  options.json ? print_json(found) : print_tables(found, within);
  if (!found.stopped) return kExitDone;
  say("limber: stopped before exits were taught to the end; --again starts over\n");
  return kExitFailed;
}

}  // namespace

void add_exits_command(CommandLine& line) {
  auto options = std::make_shared<ExitsCommand>();
  ExitsCommand& o = *options;
  ExitsJobOptions& job = o.job;
  Arguments arguments = line.add("exits", "Give an elastic model exits that easy images leave by",
                                 [options] { return exits(*options); });
  add_common(arguments, job, o.json, Arguments::Need::kRequired, kElasticModelHelp);
  arguments.text("-d,--data", job.data, "DATA",
                 "Images that exits are taught on, and judged by those held out", Arguments::Need::kRequired);
  arguments.text(
      "--calibration", job.calibration, "DATA",
      "Images that the confidence is found on; best such that the model was not trained on. Default: "
      "some of --data, held out");
  arguments.number("--max-drop", o.max_drop, 0.0, 100.0, "Points of accuracy that may be lost; default 1");
  arguments.number("--exits", job.count, 1, 16, "How many exits at most; default 2");
  arguments.number("--storage", o.storage, 0.01, 100.0,
                   "Parameters of all exits, in % of the model's, at most; default 3");
  arguments.parsed("--budget", "TIME",
                   "How long all takes, from loading to judging, as in 90s or 20min; default 10min",
                   [&job](const std::string& text) { return parse_seconds(text, job.budget); });
  arguments.flag("--again", job.again, "Make exits anew where there are some");
  arguments.parsed("--latency", "LIMIT", "Also name the best exit within this, as in 60% or 12ms",
                   [&o](const std::string& text) { return parse_latency(text, o.latency, o.latency_share); });
  arguments.choice<ExitBlocks>(
      "--blocks", job.blocks,
      {{"frozen", ExitBlocks::kFrozen}, {"tuned", ExitBlocks::kTuned}, {"subnet", ExitBlocks::kSubnet}},
      "What runs before an exit: the model's own blocks (default), copies tuned with exits, or a "
      "subnet that elastify tuned, after which unsure images start again with the model");
  arguments.choice<TuningOrder>(
      "--order", job.order,
      {{"together", TuningOrder::kTogether},
       {"stages", TuningOrder::kStages},
       {"stages-back", TuningOrder::kStagesBack}},
      "How blocks are tuned: with all exits together (default), or exit after exit and then the end, all "
      "blocks of the model; what is before stays (stages), or learns too unless an exit before gets worse "
      "(stages-back)");
  arguments.choice<Truth>("--labels", job.truth, {{"data", Truth::kData}, {"model", Truth::kOriginal}},
                          "Whose labels count: the data's (default), or what the model says");
  arguments.number("--held", job.held, int64_t{0}, int64_t{1000000},
                   "Images held out for calibration; default a tenth, at most 5000");
  arguments.number("--images", job.images, int64_t{1}, int64_t{1000000},
                   "Images that are timed one by one; default 200");
  arguments.number("--lr", job.rate, 1e-7, 1.0, "Learning rate of exits at the beginning; default 0.003");
  arguments.number("--lr-blocks", job.tuning_rate, 1e-7, 1.0, "The same of tuned blocks; default 0.001");
  arguments.number("--dropout", job.dropout, 0.0, 0.99,
                   "Share of the features that the linear layer of an exit does without, at random, while it "
                   "learns; default 0");
  arguments.number("--sparse", o.sparse, 0.0, 99.0,
                   "Weights of these layers that are left out, in %; saves storage above 50; default 0");
  arguments.number("--flip", job.flip, 0.0, 1.0, "Probability of mirroring an image");
  arguments.number("--padding", job.padding, 0, 1024, "Pixels a random cut may reach beyond the image");
  add_bad_images_argument(arguments, job.on_bad_image);
  add_workers_argument(arguments, job.workers);
  arguments.footer(
      "MODEL is the folder that 'limber elastify' made; it gets the exits, unless it has some. The "
      "confidence\n"
      "is found on images that exits were not taught on, and is kept in the variant table.\n"
      "Examples:\n"
      "  limber exits elastic --data photos --max-drop 1\n"
      "  limber exits elastic --data photos --calibration more-photos --blocks subnet\n"
      "  limber exits elastic --data photos --exits 3 --budget 20min --again --json");
}

}  // namespace limber
