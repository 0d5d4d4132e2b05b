// The folder of a porting: a folder for each goal, with the model that keeps it and what is known of it.
//
//   NAME/model.onnx   what was made; also of a goal whose accuracy alone is missed
//   NAME/goal.json    what was asked for and what came of it; written last, so a goal that has it is done
//   port.json         the tree, and how far it is
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/model_card.h"
#include "porting/executor.h"
#include "record/fields.h"

namespace limber {

struct GoalRecord {
  std::string name, device, executor;
  std::string asked;    // equal for the same goal of the same model by the same means
  std::string parent;   // goal that it was made from; empty: the model itself
  std::string variant;  // of an elastic model
  std::string refused;  // why it is not kept; empty: it is
  bool made = false;    // is there a model?
  std::optional<double> latency_limit, memory_limit, parameters_limit, accuracy_limit;
  double promised_s = 0;  // by the device's profile
  double measured_s = 0;  // on this machine
  double operations = 0, moved_bytes = 0, memory = 0, parameters = 0;
  std::optional<double> accuracy;
  int64_t steps = 0;
  double way = 0;      // how far the worst constraint had to shrink, in natural logarithms
  double seconds = 0;  // that it took, all included

  PortCost cost() const { return {operations, moved_bytes, memory, parameters}; }
  static void fields(auto& self, auto& field) {
    field("name", self.name);
    field("device", self.device);
    field("executor", self.executor);
    field("asked", self.asked);
    field("parent", self.parent);
    field("variant", self.variant);
    field("refused", self.refused);
    field("made", self.made);
    field("latency_limit", self.latency_limit);
    field("memory_limit", self.memory_limit);
    field("parameters_limit", self.parameters_limit);
    field("accuracy_limit", self.accuracy_limit);
    field("promised_s", self.promised_s);
    field("measured_s", self.measured_s);
    field("operations", self.operations);
    field("moved_bytes", self.moved_bytes);
    field("memory", self.memory);
    field("parameters", self.parameters);
    field("accuracy", self.accuracy);
    field("steps", self.steps);
    field("way", self.way);
    field("seconds", self.seconds);
  }
};

class PortFolder {
 public:
  // Makes the folder where it is not there. kInvalidArgument when it holds a porting and `resume` is not set.
  static Result<PortFolder> open(const std::string& path, bool resume);

  std::string model_of(const std::string& goal) const { return path_ + "/" + goal + "/model.onnx"; }
  // Of a goal that is done; nothing when it is not, or what is there cannot be read.
  std::optional<GoalRecord> find(const std::string& goal) const;
  // What the record's goal was made with, as it is in its file.
  Result<Ported> load(const GoalRecord& record) const;
  // Durable on return.
  Status save_model(const std::string& goal, const Model& model, const ModelCard& card) const;
  Status save(const GoalRecord& record) const;
  Status save_tree(const std::string& text) const;

 private:
  explicit PortFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace limber
