#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/file.h"
#include "io/exporter.h"
#include "io/importer.h"

namespace limber::onnx_io {
namespace {

constexpr size_t kInlineLimit = size_t{1} << 31;  // bytes; protobuf's own limit
constexpr size_t kExternalAlignment = 64;         // bytes: mapped tensors begin where vectors can be loaded

void write_type(const TensorType& type, const std::string& name, onnx::ValueInfoProto* info) {
  info->set_name(name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(dtype_to_onnx(type.dtype));
  tensor->mutable_shape();
  for (const Dim& d : type.shape) {
    auto* dim = tensor->mutable_shape()->add_dim();
    if (d.is_constant()) {
      dim->set_dim_value(d.value());
    } else {
      dim->set_dim_param(d.to_string());
    }
  }
}

void write_attribute(const std::string& name, const AttrValue& value, onnx::AttributeProto* out) {
  using onnx::AttributeProto;
  out->set_name(name);
  if (const auto* i = std::get_if<int64_t>(&value)) {
    out->set_type(AttributeProto::INT);
    out->set_i(*i);
  } else if (const auto* f = std::get_if<double>(&value)) {
    out->set_type(AttributeProto::FLOAT);
    out->set_f(static_cast<float>(*f));
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    out->set_type(AttributeProto::STRING);
    out->set_s(*s);
  } else if (const auto* is = std::get_if<std::vector<int64_t>>(&value)) {
    out->set_type(AttributeProto::INTS);
    for (int64_t x : *is) out->add_ints(x);
  } else if (const auto* fs = std::get_if<std::vector<double>>(&value)) {
    out->set_type(AttributeProto::FLOATS);
    for (double x : *fs) out->add_floats(static_cast<float>(x));
  } else {
    LIMBER_UNREACHABLE();
  }
}

// The bytes are elsewhere.
void refer(onnx::TensorProto& tensor, const std::string& file, uint64_t offset, size_t bytes) {
  const auto entry = [&](const char* key, const std::string& value) {
    auto* pair = tensor.add_external_data();
    pair->set_key(key);
    pair->set_value(value);
  };
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  entry("location", file);
  entry("offset", fmt::format("{}", offset));
  entry("length", fmt::format("{}", bytes));
}

}  // namespace

Exporter::Exporter(const Graph& graph, const Parameters& params, const ExportOptions& options)
    : graph_(graph), params_(params), options_(options), model_(std::make_unique<onnx::ModelProto>()) {
  model_->set_ir_version(8);
  model_->set_producer_name(options.producer);
  model_->add_opset_import()->set_version(options.opset);
  proto_ = model_->mutable_graph();
  proto_->set_name(graph.name.empty() ? "graph" : graph.name);
}

Exporter::~Exporter() = default;

std::string Exporter::fresh(std::string_view wanted) {
  std::string name(wanted);
  for (size_t i = taken_.size(); name.empty() || !taken_.insert(name).second; ++i)
    name = fmt::format("{}_{}", wanted, i);
  return name;
}

std::string Exporter::name(ValueId v) const { return v == kNoValue ? "" : value_names_[v.index]; }

Names Exporter::names(const std::vector<ValueId>& values) const {
  Names out;
  for (ValueId v : values) out.push_back(name(v));
  while (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

// Names the outside knows come first: inputs, parameters and outputs keep theirs.
Status Exporter::name_values() {
  value_names_.assign(graph_.num_values(), "");
  const auto keeps = [](Role role) {
    return role == Role::kInput || role == Role::kParameter || role == Role::kState;
  };
  for (uint32_t v = 0; v < graph_.num_values(); ++v) {
    const Value& value = graph_.value(ValueId{v});
    if (keeps(value.role)) value_names_[v] = fresh(value.name);
  }
  interface_ = taken_;
  for (const Output& output : graph_.outputs()) {
    if (taken_.contains(output.name)) continue;
    std::string& name = value_names_[output.value.index];
    if (name.empty() && graph_.value(output.value).role == Role::kActivation) name = output.name;
    taken_.insert(output.name);
  }
  for (uint32_t v = 0; v < graph_.num_values(); ++v) {
    if (value_names_[v].empty()) value_names_[v] = fresh(graph_.value(ValueId{v}).name);
  }
  return {};
}

Status Exporter::add_inputs() {
  for (ValueId v : graph_.inputs()) write_type(graph_.type(v), name(v), proto_->add_input());
  return {};
}

void Exporter::add_initializer(const std::string& name, const Tensor& tensor) {
  auto* proto = proto_->add_initializer();
  proto->set_name(name);
  proto->set_data_type(dtype_to_onnx(tensor.dtype()));
  for (int64_t d : tensor.shape().dims()) proto->add_dims(d);
  const auto shared = options_.shared.find(name);
  if (shared != options_.shared.end() && tensor.bytes() > 0) {
    refer(*proto, options_.shared_file, shared->second, tensor.bytes());
  } else {
    proto->set_raw_data(tensor.raw(), tensor.bytes());
  }
}

Status Exporter::add_initializers() {
  std::set<uint32_t> read;
  for (const Node& node : graph_.nodes()) {
    for (ValueId v : node.inputs) read.insert(v.index);
  }
  for (const Output& output : graph_.outputs()) read.insert(output.value.index);
  for (uint32_t v = 0; v < graph_.num_values(); ++v) {
    const Value& value = graph_.value(ValueId{v});
    if (!read.contains(v)) continue;
    if (value.role == Role::kConstant) add_initializer(name(ValueId{v}), value.constant);
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    LIMBER_ASSIGN(const Tensor tensor, params_.get(value.name));
    if (tensor.type() != value.type) {
      return invalid("parameter '{}' is {}, the graph has {}", value.name, tensor.type().to_string(),
                     value.type.to_string());
    }
    add_initializer(name(ValueId{v}), tensor);
  }
  return {};
}

// The rows of a detection output need no count in ONNX: the operators there give the valid rows only.
Status Exporter::add_outputs() {
  for (const Output& output : graph_.outputs()) {
    if (name(output.value) != output.name) {
      if (interface_.contains(output.name)) {
        return unsupported("output '{}' has the name of an input or parameter", output.name);
      }
      write("Identity", {name(output.value)}, {output.name});
    }
    TensorType type = graph_.type(output.value);
    if (output.rows != kNoValue) type.shape[0] = Dim(Symbol(output.name + "_rows"));
    write_type(type, output.name, proto_->add_output());
  }
  return {};
}

// One node of ours may become several.
std::string Exporter::fresh_node_name(std::string_view op_type) {
  std::string name = node_name_;
  for (int i = 0; !node_names_.insert(name).second; ++i)
    name =
        i == 0 ? fmt::format("{}_{}", node_name_, op_type) : fmt::format("{}_{}_{}", node_name_, op_type, i);
  return name;
}

void Exporter::write(std::string_view op_type, Names inputs, Names outputs, const Attrs& attrs) {
  auto* proto = proto_->add_node();
  proto->set_op_type(std::string(op_type));
  proto->set_name(fresh_node_name(op_type));
  for (std::string& input : inputs) proto->add_input(std::move(input));
  for (std::string& output : outputs) proto->add_output(std::move(output));
  for (const auto& [name, value] : attrs.entries()) write_attribute(name, value, proto->add_attribute());
}

std::string Exporter::node(std::string_view op_type, Names inputs, const Attrs& attrs) {
  std::string output = fresh(node_name_ + "_" + std::string(op_type));
  write(op_type, std::move(inputs), {output}, attrs);
  return output;
}

std::string Exporter::constant(const Tensor& value) {
  std::string name = fresh(node_name_ + "_const");
  add_initializer(name, value);
  return name;
}

std::string Exporter::ints(const std::vector<int64_t>& values) {
  return constant(Tensor::from(std::span<const int64_t>(values), Shape{static_cast<int64_t>(values.size())}));
}

std::string Exporter::number(double value, DType dtype) {
  StaticValue element{dtype, {}, {}};
  if (is_float(dtype)) {
    element.elements.emplace_back(value);
  } else {
    element.elements.emplace_back(Dim(static_cast<int64_t>(value)));
  }
  return constant(tensor_from_static(element));
}

// --- symbolic dimensions --------------------------------------------------------------------------------

Result<std::string> Exporter::symbol(std::string_view symbol) {
  if (const auto it = symbols_.find(symbol); it != symbols_.end()) return it->second;
  for (ValueId input : graph_.inputs()) {
    const Shape& shape = graph_.type(input).shape;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const Dim& d = shape[axis];
      if (d.is_constant() || d.symbol().name() != symbol) continue;
      std::string value =
          node("Gather", {node("Shape", {name(input)}), ints({axis})}, {{"axis", int64_t{0}}});
      if (d.offset() != 0) value = node("Sub", {value, ints({d.offset()})});
      if (d.scale() != 1) value = node("Div", {value, ints({d.scale()})});
      symbols_.emplace(symbol, value);
      return value;
    }
  }
  return unsupported("dimension {} is the size of no input", symbol);
}

Result<std::string> Exporter::dim(const Dim& d) {
  if (d.is_constant()) return ints({d.value()});
  LIMBER_ASSIGN(std::string value, symbol(d.symbol().name()));
  if (d.scale() != 1) value = node("Mul", {value, ints({d.scale()})});
  if (d.offset() != 0) value = node("Add", {value, ints({d.offset()})});
  return value;
}

Result<std::string> Exporter::dims(const Shape& shape) {
  if (shape.is_constant()) return ints(shape.dims());
  Names parts;
  for (const Dim& d : shape) {
    LIMBER_ASSIGN(std::string part, dim(d));
    parts.push_back(std::move(part));
  }
  return parts.size() == 1 ? parts[0] : node("Concat", parts, {{"axis", int64_t{0}}});
}

Status Exporter::run() {
  LIMBER_TRY(name_values());
  LIMBER_TRY(add_inputs());
  LIMBER_TRY(add_initializers());
  for (const Node& ir : graph_.nodes()) {
    node_name_ = ir.name.empty() ? std::string(op_name(ir.op)) : ir.name;
    LIMBER_TRY(export_node(*this, ir).in(fmt::format("node '{}' ({})", ir.name, op_name(ir.op))));
  }
  node_name_ = "output";
  return add_outputs();
}

Status export_node(Exporter& e, const Node& node) {
  for (const auto family : {export_elementwise, export_layer, export_movement}) {
    bool done = true;
    const Status status = family(e, node, &done);
    if (!status.ok() || done) return status;
  }
  return unsupported("it has no form in ONNX");
}

namespace {

// Moves the bytes of large initialisers to one string, leaving references to `file`.
std::string move_out(onnx::GraphProto& graph, const std::string& file) {
  std::string data;
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    if (tensor.raw_data().size() < 1024) continue;
    data.resize((data.size() + kExternalAlignment - 1) / kExternalAlignment * kExternalAlignment, '\0');
    const uint64_t offset = data.size();
    data += tensor.raw_data();
    refer(tensor, file, offset, tensor.raw_data().size());
    delete tensor.release_raw_data();
  }
  return data;
}

}  // namespace
}  // namespace limber::onnx_io

namespace limber {

Status export_onnx(const Graph& graph, const Parameters& params, const std::string& path,
                   const ExportOptions& options, const FileSystem& files) {
  if (options.opset != 17 && options.opset != 18)
    return invalid("opset {} cannot be written, only 17 and 18", options.opset);
  onnx_io::Exporter exporter(graph, params, options);
  LIMBER_TRY(exporter.run().in(path));
  onnx::ModelProto& model = exporter.model();
  for (const auto& [key, value] : options.metadata) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  if (options.external_data || model.ByteSizeLong() >= onnx_io::kInlineLimit) {
    const size_t slash = path.find_last_of('/');
    const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1) + ".data";
    const std::string data = onnx_io::move_out(*model.mutable_graph(), name);
    LIMBER_TRY(files.write(path + ".data", data));
  }
  std::string bytes;
  if (!model.SerializeToString(&bytes))
    return error(Code::kInternal, "{}: protobuf cannot write the model", path);
  return files.write(path, bytes);
}

}  // namespace limber
