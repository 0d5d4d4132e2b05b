// Private to this folder: a parsed ONNX file and the tensors in it.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/file.h"
#include "tensor/tensor.h"

namespace limber::onnx_io {

std::optional<DType> dtype_from_onnx(int32_t data_type);
int32_t dtype_to_onnx(DType dtype);
std::string onnx_type_name(int32_t data_type);

// Reads TensorProtos. Nothing is allocated before the bytes are known to be there.
class TensorReader {
 public:
  // `folder` holds the external files; empty: they are refused.
  TensorReader(std::string folder, size_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}
  Result<Tensor> read(const onnx::TensorProto& proto);

 private:
  Result<Tensor> read_external(const onnx::TensorProto& proto, TensorType type);
  Result<std::shared_ptr<const MappedFile>> open(const std::string& location);

  std::string folder_;
  size_t max_bytes_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

Result<std::unique_ptr<onnx::ModelProto>> parse_model(std::span<const std::byte> bytes);

// A parsed file; survives the attempts of one import.
struct ModelFile {
  std::string label;
  std::unique_ptr<onnx::ModelProto> proto;
  std::unique_ptr<TensorReader> reader;
  std::map<std::string, Tensor> initializers;
  std::map<std::string, std::string> bad_initializers;  // name -> why it cannot be used
};

}  // namespace limber::onnx_io
