#include <algorithm>

#include "io/importer.h"

namespace limber::onnx_io {

using onnx::AttributeProto;

std::string NodeContext::name() const {
  if (!node_.name().empty()) return node_.name();
  return node_.output_size() > 0 ? node_.output(0) : node_.op_type();
}

const Binding* NodeContext::binding(int i) const {
  if (i >= node_.input_size() || node_.input(i).empty()) return nullptr;
  return Importer::lookup(frame_, node_.input(i));
}

ValueId NodeContext::in(int i) const {
  const Binding* b = binding(i);
  return b == nullptr ? kNoValue : b->id;
}

void NodeContext::set(int output, ValueId v, ValueId rows, bool row_major) {
  if (!wants(output)) return;
  const std::string& name = node_.output(output);
  frame_.names[name] = {.id = v, .rows = rows, .row_major = row_major};
  const Value& value = importer_.graph_.value(v);
  const bool fresh = value.role == Role::kActivation && importer_.named_.insert(v.index).second;
  if (fresh) importer_.graph_.rename(v, frame_.scoped(name));
}

// --- attributes -----------------------------------------------------------------------------------------

const AttributeProto* NodeContext::find_attr(const char* name) const {
  for (const AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() != name) continue;
    if (attribute.ref_attr_name().empty()) return &attribute;
    const auto it = frame_.attributes.find(attribute.ref_attr_name());
    return it == frame_.attributes.end() ? nullptr : it->second;
  }
  return nullptr;
}

const AttributeProto* NodeContext::typed_attr(const char* name, AttributeProto::AttributeType type) {
  const AttributeProto* attribute = find_attr(name);
  // Writers before IR version 3 left the type out.
  if (attribute == nullptr || attribute->type() == type || attribute->type() == AttributeProto::UNDEFINED) {
    return attribute;
  }
  if (attr_status_.ok()) {
    attr_status_ = corrupt("attribute '{}' is of type {}, expected {}", name,
                           AttributeProto::AttributeType_Name(attribute->type()),
                           AttributeProto::AttributeType_Name(type));
  }
  return nullptr;
}

int64_t NodeContext::i(const char* name, int64_t fallback) {
  const auto* attribute = typed_attr(name, AttributeProto::INT);
  return attribute == nullptr ? fallback : attribute->i();
}

double NodeContext::f(const char* name, double fallback) {
  const auto* attribute = typed_attr(name, AttributeProto::FLOAT);
  return attribute == nullptr ? fallback : static_cast<double>(attribute->f());
}

std::string NodeContext::s(const char* name, std::string_view fallback) {
  const auto* attribute = typed_attr(name, AttributeProto::STRING);
  return attribute == nullptr ? std::string(fallback) : attribute->s();
}

std::vector<int64_t> NodeContext::ints(const char* name) {
  const auto* attribute = typed_attr(name, AttributeProto::INTS);
  if (attribute == nullptr) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<double> NodeContext::floats(const char* name) {
  const auto* attribute = typed_attr(name, AttributeProto::FLOATS);
  if (attribute == nullptr) return {};
  return {attribute->floats().begin(), attribute->floats().end()};
}

Result<std::optional<Tensor>> NodeContext::tensor(const char* name) {
  const auto* attribute = typed_attr(name, AttributeProto::TENSOR);
  if (attribute == nullptr) return std::optional<Tensor>();
  auto tensor = importer_.file_.reader->read(attribute->t());
  if (!tensor.ok()) return tensor.status().in(fmt::format("attribute '{}'", name));
  if (frame_.depth > 0) LIMBER_TRY(importer_.spend(tensor->bytes()));
  return std::optional<Tensor>(*std::move(tensor));
}

// --- values known now -----------------------------------------------------------------------------------

Result<const StaticValue*> NodeContext::require(int input, std::string_view what) {
  const StaticValue* value = importer_.search_static(in(input));
  if (value != nullptr) return value;
  return unsupported("{} must be known at compile time; {}", what, importer_.why_unknown(in(input)));
}

Result<std::vector<Dim>> NodeContext::dims(int input, std::string_view what) {
  LIMBER_ASSIGN(const StaticValue* value, require(input, what));
  if (!is_integer(value->dtype))
    return corrupt("{} is {}, expected integers", what, dtype_name(value->dtype));
  std::vector<Dim> out;
  for (const StaticElement& e : value->elements) out.push_back(std::get<Dim>(e));
  return out;
}

Result<int64_t> NodeContext::constant_dim(const Dim& dim, std::string_view what) const {
  if (dim.is_constant()) return dim.value();
  return unsupported("{} is {}, which must be a number; {}", what, dim.to_string(),
                     importer_.how_to_fix(dim.symbol().name()));
}

Result<std::vector<int64_t>> NodeContext::ints(int input, std::string_view what) {
  LIMBER_ASSIGN(const auto dims, dims(input, what));
  std::vector<int64_t> out;
  for (const Dim& dim : dims) {
    LIMBER_ASSIGN(const int64_t value, constant_dim(dim, what));
    out.push_back(value);
  }
  return out;
}

Result<int64_t> NodeContext::one_int(int input, std::string_view what) {
  LIMBER_ASSIGN(const auto values, ints(input, what));
  if (values.size() != 1) return corrupt("{} has {} elements, expected one", what, values.size());
  return values[0];
}

Result<std::vector<double>> NodeContext::floats(int input, std::string_view what) {
  LIMBER_ASSIGN(const StaticValue* value, require(input, what));
  std::vector<double> out;
  for (const StaticElement& e : value->elements) {
    if (const double* x = std::get_if<double>(&e)) {
      out.push_back(*x);
      continue;
    }
    LIMBER_ASSIGN(const int64_t x, constant_dim(std::get<Dim>(e), what));
    out.push_back(static_cast<double>(x));
  }
  return out;
}

Result<std::optional<std::vector<int64_t>>> NodeContext::ints(const char* attr, int input) {
  if (has(input)) {
    LIMBER_ASSIGN(auto values, ints(input, attr));
    return std::optional(std::move(values));
  }
  if (!has_attr(attr)) return std::optional<std::vector<int64_t>>();
  return std::optional(ints(attr));
}

// --- building -------------------------------------------------------------------------------------------

Result<std::vector<ValueId>> NodeContext::emit_all(OpKind op, std::vector<ValueId> inputs, Attrs attrs,
                                                   int outputs) {
  std::string symbol;
  for (ValueId v : inputs) {
    if (v == kNoValue) continue;
    for (const Dim& d : type(v).shape) {
      if (!d.is_constant() && symbol.empty()) symbol = d.symbol().name();
    }
  }
  auto results = importer_.emit(op, std::move(inputs), std::move(attrs), outputs, frame_.scoped(name()));
  if (results.ok() || symbol.empty() || results.status().code() == Code::kResourceExhausted) return results;
  return Status(results.status().code(),
                fmt::format("{}; if the cause is a symbolic dimension: {}", results.status().message(),
                            importer_.how_to_fix(symbol)));
}

Result<ValueId> NodeContext::emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs) {
  LIMBER_ASSIGN(const auto results, emit_all(op, std::move(inputs), std::move(attrs), 1));
  return results[0];
}

Result<ValueId> NodeContext::reshape(ValueId x, Shape shape) {
  if (type(x).shape == shape) return x;
  return emit(OpKind::kReshape, {x}, {{"shape", std::move(shape)}});
}

ValueId NodeContext::scalar(double value, DType dtype) {
  StaticValue number{dtype, {}, {}};
  if (is_float(dtype)) {
    number.elements.emplace_back(value);
  } else {
    number.elements.emplace_back(Dim(static_cast<int64_t>(value)));
  }
  return constant(tensor_from_static(number));
}

Status NodeContext::lower(OpKind op, std::vector<ValueId> inputs, Attrs attrs) {
  LIMBER_ASSIGN(const auto results,
                emit_all(op, std::move(inputs), std::move(attrs), std::max(outputs(), 1)));
  for (int i = 0; i < outputs(); ++i) set(i, results[static_cast<size_t>(i)]);
  return {};
}

// --- helpers --------------------------------------------------------------------------------------------

Result<int64_t> normal_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return corrupt("axis {} is outside a tensor of rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

Result<std::vector<int64_t>> normal_axes(const std::vector<int64_t>& axes, int rank) {
  std::vector<int64_t> out;
  for (int64_t axis : axes) {
    LIMBER_ASSIGN(const int64_t normal, normal_axis(axis, rank));
    out.push_back(normal);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) return corrupt("an axis is listed twice");
  return out;
}

std::optional<Dim> product(const Shape& shape, int first, int last) {
  std::optional<Dim> result = Dim(1);
  for (int axis = first; axis < last && result; ++axis) result = mul(*result, shape[axis]);
  return result;
}

}  // namespace limber::onnx_io
