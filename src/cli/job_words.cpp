#include "cli/job_words.h"

#include <fmt/format.h>

namespace limber {
namespace {

class Words {
 public:
  Words(const char* command, const JobOptions& options)
      : text_(fmt::format("limber {} {}", command, options.model)), options_(options) {}

  template <typename T>
  Words& add(const char* option, const T& value) {
    text_ += fmt::format(" {} {}", option, value);
    return *this;
  }
  // With what all commands take.
  std::string text() {
    if (options_.threads > 0) add("--threads", options_.threads);
    if (options_.seed > 0) add("--seed", options_.seed);
    return text_;
  }

 private:
  std::string text_;
  const JobOptions& options_;
};

std::string percent_text(double share) { return fmt::format("{:g}%", 100 * share); }

struct Typed {
  std::string operator()(const TrainJobOptions& o) const {
    Words words("train", o);
    if (o.from_scratch) words.add("--init", "random");
    words.add("--data", o.data).add("--val", o.validation).add("--epochs", o.trainer.epochs);
    if (o.rate) words.add("--lr", *o.rate);
    if (o.rho) words.add("--rho", *o.rho);
    if (o.strategy != Strategy::kAuto) words.add("--strategy", strategy_name(o.strategy));
    return words.add("-o", o.output).text();
  }
  std::string operator()(const EvalJobOptions& o) const {
    return Words("eval", o).add("--data", o.data).text();
  }
  std::string operator()(const ElastifyJobOptions& o) const {
    std::string shares;
    for (const double share : o.shares) shares += (shares.empty() ? "" : ",") + percent_text(share);
    return Words("elastify", o)
        .add("--data", o.data)
        .add("--budget", fmt::format("{:g}s", o.budget))
        .add("--tune-for", shares)
        .add("-o", o.output)
        .text();
  }
  std::string operator()(const SearchJobOptions& o) const {
    return Words("search", o)
        .add("--data", o.source.data)
        .add("--latency", percent_text(o.latency_share))
        .add("--margin", o.margin)
        .add("--images", o.source.images)
        .add("--evaluations", o.evaluations)
        .text();
  }
  std::string operator()(const ExportJobOptions& o) const {
    Words words("export", o);
    if (!o.variant.empty()) words.add("--variant", o.variant);
    return words.add("-o", o.output).text();
  }
};

}  // namespace

std::string command_line(const DemoCall& call) { return std::visit(Typed(), call); }

}  // namespace limber
