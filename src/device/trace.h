// What a machine's load was, in a file: one DeviceSample a line (record/record_file.h), written by whoever
// watches a machine and played back where the same load is wanted again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/sensor.h"
#include "record/record_file.h"

namespace limber {

// Untrusted. kCorrupt with FILE:LINE for a line that is damaged, breaks a range, or does not come after the
// one before it, and for a file without samples. Half a line at the end, which a crash leaves, is dropped.
// Lines of other kinds are skipped.
Result<std::vector<DeviceSample>> read_trace(const std::string& path, const FileSystem& files = os_files());

// Plays samples back, as fast as it is asked: time is what the samples say.
class TraceSensor : public DeviceSensor {
 public:
  static Result<TraceSensor> open(const std::string& path, const FileSystem& files = os_files());
  // REQUIRES: times ascend
  explicit TraceSensor(std::vector<DeviceSample> samples) : samples_(std::move(samples)) {}

  size_t left() const { return samples_.size() - next_; }
  Result<DeviceSample> sample() override;  // kNotFound when none is left

 private:
  std::vector<DeviceSample> samples_;
  size_t next_ = 0;
};

// Appends to a new file. One that is there is refused: samples of two machines do not make a trace.
class TraceWriter {
 public:
  static Result<TraceWriter> create(const std::string& path, const FileSystem& files = os_files());
  Status add(const DeviceSample& sample) { return writer_.add(sample); }
  Status sync() { return writer_.sync(); }

 private:
  explicit TraceWriter(RecordWriter writer) : writer_(std::move(writer)) {}
  RecordWriter writer_;
};

}  // namespace limber
