// ONNX in and out. Files are untrusted: whatever is wrong with one ends in a Status that names the
// file and the node, never in a crash or a large allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "ir/model.h"

namespace limber {

// Among the dimensions that are given for an input: open, whatever the file says.
inline constexpr int64_t kOpenDim = -2;

struct ImportOptions {
  // Input name -> dimensions, replacing what the file says; -1 keeps a dimension as the file has it.
  std::map<std::string, std::vector<int64_t>> shapes;
  // Value of a named dimension ("batch"), wherever an input has it.
  std::map<std::string, int64_t> symbols;
  // Used when an input must be known at compile time (the shape of a Reshape, say). An input that was
  // used so is not an input of the graph any more.
  std::map<std::string, Tensor> known_inputs;
  // No value in the graph may need more than this.
  size_t max_tensor_bytes = size_t{1} << 34;
};

// Fails with kUnsupported and one line per node when some nodes cannot be lowered. The model has its file as
// origin: with_shapes() changes its inputs without reading it again.
// Parameters in external files stay mapped: the files must not change while the model lives.
Result<Model> import_onnx(const std::string& path, const ImportOptions& options = {});
// `label` names the bytes in messages. External data is refused. The bytes may go after the call.
Result<Model> import_onnx_bytes(std::span<const std::byte> bytes, const std::string& label,
                                const ImportOptions& options = {});

// A file that was read, before anything is made of it: for those who have to try several shapes. The same
// limits as above hold for everything it makes.
Result<std::shared_ptr<const ModelOrigin>> open_onnx(const std::string& path);

// What a file says about its own interface, whether or not it can be run.
struct Signature {
  std::vector<std::string> inputs;  // in the file's order, without initialisers
  std::vector<std::string> outputs;
  int64_t opset = 0;
  std::string producer;
};
Result<Signature> read_signature(const std::string& path);

// A single tensor in a file of its own (a TensorProto), as ONNX's test data has them.
Result<Tensor> read_onnx_tensor(const std::string& path);

struct ExportOptions {
  int64_t opset = 17;          // 17 or 18
  bool external_data = false;  // weights to `<path>.data`; done unasked above 2 GiB, protobuf's limit
  std::string producer = "limber";
  std::map<std::string, std::string> metadata;  // by key, beside the graph
  // Parameters whose bytes are in another file beside the model: it refers to them instead of holding
  // them. By name, where they start in `shared_file`.
  std::string shared_file;
  std::map<std::string, uint64_t> shared;
};

// Plain ONNX: fused operators are written as their parts. The file is replaced as a whole or not at all.
Status export_onnx(const Graph& graph, const Parameters& params, const std::string& path,
                   const ExportOptions& options = {}, const FileSystem& files = os_files());

// One operator of a file, at the version the file asks for.
struct OperatorUse {
  std::string op_type;
  std::string domain;  // "" is ONNX's own
  int64_t version = 0;
  int64_t count = 0;
  bool forward = false;
  bool gradient = false;  // training may go through it; false for what has no gradient by nature
  std::string reason;     // why not, when `forward` is false
};
// Every operator in the file, subgraphs and functions included, sorted by name. Fails only when the file
// cannot be read as ONNX.
Result<std::vector<OperatorUse>> list_operators(const std::string& path);

// Every operator of ONNX's own domain that import_onnx lowers itself, sorted by name.
struct SupportedOperator {
  std::string op_type;
  int64_t first_version = 0, last_version = 0;
  bool gradient = false;
};
std::vector<SupportedOperator> supported_operators();

}  // namespace limber
