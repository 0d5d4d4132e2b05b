#include <algorithm>
#include <iterator>

#include "io/importer.h"
#include "ops/gradient.h"

namespace limber {

// Most operators become one of ours with the same name, or several with gradients of their own.
bool onnx_io::has_gradient(std::string_view op_type) {
  constexpr std::string_view kNotDifferentiable[] = {"Shape", "Size", "Constant", "ConstantOfShape", "Range"};
  if (std::find(std::begin(kNotDifferentiable), std::end(kNotDifferentiable), op_type) !=
      std::end(kNotDifferentiable))
    return false;
  const auto op = parse_op(op_type);
  return !op || gradient_support(*op) != GradientSupport::kNone;
}

std::vector<SupportedOperator> supported_operators() {
  using namespace onnx_io;
  std::vector<SupportedOperator> list;
  for (const auto part : {elementwise_converters(), layer_converters(), reduce_converters(),
                          shape_converters(), data_converters(), resize_converters(), other_converters()}) {
    for (const Converter& converter : part) {
      list.push_back({std::string(converter.op_type), converter.first_version, converter.last_version,
                      has_gradient(converter.op_type)});
    }
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.op_type < b.op_type; });
  return list;
}

}  // namespace limber
