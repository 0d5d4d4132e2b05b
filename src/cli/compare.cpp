// limber compare: two models side by side.
#include <fmt/format.h>

#include "base/show.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/elastic_arguments.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/table.h"
#include "jobs/compare_job.h"
#include "jobs/json.h"

namespace limber {
namespace {

struct CompareCommand {
  CompareJobOptions job;
  bool json = false;
};

std::string share_text(double of, double whole) { return whole > 0 ? show_percent(of / whole) : ""; }

// "+1.20 points (95 %: -0.3 to 2.7)"
std::string gain_text(const CompareOutcome& outcome) {
  const Interval interval = outcome.gain_95();
  return fmt::format("{:+.2f} points ({:+.1f} to {:+.1f})", 100 * outcome.gain(), 100 * interval.low,
                     100 * interval.high);
}

void print_table(const CompareOutcome& outcome) {
  const ComparedModel &a = outcome.a, &b = outcome.b;
  Table table({{""}, {"A", true}, {"B", true}, {"B against A", true}});
  if (outcome.labelled)
    table.add({"accuracy", show_accuracy(*a.accuracy, outcome.images.count),
               show_accuracy(*b.accuracy, outcome.images.count), gain_text(outcome)});
  table.add({"latency", show_seconds(a.seconds), show_seconds(b.seconds), share_text(b.seconds, a.seconds)});
  const auto bytes = [&](const char* name, uint64_t of_a, uint64_t of_b) {
    const auto x = static_cast<double>(of_a), y = static_cast<double>(of_b);
    table.add({name, show_bytes(x), show_bytes(y), share_text(y, x)});
  };
  table.add({"operations", show_count(a.flops), show_count(b.flops), share_text(b.flops, a.flops)});
  table.add({"parameters", show_count(static_cast<double>(a.parameters)),
             show_count(static_cast<double>(b.parameters)),
             share_text(static_cast<double>(b.parameters), static_cast<double>(a.parameters))});
  bytes("size of parameters", a.parameter_bytes, b.parameter_bytes);
  bytes("planned memory", a.memory_bytes, b.memory_bytes);
  fmt::print("A: {}\nB: {}\n\n{}", a.name, b.name, table.text());
  const int64_t count = outcome.images.count;
  if (count == 0) return;
  fmt::print("\nof one mind on {} of {}\n",
             show_accuracy(static_cast<double>(outcome.same) / static_cast<double>(count), count),
             outcome.images.text());
  if (!outcome.labelled) return;
  fmt::print("right: both {}, A alone {}, B alone {}, none {}\n", outcome.both, outcome.only_a,
             outcome.only_b, count - outcome.both - outcome.only_a - outcome.only_b);
  const Interval gain = outcome.gain_95();
  if (gain.low <= 0 && gain.high >= 0)
    fmt::print("these images do not tell which of the two is right more often\n");
}

Json model_json(const ComparedModel& model, int64_t images) {
  Json out = Json::object({{"name", model.name},
                           {"seconds", model.seconds},
                           {"flops", model.flops},
                           {"classes", model.classes},
                           {"parameters", model.parameters},
                           {"parameter_bytes", model.parameter_bytes},
                           {"memory_bytes", model.memory_bytes}});
  if (!model.accuracy) return out;
  out.set("accuracy", *model.accuracy);
  out.set("accuracy_95", interval_json(interval_of(*model.accuracy, images)));
  return out;
}

void print_json(const CompareOutcome& outcome) {
  const int64_t count = outcome.images.count;
  Json out = Json::object({{"latency_ratio", outcome.b.seconds / outcome.a.seconds}, {"images", count}});
  out.set("a", model_json(outcome.a, count));
  out.set("b", model_json(outcome.b, count));
  if (count > 0) {
    out.set("judged_on", outcome.images.text());
    out.set("agreement", static_cast<double>(outcome.same) / static_cast<double>(count));
  }
  if (outcome.labelled) {
    out.set("gain", outcome.gain());
    out.set("gain_95", interval_json(outcome.gain_95()));
    out.set("both_right", outcome.both);
    out.set("only_a_right", outcome.only_a);
    out.set("only_b_right", outcome.only_b);
  }
  fmt::print("{}\n", out.text());
}

Result<int> compare(const CompareCommand& options) {
  if (const Status wrong = check(options.job); !wrong.ok()) return usage_error(wrong);
  LIMBER_ASSIGN(const CompareOutcome outcome, on_console(run_compare, options.job));
  options.json ? print_json(outcome) : print_table(outcome);
  return kExitDone;
}

}  // namespace

void add_compare(CommandLine& line) {
  auto options = std::make_shared<CompareCommand>();
  CompareJobOptions& job = options->job;
  Arguments arguments = line.add("compare", "Two models side by side: accuracy, agreement, latency, size",
                                 [options] { return compare(*options); });
  constexpr const char* kHelp =
      "ONNX file, folder of a training, checkpoint or elastic model, or builtin:NAME";
  arguments.text("a", job.a.model, "A", kHelp, Arguments::Need::kRequired);
  arguments.text("b", job.b.model, "B", kHelp, Arguments::Need::kRequired);
  arguments.text("-d,--data", job.data, "DATA", "Images to judge both by; without, sizes and times alone");
  arguments.text("--variant-a", job.a.variant, "VARIANT", "Of A, an elastic model; default its original");
  arguments.text("--variant-b", job.b.variant, "VARIANT", "The same of B");
  arguments.choice<Split>("--split", job.split, {{"train", Split::kTrain}, {"test", Split::kTest}},
                          "Which part, where the data has parts; default test");
  arguments.number("--images", job.images, int64_t{0}, int64_t{100000000},
                   "How many images, drawn by --seed; 0 (default): all");
  arguments.number("--seconds", job.seconds, 0.0, 3600.0, "How long each is timed, about; default 1");
  arguments.number("--batch", job.batch, int64_t{1}, int64_t{1} << 20,
                   "Images at a time while they are judged; default 32");
  arguments.number("--threads", job.threads, 0, 1024, "Threads to use; 0 (default): every core");
  arguments.seed("--seed", job.seed, "Which images, where not all are meant; default 0");
  add_image_arguments(arguments, job.image);
  add_workers_argument(arguments, job.workers);
  arguments.flag("--json", options->json, "Machine-readable output");
  arguments.footer(
      "Both are timed in turns, one image at a time, and judged by the same images. A training's folder and\n"
      "an elastic model know how images are prepared; --size, --crop, --mean and --std are for the others.\n"
      "Examples:\n"
      "  limber compare model.onnx subnet.onnx --data photos\n"
      "  limber compare full elastic --data photos                       two trainings\n"
      "  limber compare shapes shapes --variant-b VARIANT --data photos  an elastic model and a variant");
}

}  // namespace limber
