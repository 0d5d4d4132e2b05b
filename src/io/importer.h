// Private to this folder: the state of one import and what a converter of one operator may do.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/model_file.h"
#include "io/onnx.h"
#include "ops/op_def.h"
#include "ops/static_value.h"

namespace limber::onnx_io {

inline constexpr int64_t kNewestOpset = 23;    // the last one whose changes were read
inline constexpr int64_t kAny = kNewestOpset;  // for the tables: no later version changed it
// Limits on what a small file can ask for, far beyond what networks need.
inline constexpr int kMaxDepth = 16;             // functions and branches inside each other
inline constexpr int64_t kMaxExpanded = 50'000;  // nodes that come from functions and branches
inline constexpr int64_t kMaxConstantElements = int64_t{4} << 20;  // of a constant the importer makes up
inline constexpr int64_t kMaxWindow = 1
                                      << 24;  // of a stride, a pad ...: sums and products of such stay exact
inline constexpr size_t kMaxMadeUpBytes = size_t{256} << 20;  // of all of them together

// May training go through it? REQUIRES: an operator this importer knows
bool has_gradient(std::string_view op_type);

// --- the import ---------------------------------------------------------------------------------------

// What an ONNX name stands for.
struct Binding {
  ValueId id = kNoValue;
  ValueId rows = kNoValue;  // the number of valid leading rows, where only a run can tell
  bool row_major = false;   // of NonZero: rows lie along axis 0 here, along axis 1 in ONNX
  bool failed = false;      // its node could not be lowered, which has been reported
};

// Names and versions that nodes of one graph or function body see.
struct Frame {
  const Frame* outer = nullptr;  // names are looked up there too (branches of If); nullptr in functions
  std::map<std::string, Binding> names;
  std::map<std::string, const onnx::AttributeProto*> attributes;  // what ref_attr_name refers to
  std::map<std::string, int64_t> opsets;                          // by domain, "" is ONNX's own
  std::string prefix;                                             // of names
  int depth = 0;

  // A name from the file as it is seen from outside; short, because bodies may be expanded many times.
  std::string scoped(const std::string& name) const {
    return depth == 0 ? name : (prefix + name).substr(0, 200);
  }
};

class NodeContext;
struct Converter {
  std::string_view op_type;
  int min_inputs, max_inputs;  // -1: any number
  int max_outputs;
  int64_t first_version, last_version;
  Status (*convert)(NodeContext& c);
};
const Converter* find_converter(std::string_view op_type);
std::string supported_range(const Converter& converter);  // "opset 1 to 23"
std::string unsupported_reason(const std::string& op_type,
                               const std::string& domain);  // of one without converter

// The body of a function operator of ONNX's own list at this version; nullptr when it has none. `types`
// has one entry per input of the node. `defaults` receives the attributes that the node leaves out.
std::unique_ptr<onnx::FunctionProto> function_body(const onnx::NodeProto& node, int64_t version,
                                                   const std::vector<onnx::TypeProto>& types,
                                                   std::vector<onnx::AttributeProto>* defaults);
// Whether function_body() could give one, without looking at types.
bool has_function_body(const std::string& op_type, const std::string& domain, int64_t version);

// Order in which nodes can be run (stable); fails on duplicate names, unknown inputs and cycles.
Result<std::vector<int>> sort_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                    const std::function<bool(const std::string&)>& defined);
std::string normal_domain(const std::string& domain);  // "ai.onnx" is ""
std::string producer_of(const onnx::ModelProto& model);

// One attempt at lowering a file. Inputs named in `fixed` take their value from options.known_inputs and
// are constants.
class Importer {
 public:
  Importer(ModelFile& file, const ImportOptions& options, const std::set<std::string>& fixed)
      : file_(file), options_(options), fixed_(fixed) {}
  Result<Model> run();
  // Inputs whose known value was needed: when there are any, the attempt must be repeated with these fixed.
  const std::set<std::string>& wanted() const { return wanted_; }

 private:
  friend class NodeContext;

  Status add_inputs();
  Result<TensorType> input_type(const onnx::ValueInfoProto& info);
  Dim symbolic_dim(const std::string& wanted);
  Status add_initializers();
  Status add_outputs();
  Status convert_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Frame& frame,
                       const std::vector<std::string>& wanted);
  Status convert_node(const onnx::NodeProto& node, Frame& frame);
  Status convert_function(const onnx::NodeProto& node, const onnx::FunctionProto& body, Frame& frame,
                          const std::vector<onnx::AttributeProto>& defaults);
  Status run_converter(const Converter& converter, NodeContext& c);
  Status inline_branch(NodeContext& c);
  void report(const onnx::NodeProto& node, const Frame& frame, std::string_view reason);
  Status reported() const;
  static onnx::NodeProto resolved_node(const NodeContext& c);
  std::vector<onnx::TypeProto> input_protos(const NodeContext& c) const;
  static const Binding* lookup(const Frame& frame, const std::string& name);

  // Adds a node, or constants when everything it reads is known.
  Result<std::vector<ValueId>> emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs, int outputs,
                                    std::string_view name);
  ValueId add_constant(std::string_view name, Tensor value);
  Status spend(size_t bytes);  // counts bytes that a small file can ask for many times over
  Status check_type(const TensorType& type) const;
  const StaticValue* known(ValueId v) const;
  // Also looks into parameters and known inputs; nullptr when the value cannot be told.
  const StaticValue* search_static(ValueId v, int depth = 0);
  std::string why_unknown(ValueId v) const;
  std::string how_to_fix(std::string_view symbol) const;

  ModelFile& file_;
  const ImportOptions& options_;
  const std::set<std::string>& fixed_;
  Graph graph_;
  Frame top_;
  std::map<uint32_t, StaticValue> known_;
  std::map<uint32_t, std::optional<StaticValue>> searched_;
  std::map<std::string, std::string> symbol_of_;  // a dimension's name in the file -> its symbol
  std::set<std::string> wanted_;
  std::set<uint32_t> named_;  // values that carry the name of an ONNX value
  std::vector<std::string> problems_;
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions_;  // by domain and name
  int64_t expanded_ = 0;
  size_t spent_ = 0;
};

// One ONNX node while it is lowered. run_converter has checked the number of inputs and that the first
// min_inputs are there. Attributes of the wrong type read as their fallback and fail the node afterwards.
class NodeContext {
 public:
  NodeContext(Importer& importer, const onnx::NodeProto& node, Frame& frame, int64_t version)
      : version(version), importer_(importer), node_(node), frame_(frame) {}

  const int64_t version;  // of the opset
  const onnx::NodeProto& proto() const { return node_; }
  const std::string& op_type() const { return node_.op_type(); }
  std::string name() const;

  // --- inputs and outputs ---
  int inputs() const { return node_.input_size(); }
  int outputs() const { return node_.output_size(); }
  bool has(int i) const { return in(i) != kNoValue; }
  bool wants(int i) const { return i < node_.output_size() && !node_.output(i).empty(); }
  ValueId in(int i) const;  // kNoValue when absent
  const Binding* binding(int i) const;
  // By value: adding a node moves the graph's values.
  TensorType type(ValueId v) const { return importer_.graph_.type(v); }
  TensorType type(int i) const { return type(in(i)); }  // REQUIRES: has(i)
  int rank(int i) const { return type(i).rank(); }
  void set(int output, ValueId v, ValueId rows = kNoValue, bool row_major = false);

  // --- attributes ---
  bool has_attr(const char* name) const { return find_attr(name) != nullptr; }
  int64_t i(const char* name, int64_t fallback);
  double f(const char* name, double fallback);
  std::string s(const char* name, std::string_view fallback);
  std::vector<int64_t> ints(const char* name);   // empty when absent
  std::vector<double> floats(const char* name);  // empty when absent
  Result<std::optional<Tensor>> tensor(const char* name);
  const Status& attr_status() const { return attr_status_; }

  // --- values known now ---
  const StaticValue* known(ValueId v) const { return importer_.known(v); }
  Result<const StaticValue*> require(int input, std::string_view what);
  Result<std::vector<Dim>> dims(int input, std::string_view what);
  Result<std::vector<int64_t>> ints(int input, std::string_view what);
  Result<std::vector<double>> floats(int input, std::string_view what);
  Result<int64_t> one_int(int input, std::string_view what);
  // From the attribute in old versions, from the input in new ones; nullopt when neither is there.
  Result<std::optional<std::vector<int64_t>>> ints(const char* attr, int input);
  Result<int64_t> constant_dim(const Dim& dim, std::string_view what) const;
  std::string why_unknown(int input) const { return importer_.why_unknown(in(input)); }

  // --- building ---
  Result<ValueId> emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {});
  Result<std::vector<ValueId>> emit_all(OpKind op, std::vector<ValueId> inputs, Attrs attrs, int outputs);
  Result<ValueId> reshape(ValueId x, Shape shape);
  ValueId constant(Tensor value) { return importer_.add_constant(name(), std::move(value)); }
  ValueId scalar(double value, DType dtype);
  Status spend(size_t bytes) { return importer_.spend(bytes); }
  // The usual converter: one IR node, its outputs are the node's.
  Status lower(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {});

 private:
  friend class Importer;
  const onnx::AttributeProto* find_attr(const char* name) const;
  const onnx::AttributeProto* typed_attr(const char* name, onnx::AttributeProto::AttributeType type);

  Importer& importer_;
  const onnx::NodeProto& node_;
  Frame& frame_;
  Status attr_status_;
};

// --- helpers of converters ------------------------------------------------------------------------------

Result<int64_t> normal_axis(int64_t axis, int rank);                                   // into [0, rank)
Result<std::vector<int64_t>> normal_axes(const std::vector<int64_t>& axes, int rank);  // sorted, unique
std::optional<Dim> product(const Shape& shape, int first, int last);                   // of [first, last)

// The tables, one per file of converters; find_converter looks through them all.
std::span<const Converter> elementwise_converters();
std::span<const Converter> layer_converters();
std::span<const Converter> reduce_converters();
std::span<const Converter> shape_converters();
std::span<const Converter> data_converters();
std::span<const Converter> resize_converters();
std::span<const Converter> other_converters();

}  // namespace limber::onnx_io
