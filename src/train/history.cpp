#include "train/history.h"

#include <nlohmann/json.hpp>

namespace limber {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kMaxHistory = size_t{256} << 20;

std::string line_of(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// The step a line belongs to; -1 for what is not a line of ours.
int64_t step_of(const std::string& line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("step") || !object["step"].is_number_unsigned()) return -1;
  return object["step"].get<int64_t>();
}

}  // namespace

std::string epoch_line(const EpochReport& report) {
  ordered_json line = {{"kind", "epoch"},
                       {"epoch", report.epoch},
                       {"step", report.step},
                       {"loss", report.loss},
                       {"accuracy", report.accuracy}};
  if (report.validation) {
    line["val_loss"] = report.validation->loss;
    line["val_accuracy"] = report.validation->top1;
    line["val_top5"] = report.validation->top5;
    line["val_seconds"] = report.validation->seconds;
    line["best"] = report.best;
  }
  line["rate"] = report.rate;
  line["seconds"] = report.seconds;
  line["images_per_s"] = report.images_per_second;
  line["skipped"] = report.skipped;
  return line_of(line);
}

std::string header_line(const OptionTexts& options, const OptionTexts& environment, int64_t step) {
  return line_of({{"kind", step == 0 ? "start" : "resume"},
                  {"step", step},
                  {"options", options},
                  {"environment", environment}});
}

Result<History> History::open(const std::string& path, int64_t step, const FileSystem& files) {
  History history(path, files);
  auto old = files.read(path, kMaxHistory);
  if (!old.ok() && old.status().code() != Code::kNotFound) return old.status();
  if (!old.ok() || step == 0) return history;
  for (size_t at = 0, end = 0; at < old->size(); at = end + 1) {
    end = old->find('\n', at);
    if (end == std::string::npos) break;
    const std::string line = old->substr(at, end - at);
    if (const int64_t of = step_of(line); of >= 0 && of <= step) history.text_ += line + "\n";
  }
  return history;
}

Status History::add(const std::string& line) {
  text_ += line + "\n";
  return files_->write(path_, text_);
}

}  // namespace limber
