// Builds small ONNX files in memory, valid or not.
#pragma once

#include <onnx/onnx_pb.h>

#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "io/onnx.h"

namespace limber::test {

using AnyDim = std::variant<int, const char*>;  // a number or a name

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17) {
    model.set_ir_version(8);
    opset_ = model.add_opset_import();
    opset_->set_version(opset);
    graph().set_name("g");
  }

  onnx::GraphProto& graph() { return *model.mutable_graph(); }

  ModelBuilder& input(const std::string& name, const std::vector<AnyDim>& dims,
                      int32_t type = onnx::TensorProto::FLOAT) {
    auto* info = graph().add_input();
    info->set_name(name);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const AnyDim& d : dims) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (const int* n = std::get_if<int>(&d)) {
        dim->set_dim_value(*n);
      } else {
        dim->set_dim_param(std::get<const char*>(d));
      }
    }
    return *this;
  }

  ModelBuilder& output(const std::string& name) {
    auto* info = graph().add_output();
    info->set_name(name);
    info->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    return *this;
  }

  onnx::TensorProto& floats(const std::string& name, std::vector<int64_t> dims, std::vector<float> values) {
    auto* t = tensor(name, onnx::TensorProto::FLOAT, dims);
    t->set_raw_data(values.data(), values.size() * sizeof(float));
    return *t;
  }
  // The same value everywhere.
  onnx::TensorProto& filled(const std::string& name, std::vector<int64_t> dims, float value) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return floats(name, dims, std::vector<float>(static_cast<size_t>(n), value));
  }
  onnx::TensorProto& ints(const std::string& name, std::vector<int64_t> values) {
    auto* t = tensor(name, onnx::TensorProto::INT64, {static_cast<int64_t>(values.size())});
    for (int64_t v : values) t->add_int64_data(v);
    return *t;
  }
  onnx::TensorProto& scalar_int(const std::string& name, int64_t value) {
    auto* t = tensor(name, onnx::TensorProto::INT64, {});
    t->add_int64_data(value);
    return *t;
  }
  onnx::TensorProto* tensor(const std::string& name, int32_t type, const std::vector<int64_t>& dims) {
    auto* t = graph().add_initializer();
    t->set_name(name);
    t->set_data_type(type);
    for (int64_t d : dims) t->add_dims(d);
    return t;
  }

  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
    auto* n = graph().add_node();
    fill(*n, op, inputs, outputs);
    return *n;
  }

  static void fill(onnx::NodeProto& n, const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs) {
    n.set_op_type(op);
    n.set_name(op + "_" + (outputs.empty() ? "" : outputs[0]));
    for (const auto& i : inputs) n.add_input(i);
    for (const auto& o : outputs) n.add_output(o);
  }

  std::string bytes() const { return model.SerializeAsString(); }
  Result<Model> import(const ImportOptions& options = {}) const {
    const std::string text = bytes();
    return import_onnx_bytes(std::as_bytes(std::span(text)), "test.onnx", options);
  }

  onnx::ModelProto model;

 private:
  onnx::OperatorSetIdProto* opset_;
};

inline void set_int(onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(value);
}
inline void set_float(onnx::NodeProto& node, const std::string& name, float value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::FLOAT);
  a->set_f(value);
}
inline void set_ints(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INTS);
  for (int64_t v : values) a->add_ints(v);
}
inline void set_string(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s(value);
}

}  // namespace limber::test
