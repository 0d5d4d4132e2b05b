#include "device/trace.h"

namespace limber {

Result<std::vector<DeviceSample>> read_trace(const std::string& path, const FileSystem& files) {
  LIMBER_ASSIGN(const RecordFile file, read_records(path, files));
  if (!file.damaged.empty())
    return corrupt("{}; a trace has one JSON object a line, as 'limber device --record' writes it",
                   file.damaged.front());
  std::vector<DeviceSample> samples;
  for (const RecordLine& line : file.lines) {
    if (!line.is<DeviceSample>()) continue;
    auto sample = line.as<DeviceSample>();
    if (!sample.ok()) return sample.status().in(fmt::format("{}:{}", path, line.number));
    if (!samples.empty() && sample->time_s <= samples.back().time_s)
      return corrupt("{}:{}: 'time_s' is {}, and {} in the sample before it; expected ascending times", path,
                     line.number, sample->time_s, samples.back().time_s);
    samples.push_back(*std::move(sample));
  }
  if (samples.empty())
    return corrupt("{}: there is no line of kind '{}' in it; 'limber device --record' writes traces", path,
                   DeviceSample::kKind);
  return samples;
}

Result<TraceSensor> TraceSensor::open(const std::string& path, const FileSystem& files) {
  LIMBER_ASSIGN(auto samples, read_trace(path, files));
  return TraceSensor(std::move(samples));
}

Result<DeviceSample> TraceSensor::sample() {
  if (next_ == samples_.size())
    return error(Code::kNotFound, "the trace has ended after {} samples", samples_.size());
  return samples_[next_++];
}

Result<TraceWriter> TraceWriter::create(const std::string& path, const FileSystem& files) {
  if (const auto old = files.map(path); old.ok() && !(*old)->bytes().empty())
    return invalid("{} is there already; remove it, or record to another file", path);
  LIMBER_ASSIGN(RecordWriter writer, RecordWriter::open(path, files));
  return TraceWriter(std::move(writer));
}

}  // namespace limber
