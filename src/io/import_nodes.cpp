// Walks the nodes of a graph, a function body or a branch: order, versions, functions, reports.
#include <algorithm>
#include <queue>

#include "io/importer.h"
#include "ops/static_element.h"

namespace limber::onnx_io {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

namespace {

std::string describe(const onnx::NodeProto& node) {
  const std::string name = !node.name().empty()     ? node.name()
                           : node.output_size() > 0 ? node.output(0)
                                                    : std::string("?");
  return fmt::format("node '{}' ({})", name.substr(0, 100), node.op_type().substr(0, 100));
}

// Producer of every name; fails when a name has two.
Result<std::map<std::string, int>> producers(const Nodes& nodes,
                                             const std::function<bool(const std::string&)>& defined) {
  std::map<std::string, int> producer;
  for (int n = 0; n < nodes.size(); ++n) {
    for (const std::string& output : nodes[n].output()) {
      if (output.empty()) continue;
      if (defined(output) || !producer.emplace(output, n).second) {
        return corrupt("{}: output '{}' is defined twice", describe(nodes[n]), output);
      }
    }
  }
  return producer;
}

// Names a node's branches read from outside of them.
void subgraph_reads(const onnx::NodeProto& node, std::vector<std::string>& reads, int depth) {
  for (const auto& attribute : node.attribute()) {
    if (!attribute.has_g() || depth >= kMaxDepth) continue;
    for (const auto& inner : attribute.g().node()) {
      reads.insert(reads.end(), inner.input().begin(), inner.input().end());
      subgraph_reads(inner, reads, depth + 1);
    }
    for (const auto& output : attribute.g().output()) reads.push_back(output.name());
  }
}

// Nodes that `wanted` depends on, directly or not.
std::vector<bool> live_nodes(const Nodes& nodes, const std::vector<int>& order,
                             const std::vector<std::string>& wanted) {
  std::set<std::string> needed(wanted.begin(), wanted.end());
  std::vector<bool> live(static_cast<size_t>(nodes.size()), false);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const auto& node = nodes[*it];
    const bool used = std::any_of(node.output().begin(), node.output().end(),
                                  [&](const std::string& name) { return needed.contains(name); });
    if (!used) continue;
    live[static_cast<size_t>(*it)] = true;
    std::vector<std::string> reads(node.input().begin(), node.input().end());
    subgraph_reads(node, reads, 0);
    needed.insert(reads.begin(), reads.end());
  }
  return live;
}

}  // namespace

Result<std::vector<int>> sort_nodes(const Nodes& nodes,
                                    const std::function<bool(const std::string&)>& defined) {
  LIMBER_ASSIGN(const auto producer, producers(nodes, defined));
  std::vector<std::vector<int>> readers(static_cast<size_t>(nodes.size()));
  std::vector<int> waiting(static_cast<size_t>(nodes.size()), 0);
  for (int n = 0; n < nodes.size(); ++n) {
    std::vector<std::string> reads(nodes[n].input().begin(), nodes[n].input().end());
    const size_t direct = reads.size();
    subgraph_reads(nodes[n], reads, 0);
    for (size_t i = 0; i < reads.size(); ++i) {
      if (reads[i].empty() || defined(reads[i])) continue;
      const auto it = producer.find(reads[i]);
      if (it != producer.end()) {
        readers[static_cast<size_t>(it->second)].push_back(n);
        ++waiting[static_cast<size_t>(n)];
      } else if (i < direct) {
        return corrupt("{}: its input '{}' is produced by nothing", describe(nodes[n]), reads[i]);
      }
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int n = 0; n < nodes.size(); ++n) {
    if (waiting[static_cast<size_t>(n)] == 0) ready.push(n);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int n = ready.top();
    ready.pop();
    order.push_back(n);
    for (int reader : readers[static_cast<size_t>(n)]) {
      if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  for (int n = 0; n < nodes.size(); ++n) {
    if (waiting[static_cast<size_t>(n)] != 0) return corrupt("{}: is part of a cycle", describe(nodes[n]));
  }
  return order;
}

Status Importer::convert_nodes(const Nodes& nodes, Frame& frame, const std::vector<std::string>& wanted) {
  const auto defined = [&](const std::string& name) { return lookup(frame, name) != nullptr; };
  if (frame.depth > 0) expanded_ += nodes.size();
  if (expanded_ > kMaxExpanded) {
    return error(Code::kResourceExhausted, "functions expand to more than {} nodes", kMaxExpanded);
  }
  LIMBER_ASSIGN(const auto order, sort_nodes(nodes, defined));
  const auto live = live_nodes(nodes, order, wanted);
  for (int n : order) {
    if (live[static_cast<size_t>(n)]) LIMBER_TRY(convert_node(nodes[n], frame));
  }
  return {};
}

void Importer::report(const onnx::NodeProto& node, const Frame& frame, std::string_view reason) {
  const std::string domain = normal_domain(node.domain());
  const auto version = frame.opsets.find(domain);
  problems_.push_back(fmt::format("{}{}, {}opset {}: {}", frame.prefix, describe(node),
                                  domain.empty() ? "" : fmt::format("domain {}, ", domain),
                                  version == frame.opsets.end() ? 0 : version->second, reason));
}

Status Importer::convert_node(const onnx::NodeProto& node, Frame& frame) {
  const std::string domain = normal_domain(node.domain());
  const auto opset = frame.opsets.find(domain);
  const int64_t version = opset == frame.opsets.end() ? 0 : opset->second;
  NodeContext c(*this, node, frame, version);
  const auto give_up = [&](std::string_view reason) {
    if (!reason.empty()) report(node, frame, reason);
    for (const std::string& output : node.output()) frame.names[output] = {.failed = true};
    return Status();
  };

  const auto function = functions_.find({domain, node.op_type()});
  const onnx::FunctionProto* local = function == functions_.end() ? nullptr : function->second;
  const Converter* converter = domain.empty() ? find_converter(node.op_type()) : nullptr;
  const bool in_range =
      converter != nullptr && version >= converter->first_version && version <= converter->last_version;
  const bool expands = local == nullptr && !in_range && has_function_body(node.op_type(), domain, version);
  if (local == nullptr && !in_range && !expands) {
    return give_up(converter == nullptr ? unsupported_reason(node.op_type(), domain)
                                        : fmt::format("only supported in {}", supported_range(*converter)));
  }
  for (const std::string& input : node.input()) {
    const Binding* binding = input.empty() ? nullptr : lookup(frame, input);
    if (binding != nullptr && binding->failed) return give_up("");
  }

  Status status;
  if (local != nullptr) {
    status = convert_function(node, *local, frame, {});
  } else if (in_range) {
    status = run_converter(*converter, c);
  } else {
    std::vector<onnx::AttributeProto> defaults;
    const auto body = function_body(resolved_node(c), version, input_protos(c), &defaults);
    status = body == nullptr ? unsupported("the function cannot be expanded for these inputs")
                             : convert_function(node, *body, frame, defaults);
  }
  if (status.ok()) return {};
  if (status.code() == Code::kUnsupported) return give_up(status.message());
  return status.in(frame.prefix + describe(node));
}

// The node with attributes that refer to the caller's replaced by what they refer to.
onnx::NodeProto Importer::resolved_node(const NodeContext& c) {
  onnx::NodeProto node = c.proto();
  node.clear_attribute();
  for (const auto& attribute : c.proto().attribute()) {
    const auto* value = c.find_attr(attribute.name().c_str());
    if (value == nullptr) continue;
    *node.add_attribute() = *value;
    node.mutable_attribute()->rbegin()->set_name(attribute.name());
  }
  return node;
}

// Types of a node's inputs as ONNX writes them; default-constructed for absent ones.
std::vector<onnx::TypeProto> Importer::input_protos(const NodeContext& c) const {
  std::vector<onnx::TypeProto> types(static_cast<size_t>(c.inputs()));
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i)) continue;
    auto* tensor = types[static_cast<size_t>(i)].mutable_tensor_type();
    tensor->set_elem_type(dtype_to_onnx(c.type(i).dtype));
    tensor->mutable_shape();
    for (const Dim& d : c.type(i).shape) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (d.is_constant()) {
        dim->set_dim_value(d.value());
      } else {
        dim->set_dim_param(d.to_string());
      }
    }
  }
  return types;
}

Status Importer::run_converter(const Converter& converter, NodeContext& c) {
  const auto& node = c.proto();
  if (node.input_size() < converter.min_inputs ||
      (converter.max_inputs >= 0 && node.input_size() > converter.max_inputs)) {
    return corrupt("{} inputs, expected {} to {}", node.input_size(), converter.min_inputs,
                   converter.max_inputs);
  }
  if (converter.max_outputs >= 0 && node.output_size() > converter.max_outputs) {
    return corrupt("{} outputs, expected at most {}", node.output_size(), converter.max_outputs);
  }
  for (int i = 0; i < node.input_size(); ++i) {
    if (i < converter.min_inputs && !c.has(i)) return corrupt("input {} is missing", i);
    const Binding* binding = c.binding(i);
    const bool moves_rows = node.op_type() == "Identity" || node.op_type() == "Cast" ||
                            (node.op_type() == "Transpose" && binding != nullptr && binding->row_major);
    if (binding != nullptr && binding->rows != kNoValue && !moves_rows) {
      return unsupported(
          "the number of rows of its input '{}' is only known after the run; such a value can only be "
          "a graph output",
          node.input(i));
    }
  }
  const Status status = node.op_type() == "If" ? inline_branch(c) : converter.convert(c);
  LIMBER_TRY(c.attr_status());
  LIMBER_TRY(status);
  for (int i = 0; i < node.output_size(); ++i) {
    if (c.wants(i) && !c.frame_.names.contains(node.output(i)))
      return unsupported("its output {} is not supported", i);
  }
  return {};
}

Status Importer::convert_function(const onnx::NodeProto& node, const onnx::FunctionProto& body, Frame& frame,
                                  const std::vector<onnx::AttributeProto>& defaults) {
  if (frame.depth >= kMaxDepth) return corrupt("functions nested deeper than {}", kMaxDepth);
  if (node.input_size() > body.input_size() || node.output_size() > body.output_size()) {
    return corrupt("more inputs or outputs than its function has");
  }
  const NodeContext c(*this, node, frame, 0);
  Frame inner{.prefix = frame.scoped(c.name()).substr(0, 100) + "/", .depth = frame.depth + 1};
  for (const auto& opset : body.opset_import()) inner.opsets[normal_domain(opset.domain())] = opset.version();
  inner.opsets.insert(frame.opsets.begin(), frame.opsets.end());
  for (const auto& attribute : defaults) inner.attributes[attribute.name()] = &attribute;
  for (const auto& attribute : node.attribute()) {
    const auto* resolved = c.find_attr(attribute.name().c_str());
    if (resolved != nullptr) inner.attributes[attribute.name()] = resolved;
  }
  for (int i = 0; i < body.input_size(); ++i) {
    const Binding* binding = c.binding(i);
    inner.names[body.input(i)] = binding != nullptr ? *binding : Binding{};
  }
  std::vector<std::string> wanted;
  for (int i = 0; i < node.output_size(); ++i) {
    if (!node.output(i).empty()) wanted.push_back(body.output(i));
  }
  LIMBER_TRY(convert_nodes(body.node(), inner, wanted));
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const Binding* result = lookup(inner, body.output(i));
    if (result == nullptr) return corrupt("its function does not produce output '{}'", body.output(i));
    frame.names[node.output(i)] = *result;
  }
  return {};
}

// An If whose condition is known is the branch it takes.
Status Importer::inline_branch(NodeContext& c) {
  const StaticValue* condition = search_static(c.in(0));
  if (condition == nullptr || condition->elements.size() != 1 || !condition->is_constant()) {
    return unsupported("the condition must be known at compile time; {}", why_unknown(c.in(0)));
  }
  if (condition->dtype != DType::kBool)
    return corrupt("the condition is {}, expected bool", dtype_name(condition->dtype));
  const bool taken = *element_int(condition->elements[0]) != 0;
  const auto* attribute = c.find_attr(taken ? "then_branch" : "else_branch");
  if (attribute == nullptr || !attribute->has_g()) return corrupt("it has no branch for this condition");
  const onnx::GraphProto& branch = attribute->g();
  if (c.frame_.depth >= kMaxDepth) return corrupt("branches nested deeper than {}", kMaxDepth);
  if (branch.output_size() < c.outputs()) return corrupt("its branch has fewer outputs than it");
  Frame inner{.outer = &c.frame_,
              .attributes = c.frame_.attributes,
              .opsets = c.frame_.opsets,
              .prefix = c.frame_.scoped(c.name()).substr(0, 100) + "/",
              .depth = c.frame_.depth + 1};
  for (const auto& initializer : branch.initializer()) {
    auto tensor = file_.reader->read(initializer);
    if (!tensor.ok()) return tensor.status().in(fmt::format("initialiser '{}'", initializer.name()));
    LIMBER_TRY(spend(tensor->bytes()));
    inner.names[initializer.name()] = {.id = add_constant(initializer.name(), *std::move(tensor))};
  }
  std::vector<std::string> wanted;
  for (const auto& output : branch.output()) wanted.push_back(output.name());
  LIMBER_TRY(convert_nodes(branch.node(), inner, wanted));
  for (int i = 0; i < c.outputs(); ++i) {
    const Binding* result = lookup(inner, branch.output(i).name());
    if (result == nullptr) return corrupt("its branch does not produce output '{}'", branch.output(i).name());
    if (c.wants(i)) c.frame_.names[c.proto().output(i)] = *result;
  }
  return {};
}

}  // namespace limber::onnx_io
