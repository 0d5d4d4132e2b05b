#include "serve/source.h"

#include <algorithm>

namespace limber {
namespace {

bool opens_with(const TensorType& type, const Dim& batch) {
  return type.rank() > 0 && !type.shape[0].is_constant() && type.shape[0] == batch;
}

// The type with `batch` rows.
Result<TensorType> bound(const TensorType& type, const std::string& name, const Dim* batch) {
  std::vector<Dim> dims;
  for (const Dim& dim : type.shape) {
    if (dim.is_constant()) {
      dims.push_back(dim);
      continue;
    }
    const auto one = batch == nullptr ? std::optional<Dim>() : dim.bind(batch->symbol(), 1);
    if (!one || !one->is_constant())
      return invalid(
          "'{}' is {}: dimension '{}' is open, and only a batch may be; 'limber export --dim {}=NUMBER' "
          "fixes it",
          name, type.to_string(), dim.symbol().name(), dim.symbol().name());
    dims.push_back(*one);
  }
  return TensorType{type.dtype, Shape(std::move(dims))};
}

}  // namespace

Result<ServedSignature> signature_of(const Graph& graph) {
  ServedSignature signature;
  if (graph.inputs().empty() || graph.outputs().empty())
    return invalid("a model without inputs or without outputs cannot be served");
  const TensorType& first = graph.type(graph.inputs()[0]);
  const Dim* batch = first.rank() > 0 && !first.shape[0].is_constant() ? &first.shape[0] : nullptr;
  signature.batched = batch != nullptr;
  const auto add = [&](ValueId value, const std::string& name,
                       std::vector<ServedSignature::Port>& to) -> Status {
    const TensorType& type = graph.type(value);
    if (batch != nullptr && !opens_with(type, *batch)) signature.batched = false;
    LIMBER_ASSIGN(TensorType one, bound(type, name, batch));
    to.push_back({name, std::move(one)});
    return {};
  };
  for (const ValueId input : graph.inputs())
    LIMBER_TRY(add(input, graph.value(input).name, signature.inputs));
  for (const Output& output : graph.outputs()) {
    if (output.rows != kNoValue)
      return invalid("output '{}' has as many rows as there are detections; such models are not served yet",
                     output.name);
    LIMBER_TRY(add(output.value, output.name, signature.outputs));
  }
  return signature;
}

}  // namespace limber
