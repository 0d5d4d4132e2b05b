// limber elastify: from a model to one that can change its shape.
#include <fmt/core.h>

#include <charconv>
#include <set>
#include <sstream>

#include "cli/commands.h"
#include "cli/elastify_work.h"
#include "cli/image_arguments.h"
#include "cli/json.h"
#include "cli/table.h"
#include "cli/units.h"
#include "supernet/expand/own_copy.h"

namespace limber {
namespace {

struct Counts {
  size_t blocks = 0, alternatives = 0;
  double bytes = 0, base_bytes = 0;
};

Result<Counts> count(const ElasticModel& model) {
  Counts counts{model.blocks.size(), 0, 0, 0};
  std::set<std::string> names;
  for (const Block& block : model.blocks) {
    counts.alternatives += block.alternatives.size() - 1;
    for (const Alternative& alternative : block.alternatives) {
      for (std::string& name : parameters_of(alternative.graph)) names.insert(std::move(name));
    }
  }
  const auto add = [&](const std::string& name, double& to) -> Status {
    LIMBER_ASSIGN(const TensorType type, model.params->type(name));
    to += static_cast<double>(type.bytes());
    return {};
  };
  for (const std::string& name : names) LIMBER_TRY(add(name, counts.bytes));
  for (const std::string& name : parameters_of(model.base)) LIMBER_TRY(add(name, counts.base_bytes));
  return counts;
}

void print_blocks(const ElasticModel& model) {
  Table table({{"block"}, {"alternative"}, {"blocks", true}, {"error", true}});
  for (const Block& block : model.blocks) {
    for (const Alternative& alternative : block.alternatives) {
      if (alternative.name == "original") continue;
      table.add({block.name, alternative.name, fmt::format("{}", alternative.span),
                 is_copy(alternative) ? "-" : fmt::format("{:.4f}", alternative.error)});
    }
  }
  fmt::print("{}", table.text());
}

Json tuned_json(const std::vector<TunedVariant>& judged) {
  Json list = Json::array();
  for (const TunedVariant& one : judged)
    list.push(Json::object({{"variant", print(one.variant)}, {"accuracy", one.accuracy}}));
  return list;
}

Status report(const ElastifyCommand& options, const ElastifyOutcome& outcome) {
  const ElasticModel& model = outcome.folder.model;
  const std::vector<TunedVariant>& judged = outcome.judged;
  LIMBER_ASSIGN(const Counts counts, count(model));
  if (options.json) {
    Json out = Json::object({{"folder", options.output},
                             {"blocks", counts.blocks},
                             {"alternatives", counts.alternatives},
                             {"variants", count_variants(model)},
                             {"size_ratio", counts.bytes / counts.base_bytes},
                             {"taught_s", outcome.seconds},
                             {"stopped", outcome.stopped}});
    out.set("tuned", tuned_json(judged));
    fmt::print("{}\n", out.text());
    return {};
  }
  print_blocks(model);
  fmt::print("{} blocks, {} alternatives, {:.3g} variants; {:.2f} times the size of the model\n",
             counts.blocks, counts.alternatives, count_variants(model), counts.bytes / counts.base_bytes);
  for (size_t i = 1; i < judged.size(); ++i)
    fmt::print("tuned {}: {:.2f} % right, the original {:.2f} %\n", print(judged[i].variant),
               100 * judged[i].accuracy, 100 * judged[0].accuracy);
  fmt::print("next: limber search {} --data {} --latency 60%\n", options.output, options.data);
  return {};
}

// "80%,60%"
std::string parse_shares(const std::string& text, std::vector<double>& to) {
  to.clear();
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    double percent = 0;
    const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), percent);
    const bool ends = std::string_view(stop, static_cast<size_t>(word.data() + word.size() - stop)) == "%";
    if (problem != std::errc() || !ends || !(percent > 0 && percent <= 100))
      return fmt::format("'{}' should be a share of the original's latency, as in 60%", word);
    to.push_back(percent / 100);
  }
  return to.empty() ? "there should be a share of the original's latency, as in 60%" : "";
}

Result<int> elastify(ElastifyCommand& options) {
  LIMBER_ASSIGN(const ElastifyOutcome outcome, run_elastify(options));
  LIMBER_TRY(report(options, outcome));
  if (!outcome.stopped) return kExitDone;
  fmt::print(stderr, "limber: stopped after {:.0f} s of teaching; the same command with --resume goes on\n",
             outcome.seconds);
  return kExitFailed;
}

}  // namespace

void declare_elastify(Arguments& arguments, ElastifyCommand& o) {
  add_common(arguments, o);
  arguments.text("-d,--data", o.data, "DATA", "Images, with labels or without. See docs/training.md",
                 Arguments::Need::kRequired);
  arguments.text("-o,--output", o.output, "DIR", "Folder of the elastic model", Arguments::Need::kRequired);
  arguments.flag("--resume", o.resume, "Go on with what is in DIR");
  arguments.parsed("--budget", "TIME",
                   "How long alternatives are taught and tuned, as in 90s or 20min; default 10min",
                   [&o](const std::string& text) { return parse_seconds(text, o.seconds); });
  arguments.number("--lr", o.rate, 1e-7, 1.0, "Learning rate of teaching at the beginning; default 0.001");
  arguments.number("--tune-lr", o.tune_rate, 1e-7, 1.0, "The same of tuning; default 0.001");
  arguments.parsed("--tune-for", "SHARES",
                   "Shares of the latency for which variants are tuned; default 80%,60%",
                   [&o](const std::string& text) { return parse_shares(text, o.shares); });
  arguments.choice("--labels", o.labels, {"auto", "data", "original"},
                   "What variants are tuned to: labels and the model's answers, or its answers alone; auto "
                   "(default): labels where the data have the model's classes");
  arguments.number("--padding", o.changes.padding, 0, 1024, "Pixels a random cut may reach beyond the image");
  arguments.number("--flip", o.changes.flip, 0.0, 1.0, "Probability of mirroring an image");
  arguments.texts("--operators", o.operators, "NAME", "Kinds of alternatives to try; default all");
  arguments.number("--size-limit", o.size_limit, 1.0, 100.0,
                   "All parameters together by those of the model; default 4.4");
  add_image_arguments(arguments, o.image);
  arguments.choice("--bad-images", o.bad_images, {"fail", "skip"},
                   "Images that cannot be read; default fail");
  add_workers_argument(arguments, o.workers);
  arguments.footer(
      "The model's own blocks stay as they are. Alternatives that are not faster on this machine are left "
      "out.\n"
      "Ctrl-C stops after the batch under way and keeps what was taught.\n"
      "Examples:\n"
      "  limber elastify model.onnx --data photos -o elastic --budget 20min\n"
      "  limber elastify model.onnx --data photos -o elastic --budget 20min --resume");
}

void add_elastify(CommandLine& line) {
  auto options = std::make_shared<ElastifyCommand>();
  Arguments arguments =
      line.add("elastify", "Give a model's blocks cheaper alternatives, taught by the model",
               [options] { return elastify(*options); });
  declare_elastify(arguments, *options);
}

}  // namespace limber
