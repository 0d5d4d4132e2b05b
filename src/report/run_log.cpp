#include "report/run_log.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "record/record_file.h"

namespace limber {
namespace {

// Takes line after line; each either becomes part of the log as a whole or not at all.
class LogReader {
 public:
  // What is wrong with the line, if anything.
  std::string take(const RecordLine& line) {
    if (line.is<StartRecord>()) return take_as<StartRecord>(line);
    if (line.is<ResumeRecord>()) return take_as<ResumeRecord>(line);
    if (line.is<TensorsRecord>()) return take_as<TensorsRecord>(line);
    if (line.is<EpochRecord>()) return take_as<EpochRecord>(line);
    if (line.is<SelectionRecord>()) return take_as<SelectionRecord>(line);
    if (line.is<ChoiceRecord>()) return take_as<ChoiceRecord>(line);
    return {};
  }

  // Whether any line told of a training.
  bool told() const {
    return log_.begun || !log_.epochs.empty() || !log_.selections.empty() || !log_.choices.empty();
  }

  RunLog finish() {
    log_.named = !log_.tensors.empty();
    for (size_t k = log_.tensors.size(); k < count_; ++k) log_.tensors.push_back(fmt::format("tensor {}", k));
    return std::move(log_);
  }

 private:
  template <typename Record>
  std::string take_as(const RecordLine& line) {
    auto record = line.as<Record>();
    return record.ok() ? add(*std::move(record)) : record.status().message();
  }

  template <typename Record>
  static std::string append(std::vector<Record>& list, Record record) {
    if (!list.empty() && list.back().step > record.step)
      return fmt::format("step {} comes after step {}", record.step, list.back().step);
    list.push_back(std::move(record));
    return {};
  }

  std::string add(const RunHeader& header) {
    log_.begun = true;
    log_.options = header.options;
    log_.environment = header.environment;
    return {};
  }

  std::string add(const ResumeRecord& header) {
    log_.resumed.push_back(header.step);
    return add(static_cast<const RunHeader&>(header));
  }

  std::string add(TensorsRecord record) {
    if (count_ > 0 && count_ != record.names.size())
      return fmt::format("names {} tensors; other lines are about {}", record.names.size(), count_);
    count_ = record.names.size();
    log_.tensors = std::move(record.names);
    return {};
  }

  std::string add(EpochRecord record) { return append(log_.epochs, std::move(record)); }

  std::string add(SelectionRecord record) {
    const size_t count = record.importance.size();
    if (count_ > 0 && count_ != count)
      return fmt::format("is about {} tensors; other lines are about {}", count, count_);
    for (double& importance : record.importance) {
      if (!std::isfinite(importance)) importance = 0;
    }
    if (!record.share && record.predicted_s && record.full_s && *record.full_s > 0)
      record.share = *record.predicted_s / *record.full_s;
    std::string problem = append(log_.selections, std::move(record));
    if (problem.empty()) count_ = count;
    return problem;
  }

  std::string add(ChoiceRecord record) { return append(log_.choices, std::move(record)); }

  RunLog log_;
  size_t count_ = 0;  // of tensors; 0: not known yet
};

Result<RunLog> log_of(const RecordFile& records, const std::string& file) {
  if (records.lines.empty() && records.damaged.empty())
    return corrupt("{} is empty: the training has recorded nothing", file);
  LogReader reader;
  std::vector<std::string> damaged = records.damaged;
  for (const RecordLine& line : records.lines) {
    const std::string problem = reader.take(line);
    if (!problem.empty()) damaged.push_back(fmt::format("{}:{}: {}", file, line.number, problem));
  }
  if (damaged.size() == records.lines.size() + records.damaged.size())
    return corrupt("{}; no other line of the file can be read either", damaged.front());
  if (!reader.told()) return corrupt("{} tells of no training", file);
  RunLog log = reader.finish();
  log.damaged = std::move(damaged);
  return log;
}

}  // namespace

std::string RunLog::option(const std::string& key) const {
  const auto it = options.find(key);
  return it == options.end() ? "" : it->second;
}

int64_t RunLog::last_step() const {
  int64_t last = resumed.empty() ? 0 : resumed.back();
  if (!epochs.empty()) last = std::max(last, epochs.back().step);
  if (!selections.empty()) last = std::max(last, selections.back().step);
  if (!choices.empty()) last = std::max(last, choices.back().step);
  return last;
}

Result<RunLog> parse_history(std::string_view text, const std::string& file) {
  return log_of(parse_records(text, file), file);
}

Result<RunLog> read_run(const std::string& path, const FileSystem& files) {
  const std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  const std::string file = (folder / "history.jsonl").string();
  const auto records = read_records(file, files);
  std::error_code ignored;
  const bool missing = !records.ok() && (records.status().code() == Code::kNotFound ||
                                         !std::filesystem::is_directory(folder, ignored));
  if (missing)
    return error(Code::kNotFound, "{} is not the folder of a training: there is no {}", path, file);
  if (!records.ok()) return records.status();
  LIMBER_ASSIGN(RunLog log, log_of(*records, file));
  log.path = path;
  const auto name = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  log.name = name.empty() || name == "." || name == ".." ? path : name.string();
  return log;
}

}  // namespace limber
