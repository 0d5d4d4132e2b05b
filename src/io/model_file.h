// Private to this folder: a parsed ONNX file and the tensors in it.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "tensor/tensor.h"

namespace limber::onnx_io {

std::optional<DType> dtype_from_onnx(int64_t data_type);
int32_t dtype_to_onnx(DType dtype);
std::string onnx_type_name(int64_t data_type);

// What is smaller is copied out of a file: it costs little, and a tensor that is a constant must be aligned.
inline constexpr size_t kLargeTensor = size_t{16} << 10;

// Reads TensorProtos. Nothing is allocated before the bytes are known to be there.
class TensorReader {
 public:
  // `folder` holds the external files; empty: they are refused.
  TensorReader(std::string folder, size_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}
  // `raw`: raw_data that was taken out of the proto, bytes of `owner`. Without an owner it is copied; with
  // one large floating-point tensors stay where they are, whatever their alignment.
  Result<Tensor> read(const onnx::TensorProto& proto, std::span<const std::byte> raw = {},
                      const std::shared_ptr<const void>& owner = nullptr);

 private:
  Result<Tensor> read_external(const onnx::TensorProto& proto, TensorType type);
  Result<std::shared_ptr<const MappedFile>> open(const std::string& location);

  std::string folder_;
  size_t max_bytes_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

inline constexpr size_t kProtobufLimit = (size_t{1} << 31) - 1;
Result<std::unique_ptr<onnx::ModelProto>> parse_model(std::span<const std::byte> bytes);

// A parsed file; survives the attempts of one import.
struct ModelFile {
  std::string label;
  std::unique_ptr<onnx::ModelProto> proto;
  std::vector<std::span<const std::byte>> raw;  // by initialiser: as in SplitModel; may be shorter
  std::shared_ptr<const void> owner;            // of these bytes, if they outlive the import
  std::unique_ptr<TensorReader> reader;
  std::map<std::string, Tensor> initializers;
  std::map<std::string, std::string> bad_initializers;  // name -> why it cannot be used
};

}  // namespace limber::onnx_io
