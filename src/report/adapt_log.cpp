#include "report/adapt_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "record/record_file.h"

namespace limber {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;  // of a history

// Takes line after line.
class AdaptLogReader {
 public:
  explicit AdaptLogReader(const std::string& file) : file_(file) {}

  void take(const RecordLine& line) {
    if (line.is<StartRecord>()) add<StartRecord>(line, [&](auto& r) { begin(r); });
    if (line.is<ResumeRecord>()) {
      add<ResumeRecord>(line, [&](auto& r) {
        begin(r);
        log.resumed.push_back(r.step);
      });
    }
    if (line.is<AdaptWindowRecord>())
      add<AdaptWindowRecord>(line, [&](auto& r) { log.windows.push_back(r); });
    if (line.is<AdaptEventRecord>()) add<AdaptEventRecord>(line, [&](auto& r) { log.events.push_back(r); });
    if (line.is<AdaptEndRecord>()) add<AdaptEndRecord>(line, [&](auto& r) { log.end = r; });
  }

  AdaptLog log;

 private:
  template <typename Record, typename Use>
  void add(const RecordLine& line, const Use& use) {
    if (auto record = line.as<Record>(); record.ok())
      use(*record);
    else
      log.damaged.push_back(fmt::format("{}:{}: {}", file_, line.number, record.status().message()));
  }
  void begin(const RunHeader& header) {
    log.options = header.options;
    log.environment = header.environment;
  }

  const std::string file_;
};

}  // namespace

std::string AdaptLog::option(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? "" : found->second;
}

AdaptSummary summarise(const AdaptLog& log) {
  AdaptSummary sum;
  for (const AdaptWindowRecord& window : log.windows) {
    const auto frames = static_cast<double>(window.frames);
    sum.frames += window.frames;
    if (!window.counts()) continue;
    sum.labelled += window.frames;
    sum.accuracy += frames * window.accuracy;
    sum.frozen += frames * window.frozen;
    sum.estimate_error += frames * std::abs(window.estimate - window.accuracy);
  }
  if (sum.labelled > 0) {
    for (double* value : {&sum.accuracy, &sum.frozen, &sum.estimate_error})
      *value /= static_cast<double>(sum.labelled);
  }
  const std::pair<const char*, int64_t*> counted[] = {
      {"alarm", &sum.alarms},      {"adapted", &sum.adapted},
      {"rejected", &sum.rejected}, {"rolled back", &sum.rolled_back},
      {"returned", &sum.returned}, {"failed", &sum.failed}};
  for (const AdaptEventRecord& event : log.events) {
    for (const auto& [what, count] : counted) *count += event.what == what ? 1 : 0;
  }
  return sum;
}

bool is_adapt_run(const std::string& path) {
  const auto history = read_records(path + "/history.jsonl");
  return history.ok() && !history->lines.empty() && history->lines.front().job == "adapt";
}

std::vector<std::string> adapt_runs_in(const std::string& path) {
  std::vector<std::string> runs;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    if (entry.is_directory(ignored) && is_adapt_run(entry.path().string()))
      runs.push_back(entry.path().string());
  }
  const auto key = [](const std::string& run) {
    const std::string name = std::filesystem::path(run).filename().string();
    return std::pair(name != "none", name);
  };
  std::sort(runs.begin(), runs.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return runs;
}

AdaptLog parse_adapt_history(std::string_view text, const std::string& file) {
  RecordFile records = parse_records(text, file);
  AdaptLogReader reader(file);
  for (const RecordLine& line : records.lines) reader.take(line);
  AdaptLog log = std::move(reader.log);
  log.damaged.insert(log.damaged.begin(), records.damaged.begin(), records.damaged.end());
  return log;
}

Result<AdaptLog> read_adapt_run(const std::string& path, const FileSystem& files) {
  const std::string file = path + "/history.jsonl";
  LIMBER_ASSIGN(const std::string text, files.read(file, kMostBytes));
  AdaptLog log = parse_adapt_history(text, file);
  if (log.windows.empty()) return corrupt("{}: no window of a stream that was followed", file);
  log.path = path;
  const std::filesystem::path folder(path);
  log.name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  return log;
}

}  // namespace limber
