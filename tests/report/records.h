// History lines as trainings write them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace limber {

inline std::string start_line(const std::string& strategy, const std::string& kind = "start",
                              int64_t step = 0) {
  return fmt::format(
      R"({{"kind":"{}","step":{},"options":{{"strategy":"{}","rho":"0.5","epochs":"3","lr":"0.01"}},)"
      R"("environment":{{"model":"m<1>.onnx","data":"photos","threads":"1","version":"limber\nmore"}}}})"
      "\n",
      kind, step, strategy);
}

inline std::string epoch_text(int64_t epoch, int64_t step, double accuracy, double seconds) {
  return fmt::format(
      R"({{"kind":"epoch","epoch":{},"step":{},"loss":{},"accuracy":0.5,"val_loss":0.9,"val_accuracy":{},)"
      R"("seconds":{},"val_seconds":100}})"
      "\n",
      epoch, step, 2.0 / static_cast<double>(epoch), accuracy, seconds);
}

inline std::string tensors_line(const std::vector<std::string>& names) {
  return fmt::format(R"({{"kind":"tensors","step":0,"names":["{}"]}})"
                     "\n",
                     fmt::join(names, "\",\""));
}

inline std::string selection_text(int64_t step, const std::vector<int>& chosen,
                                  const std::vector<double>& importance) {
  return fmt::format(
      R"({{"kind":"selection","step":{},"rho":0.5,"chosen":[{}],"importance":[{}],"share":0.4,"full_s":0.02,)"
      R"("predicted_s":0.008,"arena_bytes":1048576,"left":2,"returned":1}})"
      "\n",
      step, fmt::join(chosen, ","), fmt::join(importance, ","));
}

inline std::string choice_text(int64_t step, double predicted, double measured) {
  return fmt::format(
      R"({{"kind":"choice_end","step":{},"steps":9,"predicted_s":{},"measured_s":{},"full_s":0.02,"overhead_s":0.1}})"
      "\n",
      step, predicted, measured);
}

// Two epochs of an elastic training over three tensors.
inline std::string elastic_history() {
  return start_line("elastic") + tensors_line({"a.weight", "b<&>.weight", "fc.weight"}) +
         selection_text(16, {1, 2}, {0, 0.5, 1}) + choice_text(40, 0.008, 0.010) +
         epoch_text(1, 40, 0.6, 10) + selection_text(44, {2}, {0.2, 0.1, 1}) + choice_text(80, 0.009, 0.009) +
         epoch_text(2, 80, 0.7, 11);
}

}  // namespace limber
