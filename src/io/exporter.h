// Private to this folder: writing the IR as ONNX nodes.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/onnx.h"
#include "ops/op_def.h"

namespace onnx {
class GraphProto;
class ModelProto;
class TensorProto;
}  // namespace onnx

namespace limber::onnx_io {

using Names = std::vector<std::string>;  // of ONNX values; "" is an absent one

class Exporter {
 public:
  Exporter(const Graph& graph, const Parameters& params, const ExportOptions& options);
  ~Exporter();
  Status run();
  onnx::ModelProto& model() { return *model_; }

  // --- for the functions that write one operator ---
  const Graph& graph() const { return graph_; }
  int64_t opset() const { return options_.opset; }
  const TensorType& type(ValueId v) const { return graph_.type(v); }
  std::string name(ValueId v) const;  // "" for kNoValue
  Names names(const std::vector<ValueId>& values) const;

  // Adds an ONNX node; attributes that ONNX writes as tensors or types have methods of their own.
  void write(std::string_view op_type, Names inputs, Names outputs, const Attrs& attrs = {});
  std::string node(std::string_view op_type, Names inputs, const Attrs& attrs = {});  // to a fresh name
  std::string constant(const Tensor& value);
  std::string ints(const std::vector<int64_t>& values);  // i64, one axis
  std::string number(double value, DType dtype);         // rank 0
  // i64, one axis; symbolic dimensions are computed from the inputs' shapes.
  Result<std::string> dims(const Shape& shape);

 private:
  Status name_values();
  Status add_inputs();
  Status add_initializers();
  Status add_outputs();
  std::string fresh(std::string_view wanted);
  std::string fresh_node_name(std::string_view op_type);
  Result<std::string> symbol(std::string_view symbol);
  Result<std::string> dim(const Dim& dim);
  void add_initializer(const std::string& name, const Tensor& tensor);

  const Graph& graph_;
  const Parameters& params_;
  ExportOptions options_;
  std::unique_ptr<onnx::ModelProto> model_;
  onnx::GraphProto* proto_;
  std::vector<std::string> value_names_;
  std::set<std::string> taken_;
  std::set<std::string> interface_;                          // names of inputs and parameters
  std::map<std::string, std::string, std::less<>> symbols_;  // symbol -> name of the i64[1] that holds it
  std::string node_name_;
  std::set<std::string> node_names_;  // ONNX Runtime refuses a name that comes twice
};

// Writes one node of the IR. kUnsupported where ONNX of the asked opset cannot say it.
Status export_node(Exporter& e, const Node& node);
Status export_elementwise(Exporter& e, const Node& node, bool* done);
Status export_layer(Exporter& e, const Node& node, bool* done);
Status export_movement(Exporter& e, const Node& node, bool* done);

// out = activation(x)
void export_activation(Exporter& e, const Activation& activation, const std::string& x, DType dtype,
                       const std::string& out);

}  // namespace limber::onnx_io
