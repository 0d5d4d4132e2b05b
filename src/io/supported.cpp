#include <algorithm>

#include "io/importer.h"

namespace limber {

std::vector<SupportedOperator> supported_operators() {
  using namespace onnx_io;
  std::vector<SupportedOperator> list;
  for (const auto part : {elementwise_converters(), layer_converters(), reduce_converters(),
                          shape_converters(), data_converters(), resize_converters(), other_converters()}) {
    for (const Converter& converter : part) {
      list.push_back({std::string(converter.op_type), converter.first_version, converter.last_version});
    }
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.op_type < b.op_type; });
  return list;
}

}  // namespace limber
