#include "report/run_log.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace limber {
namespace {

using nlohmann::json;

constexpr size_t kLargestHistory = size_t{256} << 20;
constexpr size_t kLargestLine = size_t{16} << 20;
constexpr size_t kMostTensors = 100'000;
constexpr uint64_t kLargestCount = uint64_t{1} << 53;

// The fields of one line; remembers the first that is not what it should be.
class LineFields {
 public:
  explicit LineFields(const json& object) : object_(object) {}

  int64_t count(const char* key, bool required) {
    const json* field = find(key, required);
    if (field == nullptr) return 0;
    if (field->is_number_unsigned() && field->get<uint64_t>() <= kLargestCount)
      return static_cast<int64_t>(field->get<uint64_t>());
    complain("'{}' should be a whole number that is not negative", key);
    return 0;
  }

  // null is what a number that is none was written as.
  std::optional<double> number(const char* key) {
    const json* field = find(key, false);
    if (field == nullptr || field->is_null()) return std::nullopt;
    if (field->is_number()) return field->get<double>();
    complain("'{}' should be a number", key);
    return std::nullopt;
  }

  double seconds(const char* key) {
    find(key, true);
    const std::optional<double> value = number(key);
    if (value && *value >= 0) return *value;
    complain("'{}' should be a number of seconds", key);
    return 0;
  }

  std::vector<double> numbers(const char* key) {
    std::vector<double> values;
    for (const json& item : array(key)) {
      if (!item.is_number() && !item.is_null()) complain("'{}' should have numbers only", key);
      values.push_back(item.is_number() ? item.get<double>() : 0);
    }
    return values;
  }

  std::vector<size_t> indices(const char* key) {
    std::vector<size_t> values;
    for (const json& item : array(key)) {
      const bool good = item.is_number_unsigned() && item.get<uint64_t>() < kMostTensors;
      if (!good) complain("'{}' should have numbers of tensors only", key);
      values.push_back(good ? static_cast<size_t>(item.get<uint64_t>()) : 0);
    }
    if (std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) != values.end())
      complain("'{}' should be ascending", key);
    return values;
  }

  std::vector<std::string> names(const char* key) {
    std::vector<std::string> values;
    for (const json& item : array(key)) {
      if (!item.is_string()) complain("'{}' should have texts only", key);
      values.push_back(item.is_string() ? item.get<std::string>() : "");
    }
    return values;
  }

  RunTexts texts(const char* key) {
    RunTexts values;
    const json* field = find(key, false);
    if (field == nullptr) return values;
    if (!field->is_object()) complain("'{}' should be an object", key);
    for (const auto& [name, value] : field->items()) {
      if (value.is_string()) values[name] = value.get<std::string>();
    }
    return values;
  }

  const std::string& problem() const { return problem_; }

 private:
  void complain(fmt::format_string<const char*&> format, const char* key) {
    if (problem_.empty()) problem_ = fmt::format(format, key);
  }
  const json* find(const char* key, bool required) {
    const auto it = object_.find(key);
    if (it != object_.end()) return &*it;
    if (required) complain("there is no '{}'", key);
    return nullptr;
  }
  const json& array(const char* key) {
    static const json kNone = json::array();
    const json* field = find(key, true);
    if (field == nullptr) return kNone;
    if (!field->is_array()) {
      complain("'{}' should be a list", key);
      return kNone;
    }
    if (field->size() <= kMostTensors) return *field;
    complain("'{}' is too long", key);
    return kNone;
  }

  const json& object_;
  std::string problem_;
};

// Takes line after line; each either becomes part of the log as a whole or not at all.
class HistoryReader {
 public:
  // What is wrong with the line, if anything.
  std::string take(std::string_view line) {
    if (line.size() > kLargestLine) return fmt::format("longer than {} bytes", kLargestLine);
    const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded()) return "not JSON";
    if (!object.is_object()) return "not a JSON object";
    const auto kind = object.find("kind");
    if (kind == object.end() || !kind->is_string()) return "there is no 'kind'";
    LineFields fields(object);
    const int64_t step = fields.count("step", false);
    if (*kind == "start" || *kind == "resume") return take_header(fields, step, *kind == "resume");
    if (*kind == "tensors") return take_tensors(fields);
    if (*kind == "epoch") return take_epoch(fields, step);
    if (*kind == "selection") return take_selection(fields, step);
    if (*kind == "choice_end") return take_choice(fields, step);
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
  static std::string add(std::vector<Record>& list, Record record, const LineFields& fields) {
    if (!fields.problem().empty()) return fields.problem();
    if (!list.empty() && list.back().step > record.step)
      return fmt::format("step {} comes after step {}", record.step, list.back().step);
    list.push_back(std::move(record));
    return {};
  }

  std::string take_header(LineFields& fields, int64_t step, bool resume) {
    RunTexts options = fields.texts("options"), environment = fields.texts("environment");
    if (!fields.problem().empty()) return fields.problem();
    log_.begun = true;
    log_.options = std::move(options);
    log_.environment = std::move(environment);
    if (resume) log_.resumed.push_back(step);
    return {};
  }

  std::string take_tensors(LineFields& fields) {
    std::vector<std::string> names = fields.names("names");
    if (!fields.problem().empty()) return fields.problem();
    if (names.empty()) return "'names' is empty";
    if (count_ > 0 && count_ != names.size())
      return fmt::format("names {} tensors; other lines are about {}", names.size(), count_);
    count_ = names.size();
    log_.tensors = std::move(names);
    return {};
  }

  std::string take_epoch(LineFields& fields, int64_t step) {
    EpochRecord record{
        .epoch = fields.count("epoch", true), .step = step, .seconds = fields.seconds("seconds")};
    record.loss = fields.number("loss");
    record.accuracy = fields.number("accuracy");
    record.val_loss = fields.number("val_loss");
    record.val_accuracy = fields.number("val_accuracy");
    return add(log_.epochs, record, fields);
  }

  std::string take_selection(LineFields& fields, int64_t step) {
    SelectionRecord record{
        .step = step, .chosen = fields.indices("chosen"), .importance = fields.numbers("importance")};
    record.rho = fields.number("rho");
    record.share = fields.number("share");
    const auto predicted = fields.number("predicted_s"), full = fields.number("full_s");
    if (!record.share && predicted && full && *full > 0) record.share = *predicted / *full;
    record.arena_bytes = fields.number("arena_bytes");
    record.left = fields.count("left", false);
    record.returned = fields.count("returned", false);
    const size_t count = record.importance.size();
    if (fields.problem().empty()) {
      if (count == 0) return "'importance' is empty";
      if (count_ > 0 && count_ != count)
        return fmt::format("is about {} tensors; other lines are about {}", count, count_);
      if (!record.chosen.empty() && record.chosen.back() >= count)
        return fmt::format("chooses tensor {} of {}", record.chosen.back(), count);
    }
    std::string problem = add(log_.selections, std::move(record), fields);
    if (problem.empty()) count_ = count;
    return problem;
  }

  std::string take_choice(LineFields& fields, int64_t step) {
    ChoiceRecord record{.step = step,
                        .predicted_s = fields.seconds("predicted_s"),
                        .measured_s = fields.seconds("measured_s")};
    record.full_s = fields.number("full_s");
    record.overhead_s = fields.number("overhead_s");
    return add(log_.choices, record, fields);
  }

  RunLog log_;
  size_t count_ = 0;  // of tensors; 0: not known yet
};

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
  HistoryReader reader;
  std::vector<std::string> damaged;
  size_t number = 0, lines = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    ++lines;
    const std::string problem = reader.take(line);
    if (!problem.empty()) damaged.push_back(fmt::format("{}:{}: {}", file, number, problem));
  }
  if (lines == 0) return corrupt("{} is empty: the training has recorded nothing", file);
  if (!damaged.empty() && damaged.size() == lines)
    return corrupt("{}; no other line of the file can be read either", damaged.front());
  if (!reader.told()) return corrupt("{} tells of no training", file);
  RunLog log = reader.finish();
  log.damaged = std::move(damaged);
  return log;
}

Result<RunLog> read_run(const std::string& path, const FileSystem& files) {
  const std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  const std::string file = (folder / "history.jsonl").string();
  auto text = files.read(file, kLargestHistory);
  std::error_code ignored;
  const bool missing = !text.ok() && (text.status().code() == Code::kNotFound ||
                                      !std::filesystem::is_directory(folder, ignored));
  if (missing)
    return error(Code::kNotFound, "{} is not the folder of a training: there is no {}", path, file);
  if (!text.ok()) return text.status();
  LIMBER_ASSIGN(RunLog log, parse_history(*text, file));
  log.path = path;
  const auto name = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  log.name = name.empty() || name == "." || name == ".." ? path : name.string();
  return log;
}

}  // namespace limber
