// The frame of an import: inputs, initialisers, outputs, and adding nodes with what is known of them.
#include "io/importer.h"

#include <algorithm>

namespace limber::onnx_io {
namespace {

// Operators through which a one-element initialiser is a number rather than something to train.
bool is_plain_arithmetic(const std::string& op) {
  static const std::set<std::string> kOps = {
      "Add", "Sub",   "Mul",  "Div",   "Pow",     "Min",         "Max",
      "Mod", "Clip",  "Sum",  "Where", "Equal",   "Less",        "Greater",
      "And", "Range", "Cast", "Mean",  "Dropout", "LessOrEqual", "GreaterOrEqual"};
  return kOps.contains(op);
}

// Names of the values that only plain arithmetic reads.
std::set<std::string> arithmetic_only(const onnx::GraphProto& graph) {
  std::set<std::string> read, elsewhere;
  for (const auto& node : graph.node()) {
    for (const auto& input : node.input())
      (is_plain_arithmetic(node.op_type()) ? read : elsewhere).insert(input);
  }
  for (const std::string& name : elsewhere) read.erase(name);
  return read;
}

// With 1 for what the file does not say.
std::string example_shape(const onnx::TensorShapeProto& shape) {
  std::string text;
  for (const auto& dim : shape.dim())
    text += fmt::format("{}{}", text.empty() ? "" : "x", std::max<int64_t>(1, dim.dim_value()));
  return text;
}

}  // namespace

std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

std::string producer_of(const onnx::ModelProto& model) {
  const std::string& version = model.producer_version();
  return model.producer_name() + (version.empty() ? "" : " " + version);
}

const Binding* Importer::lookup(const Frame& frame, const std::string& name) {
  for (const Frame* f = &frame; f != nullptr; f = f->outer) {
    if (const auto it = f->names.find(name); it != f->names.end()) return &it->second;
  }
  return nullptr;
}

// --- inputs -------------------------------------------------------------------------------------------

// The symbol of a dimension called `wanted`: the same name gives the same symbol, and two names never
// share one, although symbols are short.
Dim Importer::symbolic_dim(const std::string& wanted) {
  if (const auto it = symbol_of_.find(wanted); it != symbol_of_.end()) return Dim(Symbol(it->second));
  std::string symbol(Symbol(wanted).name());
  const auto taken = [&](const std::string& name) {
    return std::any_of(symbol_of_.begin(), symbol_of_.end(), [&](const auto& e) { return e.second == name; });
  };
  for (int i = 2; taken(symbol); ++i) symbol = fmt::format("{}_{}", Symbol(wanted).name().substr(0, 10), i);
  symbol_of_.emplace(wanted, symbol);
  return Dim(Symbol(symbol));
}

Result<TensorType> Importer::input_type(const onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type()) return unsupported("it is not a dense tensor");
  const auto& tensor = info.type().tensor_type();
  const auto dtype = dtype_from_onnx(tensor.elem_type());
  if (!dtype) return unsupported("its elements are of type {}", onnx_type_name(tensor.elem_type()));
  TensorType type{*dtype, {}};
  const auto given = options_.shapes.find(info.name());
  const bool known_rank = tensor.has_shape();
  if (!known_rank && given == options_.shapes.end()) {
    return unsupported("the file does not say its rank; give its shape (shape {}=1x3x224x224)", info.name());
  }
  const int rank = known_rank ? tensor.shape().dim_size() : static_cast<int>(given->second.size());
  if (given != options_.shapes.end() && static_cast<int>(given->second.size()) != rank) {
    return invalid("its shape was given with {} dimensions, the file has {}", given->second.size(), rank);
  }
  if (rank > kMaxRank) return unsupported("rank {}, at most {} is possible", rank, kMaxRank);
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t fixed = given != options_.shapes.end() ? given->second[static_cast<size_t>(axis)] : -1;
    const auto* dim = known_rank ? &tensor.shape().dim(axis) : nullptr;
    if (fixed >= 0) {
      type.shape.push_back(Dim(fixed));
    } else if (fixed == kOpenDim) {
      type.shape.push_back(symbolic_dim("N"));
    } else if (dim != nullptr && dim->has_dim_value() && dim->dim_value() > 0) {
      type.shape.push_back(Dim(dim->dim_value()));
    } else if (dim != nullptr && dim->has_dim_value() && dim->dim_value() == 0) {
      // Some writers mean "any" by it; guessing either way would be silent.
      return unsupported("dimension {} is 0, so that it has no elements; give its shape (shape {}={})", axis,
                         info.name(), example_shape(tensor.shape()));
    } else if (dim != nullptr && dim->has_dim_value() && dim->dim_value() < -1) {
      return corrupt("dimension {} is {}", axis, dim->dim_value());
    } else {
      const bool named = dim != nullptr && dim->has_dim_param() && !dim->dim_param().empty();
      const std::string name =
          named ? dim->dim_param() : fmt::format("{}_d{}", info.name().substr(0, 11), axis);
      const Dim symbol = symbolic_dim(name);
      auto value = options_.symbols.find(name);
      if (value == options_.symbols.end()) value = options_.symbols.find(std::string(symbol.symbol().name()));
      if (value != options_.symbols.end() && value->second < 0)
        return invalid("{} is {}", name, value->second);
      type.shape.push_back(value == options_.symbols.end() ? symbol : Dim(value->second));
    }
  }
  return type;
}

Status Importer::add_inputs() {
  for (const auto& info : file_.proto->graph().input()) {
    if (file_.initializers.contains(info.name()) || file_.bad_initializers.contains(info.name())) continue;
    if (info.name().empty()) return corrupt("a graph input has no name");
    if (top_.names.contains(info.name())) return corrupt("input '{}' is defined twice", info.name());
    if (fixed_.contains(info.name())) {
      top_.names[info.name()] = {.id = add_constant(info.name(), options_.known_inputs.at(info.name()))};
      continue;
    }
    auto type = input_type(info);
    if (!type.ok() && type.status().code() == Code::kUnsupported) {
      problems_.push_back(fmt::format("input '{}': {}", info.name(), type.status().message()));
      top_.names[info.name()] = {.failed = true};
      continue;
    }
    if (!type.ok()) return type.status().in(fmt::format("input '{}'", info.name()));
    LIMBER_TRY(check_type(*type).in(fmt::format("input '{}'", info.name())));
    top_.names[info.name()] = {.id = graph_.add_input(info.name(), *type)};
  }
  return {};
}

Status Importer::add_initializers() {
  const std::set<std::string> plain = arithmetic_only(file_.proto->graph());
  for (const auto& [name, tensor] : file_.initializers) {
    const bool number = tensor.elements() == 1 && plain.contains(name);
    const bool constant = !is_float(tensor.dtype()) || tensor.shape().rank() == 0 || number;
    top_.names[name] = {.id = constant ? add_constant(name, tensor)
                                       : graph_.add_parameter(name, tensor.type())};
  }
  for (const auto& [name, reason] : file_.bad_initializers) {
    problems_.push_back(fmt::format("initialiser '{}': {}", name, reason));
    top_.names[name] = {.failed = true};
  }
  return {};
}

Status Importer::add_outputs() {
  std::set<std::string> names;
  for (const auto& info : file_.proto->graph().output()) {
    const Binding* binding = lookup(top_, info.name());
    if (binding == nullptr) return corrupt("output '{}' is produced by no node", info.name());
    if (!names.insert(info.name()).second) return corrupt("output '{}' is listed twice", info.name());
    if (binding->failed) continue;
    if (binding->row_major) {
      problems_.push_back(
          fmt::format("output '{}': the columns of NonZero can only be returned transposed", info.name()));
      continue;
    }
    graph_.add_output(binding->id, info.name(), binding->rows);
  }
  if (names.empty()) return corrupt("the graph has no outputs");
  return {};
}

// --- nodes --------------------------------------------------------------------------------------------

Status Importer::check_type(const TensorType& type) const {
  if (type.rank() > kMaxRank) return unsupported("rank {}, at most {} is possible", type.rank(), kMaxRank);
  // A symbolic dimension counts as one: the binding is checked when it is known.
  std::vector<int64_t> dims;
  for (const Dim& d : type.shape) dims.push_back(d.is_constant() ? d.value() : 1);
  if (checked_elements(dims, static_cast<int64_t>(options_.max_tensor_bytes / dtype_size(type.dtype))))
    return {};
  return error(Code::kResourceExhausted, "{} has a negative dimension or more than {} bytes",
               type.to_string(), options_.max_tensor_bytes);
}

ValueId Importer::add_constant(std::string_view name, Tensor value) {
  auto static_value = static_from_tensor(value);
  const ValueId v = graph_.add_constant(name, std::move(value));
  if (static_value) known_.emplace(v.index, *std::move(static_value));
  return v;
}

Status Importer::spend(size_t bytes) {
  spent_ += bytes;
  if (spent_ <= kMaxMadeUpBytes) return {};
  return error(Code::kResourceExhausted, "constants of more than {} bytes that the file does not hold",
               kMaxMadeUpBytes);
}

const StaticValue* Importer::known(ValueId v) const {
  const auto it = known_.find(v.index);
  return it == known_.end() ? nullptr : &it->second;
}

Result<std::vector<ValueId>> Importer::emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs, int outputs,
                                            std::string_view name) {
  auto types = infer_types(graph_, op, inputs, attrs, outputs);
  if (!types.ok()) return types.status();
  for (const TensorType& type : *types) LIMBER_TRY(check_type(type));
  std::vector<const TensorType*> input_types;
  std::vector<const StaticValue*> values;
  for (ValueId v : inputs) {
    input_types.push_back(v == kNoValue ? nullptr : &graph_.type(v));
    values.push_back(v == kNoValue ? nullptr : known(v));
  }
  auto results = evaluate_static(op, attrs, input_types, values, *types);
  std::vector<ValueId> ids;
  if (results &&
      std::all_of(results->begin(), results->end(), [](const auto& r) { return r.is_constant(); })) {
    for (const StaticValue& result : *results) ids.push_back(add_constant(name, tensor_from_static(result)));
    return ids;
  }
  ids = graph_.node(graph_.add_node(op, std::move(inputs), std::move(attrs), *types, name)).outputs;
  for (size_t i = 0; results && i < ids.size(); ++i) known_.emplace(ids[i].index, std::move((*results)[i]));
  return ids;
}

// --- values needed while compiling --------------------------------------------------------------------

const StaticValue* Importer::search_static(ValueId v, int depth) {
  if (const StaticValue* value = known(v)) return value;
  if (const auto it = searched_.find(v.index); it != searched_.end())
    return it->second ? &*it->second : nullptr;
  std::optional<StaticValue> found;
  const Value& value = graph_.value(v);
  if (value.role == Role::kParameter) {
    found = static_from_tensor(file_.initializers.at(value.name));
  } else if (value.role == Role::kInput) {
    const auto given = options_.known_inputs.find(value.name);
    if (given != options_.known_inputs.end()) {
      found = static_from_tensor(given->second);
      wanted_.insert(value.name);
    }
  } else if (value.role == Role::kActivation && depth < 64) {
    const Node& node = graph_.node(value.producer);
    std::vector<const TensorType*> types;
    std::vector<const StaticValue*> values;
    for (ValueId input : node.inputs) {
      types.push_back(input == kNoValue ? nullptr : &graph_.type(input));
      values.push_back(input == kNoValue ? nullptr : search_static(input, depth + 1));
    }
    std::vector<TensorType> outputs;
    for (ValueId output : node.outputs) outputs.push_back(graph_.type(output));
    const auto at = std::find(node.outputs.begin(), node.outputs.end(), v) - node.outputs.begin();
    if (auto results = evaluate_static(node.op, node.attrs, types, values, outputs)) {
      found = std::move((*results)[static_cast<size_t>(at)]);
    }
  }
  const auto& kept = searched_.emplace(v.index, std::move(found)).first->second;
  return kept ? &*kept : nullptr;
}

std::string Importer::how_to_fix(std::string_view symbol) const {
  for (ValueId input : graph_.inputs()) {
    std::string example;
    bool uses = false;
    for (const Dim& d : graph_.type(input).shape) {
      uses = uses || (!d.is_constant() && d.symbol().name() == symbol);
      example += fmt::format("{}{}", example.empty() ? "" : "x", d.is_constant() ? d.to_string() : "1");
    }
    if (!uses) continue;
    return fmt::format("dimension {} of input '{}' must be fixed; give its shape (shape {}={})", symbol,
                       graph_.value(input).name, graph_.value(input).name, example);
  }
  return fmt::format("dimension {} must be fixed", symbol);
}

// Walks back to what the value depends on.
std::string Importer::why_unknown(ValueId v) const {
  std::set<uint32_t> seen;
  std::vector<ValueId> stack = {v};
  while (!stack.empty()) {
    const ValueId at = stack.back();
    stack.pop_back();
    if (at == kNoValue || !seen.insert(at.index).second) continue;
    const Value& value = graph_.value(at);
    if (value.role == Role::kInput) {
      return fmt::format("it depends on the values of input '{}', which must then be given at compile time",
                         value.name);
    }
    if (value.role != Role::kActivation) continue;
    const Node& node = graph_.node(value.producer);
    if (node.op != OpKind::kShapeOf) {
      stack.insert(stack.end(), node.inputs.begin(), node.inputs.end());
      continue;
    }
    for (const Dim& d : graph_.type(node.inputs[0]).shape) {
      if (!d.is_constant()) return how_to_fix(d.symbol().name());
    }
  }
  return "its value is too large or computed by operators that are not evaluated at compile time";
}

// --- the whole ----------------------------------------------------------------------------------------

Status Importer::reported() const {
  constexpr size_t kMaxLines = 50;  // of a message: a screen
  if (problems_.empty()) return {};
  std::string text = fmt::format("{} thing{} in this model cannot be run:", problems_.size(),
                                 problems_.size() == 1 ? "" : "s");
  for (size_t i = 0; i < std::min(problems_.size(), kMaxLines); ++i) text += "\n  " + problems_[i];
  if (problems_.size() > kMaxLines) text += fmt::format("\n  and {} more", problems_.size() - kMaxLines);
  return Status(Code::kUnsupported, std::move(text));
}

Result<Model> Importer::run() {
  const onnx::ModelProto& proto = *file_.proto;
  for (const auto& opset : proto.opset_import()) top_.opsets[normal_domain(opset.domain())] = opset.version();
  if (!top_.opsets.contains("")) top_.opsets[""] = 1;
  for (const auto& function : proto.functions()) {
    functions_.emplace(std::pair(normal_domain(function.domain()), function.name()), &function);
  }
  LIMBER_TRY(add_inputs());
  LIMBER_TRY(add_initializers());
  std::vector<std::string> outputs;
  for (const auto& info : proto.graph().output()) outputs.push_back(info.name());
  LIMBER_TRY(convert_nodes(proto.graph().node(), top_, outputs));
  LIMBER_TRY(add_outputs());
  LIMBER_TRY(reported());

  Model model;
  graph_.name = proto.graph().name();
  graph_.compact();
  model.params = std::make_shared<Parameters>();
  for (const Value& value : graph_.values()) {
    if (value.role == Role::kParameter) model.params->set(value.name, file_.initializers.at(value.name));
  }
  model.graph = std::move(graph_);
  model.opset = top_.opsets.at("");
  model.ir_version = proto.ir_version();
  model.producer = producer_of(proto);
  return model;
}

}  // namespace limber::onnx_io
