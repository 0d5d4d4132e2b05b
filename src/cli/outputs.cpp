#include "cli/outputs.h"

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

template <typename T>
void push_values(const Tensor& tensor, Json& list) {
  for (const T x : tensor.data<T>()) {
    if constexpr (std::is_floating_point_v<T>) {
      list.push(Json(static_cast<double>(x)));
    } else {
      list.push(Json(static_cast<int64_t>(x)));
    }
  }
}

// False for types that have no numbers.
bool push_values(const Tensor& tensor, Json& list) {
  switch (tensor.dtype()) {
    case DType::kF32:
      push_values<float>(tensor, list);
      return true;
    case DType::kF64:
      push_values<double>(tensor, list);
      return true;
    case DType::kI32:
      push_values<int32_t>(tensor, list);
      return true;
    case DType::kI64:
      push_values<int64_t>(tensor, list);
      return true;
    case DType::kU8:
      push_values<uint8_t>(tensor, list);
      return true;
    default:
      return false;
  }
}

}  // namespace

Json describe_outputs(const std::vector<NamedTensor>& outputs) {
  Json list = Json::array();
  for (const NamedTensor& output : outputs) {
    const Tensor& tensor = output.tensor;
    const auto count = static_cast<size_t>(tensor.shape().elements());
    Json one = Json::object(
        {{"name", output.name}, {"dtype", dtype_name(tensor.dtype())}, {"shape", tensor.shape().dims()}});
    Json values = Json::array();
    if (count > kMostValues) {
      one.set("left_out", fmt::format("{} values, more than {}; -o DIR writes them", count, kMostValues));
    } else if (push_values(tensor, values)) {
      one.set("values", values);
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
