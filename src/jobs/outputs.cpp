#include "jobs/outputs.h"

#include <set>

#include "base/file.h"
#include "tensor/npy.h"

namespace limber {
namespace {

std::string file_name(const std::string& name, std::set<std::string>& taken) {
  std::string clean;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || (c == '.' && !clean.empty());
    clean += plain ? c : '_';
  }
  if (clean.empty()) clean += '_';
  std::string unique = clean;
  for (int i = 1; !taken.insert(unique).second; ++i) unique = fmt::format("{}_{}", clean, i);
  return unique + ".npy";
}

// bool is 0 or 1.
Json numbers(const Tensor& tensor) {
  Json list = Json::array();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    list.push(is_float(tensor.dtype()) ? Json(element_as_double(tensor, i))
                                       : Json(element_as_int(tensor, i)));
  }
  return list;
}

}  // namespace

Json describe_outputs(const std::vector<NamedTensor>& outputs) {
  Json list = Json::array();
  for (const NamedTensor& output : outputs) {
    const Tensor& tensor = output.tensor;
    const auto count = static_cast<size_t>(tensor.shape().elements());
    Json one = Json::object(
        {{"name", output.name}, {"dtype", dtype_name(tensor.dtype())}, {"shape", tensor.shape().dims()}});
    if (count > kMostValues) {
      one.set("left_out", fmt::format("{} values, more than {}; -o DIR writes them", count, kMostValues));
    } else {
      one.set("values", numbers(tensor));
    }
    list.push(one);
  }
  return list;
}

Result<Json> write_outputs(const std::string& folder, const std::vector<NamedTensor>& outputs) {
  Json list = Json::array();
  std::set<std::string> taken;
  for (const NamedTensor& output : outputs) {
    const std::string file = file_name(output.name, taken);
    LIMBER_TRY(write_npy(folder + "/" + file, output.tensor));
    list.push(Json::object({{"name", output.name},
                            {"file", file},
                            {"dtype", dtype_name(output.tensor.dtype())},
                            {"shape", output.tensor.shape().dims()}}));
  }
  LIMBER_TRY(os_files().write(folder + "/outputs.json", list.text() + "\n"));
  return list;
}

}  // namespace limber
