// Finding converters, and function operators of ONNX's own list.
#include <onnx/defs/schema.h>

#include <array>
#include <unordered_map>

#include "io/importer.h"

namespace limber::onnx_io {

const Converter* find_converter(std::string_view op_type) {
  static const auto* const kTable = [] {
    auto* table = new std::unordered_map<std::string_view, const Converter*>;
    for (const auto part : {elementwise_converters(), layer_converters(), reduce_converters(),
                            shape_converters(), data_converters(), resize_converters(), other_converters()}) {
      for (const Converter& converter : part) {
        const bool fresh = table->emplace(converter.op_type, &converter).second;
        LIMBER_ASSERT(fresh);
      }
    }
    return table;
  }();
  const auto it = kTable->find(op_type);
  return it == kTable->end() ? nullptr : it->second;
}

std::string supported_range(const Converter& converter) {
  return fmt::format("opset {} to {}", converter.first_version, converter.last_version);
}

std::string unsupported_reason(const std::string& op_type, const std::string& domain) {
  if (!domain.empty()) return "operators of this domain are not supported";
  const auto starts = [&](std::string_view prefix) { return op_type.rfind(prefix, 0) == 0; };
  const auto has = [&](std::string_view part) { return op_type.find(part) != std::string::npos; };
  if (op_type == "Loop" || op_type == "Scan") return "loops are not supported";
  if (has("Sequence")) return "sequences are not supported";
  if (has("String") || op_type == "TfIdfVectorizer" || op_type == "RegexFullMatch")
    return "strings are not supported";
  if (starts("Optional")) return "optional values are not supported";
  if (has("Quantize") || starts("QLinear") || has("Integer")) return "quantised operators are not supported";
  if (starts("Random") || op_type == "Bernoulli" || op_type == "Multinomial") {
    return "random operators are not supported";
  }
  if (op_type == "LSTM" || op_type == "GRU" || op_type == "RNN")
    return "recurrent operators are not supported";
  return "this operator is not supported in any version";
}

namespace {

// Newer opsets than the library knows: its newest schema, which our table does not know better.
const onnx::OpSchema* find_schema(const std::string& op_type, const std::string& domain, int64_t version) {
  const auto& ranges = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  const auto range = ranges.find(domain);
  if (range == ranges.end() || version < 1 || version > range->second.second) return nullptr;
  return onnx::OpSchemaRegistry::Schema(op_type, static_cast<int>(version), domain);
}

}  // namespace

bool has_function_body(const std::string& op_type, const std::string& domain, int64_t version) {
  const onnx::OpSchema* schema = find_schema(op_type, domain, version);
  return schema != nullptr && (schema->HasFunction() || schema->HasContextDependentFunction());
}

std::unique_ptr<onnx::FunctionProto> function_body(const onnx::NodeProto& node, int64_t version,
                                                   const std::vector<onnx::TypeProto>& types,
                                                   std::vector<onnx::AttributeProto>* defaults) {
  const onnx::OpSchema* schema = find_schema(node.op_type(), normal_domain(node.domain()), version);
  if (schema == nullptr) return nullptr;
  auto body = std::make_unique<onnx::FunctionProto>();
  // ONNX reports what it does not like by throwing.
  try {
    if (schema->HasFunction()) {
      *body = *schema->GetFunction();
    } else {
      const onnx::FunctionBodyBuildContextImpl context(node, types);
      if (!schema->HasContextDependentFunction() || !schema->BuildContextDependentFunction(context, *body))
        return nullptr;
    }
  } catch (const std::exception&) {
    return nullptr;
  }
  for (const auto& [name, attribute] : schema->attributes()) {
    if (attribute.default_value.has_type()) defaults->push_back(attribute.default_value);
  }
  return body;
}

}  // namespace limber::onnx_io
