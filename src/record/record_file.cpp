#include "record/record_file.h"

#include <algorithm>

namespace limber {
namespace {

constexpr size_t kLargestFile = size_t{256} << 20;  // bytes; an epoch's line has 300
constexpr size_t kLongestLine = size_t{16} << 20;   // bytes; a choice among 100,000 tensors has 2 million
constexpr std::string_view kBlank = " \t\r";

// What every line has, whatever its kind.
struct Envelope {
  std::string kind;
  std::optional<double> time;
  std::optional<int64_t> step;

  static void fields(auto& self, auto& field) {
    field("kind", self.kind);
    field("time", self.time);
    field("step", self.step);
  }
};

// What is wrong with the line, if anything. `job`: of the last header.
std::string take_line(RecordFile& file, std::string_view text, size_t number, std::string& job) {
  if (text.size() > kLongestLine) return fmt::format("longer than {} bytes", kLongestLine);
  auto envelope = parse_fields<Envelope>(text);
  if (!envelope.ok()) return envelope.status().message();
  RecordLine line{number, std::move(envelope->kind), envelope->time, envelope->step, job, std::string(text)};
  if (line.is<StartRecord>() || line.is<ResumeRecord>()) {
    const auto header = line.as<RunHeader>();
    if (!header.ok()) return header.status().message();
    line.job = job = header->job;
    line.step = header->step;
  }
  file.lines.push_back(std::move(line));
  return {};
}

// From the end: a header says up to which step what its job did before holds.
void drop_void_lines(RecordFile& file) {
  std::map<std::string, int64_t> holds;  // by job; no entry: all
  const auto is_void = [&](const RecordLine& line) {
    const auto last = holds.find(line.job);
    return line.step && last != holds.end() && *line.step > last->second;
  };
  std::vector<RecordLine> kept;
  while (!file.lines.empty()) {
    RecordLine line = std::move(file.lines.back());
    file.lines.pop_back();
    if (is_void(line)) {
      ++file.voided;
      continue;
    }
    if (line.is<StartRecord>()) holds[line.job] = -1;
    if (line.is<ResumeRecord>()) holds[line.job] = *line.step;
    kept.push_back(std::move(line));
  }
  std::reverse(kept.begin(), kept.end());
  file.lines = std::move(kept);
}

}  // namespace

// --- writing --------------------------------------------------------------------------------------------

// A line without its break is whole if it is JSON: no beginning of a JSON object is one itself.
Result<RecordWriter> RecordWriter::open(const std::string& path, const FileSystem& files) {
  size_t keep = 0;
  bool unbroken = false;
  if (const auto old = files.map(path); old.ok()) {
    const auto bytes = (*old)->bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const size_t end = text.rfind('\n');
    keep = end == std::string_view::npos ? 0 : end + 1;
    const std::string_view rest = text.substr(keep);
    unbroken = !rest.empty() && rest.size() <= kLongestLine && FieldReader::parse(rest).ok();
    if (unbroken) keep = text.size();
  } else if (old.status().code() != Code::kNotFound) {
    return old.status();
  }
  LIMBER_ASSIGN(auto file, files.append_to(path, keep));
  if (unbroken) LIMBER_TRY(file->append("\n"));
  return RecordWriter(std::move(file));
}

Status RecordWriter::add_line(const std::string& line) {
  LIMBER_TRY(file_->append(line + "\n"));
  return now_seconds() - synced_ < kSyncSeconds ? Status() : sync();
}

Status RecordWriter::sync() {
  synced_ = now_seconds();
  return file_->sync();
}

// --- reading --------------------------------------------------------------------------------------------

RecordFile parse_records(std::string_view text, const std::string& name) {
  RecordFile file;
  std::string job = RunHeader().job;  // old files have no job, and are of trainings
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const bool broken_off = end == std::string_view::npos;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(broken_off ? text.size() : end + 1);
    if (line.find_first_not_of(kBlank) == std::string_view::npos) continue;
    if (broken_off && !FieldReader::parse(line).ok()) {
      file.torn = true;
      break;
    }
    const std::string problem = take_line(file, line, number, job);
    if (!problem.empty()) file.damaged.push_back(fmt::format("{}:{}: {}", name, number, problem));
  }
  drop_void_lines(file);
  return file;
}

Result<RecordFile> read_records(const std::string& path, const FileSystem& files) {
  LIMBER_ASSIGN(const std::string text, files.read(path, kLargestFile));
  return parse_records(text, path);
}

}  // namespace limber
