// Opens and parses a file, and repeats the attempt when inputs turn out to be needed as constants.
#include <cstring>
#include <filesystem>
#include <mutex>

#include "io/importer.h"
#include "io/wire.h"

namespace limber {

Result<std::unique_ptr<onnx::ModelProto>> onnx_io::parse_model(std::span<const std::byte> bytes) {
  if (bytes.size() > kProtobufLimit) {
    return error(Code::kResourceExhausted,
                 "{} bytes; protobuf holds at most 2 GiB, save the weights as external data", bytes.size());
  }
  auto proto = std::make_unique<onnx::ModelProto>();
  if (!proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return corrupt("not an ONNX file: protobuf cannot parse its {} bytes", bytes.size());
  }
  if (!proto->has_graph()) return corrupt("not an ONNX model: it has no graph");
  return proto;
}

namespace {

using onnx_io::Importer;
using onnx_io::ModelFile;
using onnx_io::TensorReader;

// Parses a file without its large tensors, which go to `raw`.
Result<std::unique_ptr<onnx::ModelProto>> parse_split(std::span<const std::byte> bytes,
                                                      std::vector<std::span<const std::byte>>& raw) {
  if (bytes.size() <= onnx_io::kProtobufLimit) {
    if (auto split = onnx_io::split_model(bytes, onnx_io::kLargeTensor)) {
      raw = std::move(split->raw);
      return onnx_io::parse_model(std::as_bytes(std::span(split->rest)));
    }
  }
  return onnx_io::parse_model(bytes);
}

// Moves the initialisers out of the proto, so that their bytes are held once.
Status load_initializers(ModelFile& file) {
  for (int i = 0; i < file.proto->graph().initializer_size(); ++i) {
    onnx::TensorProto& proto = *file.proto->mutable_graph()->mutable_initializer(i);
    const auto at = static_cast<size_t>(i);
    const auto raw = at < file.raw.size() ? file.raw[at] : std::span<const std::byte>();
    if (proto.name().empty()) return corrupt("an initialiser has no name");
    if (file.initializers.contains(proto.name()) || file.bad_initializers.contains(proto.name())) {
      return corrupt("initialiser '{}' is defined twice", proto.name());
    }
    auto tensor = file.reader->read(proto, raw, file.owner);
    if (tensor.ok()) {
      file.initializers.emplace(proto.name(), *std::move(tensor));
    } else if (tensor.status().code() == Code::kUnsupported) {
      file.bad_initializers.emplace(proto.name(), tensor.status().message());
    } else {
      return tensor.status().in(fmt::format("initialiser '{}'", proto.name()));
    }
    if (proto.has_raw_data()) delete proto.release_raw_data();
    proto.clear_float_data();
  }
  for (const auto& sparse : file.proto->graph().sparse_initializer()) {
    file.bad_initializers.emplace(sparse.values().name(), "sparse tensors");
  }
  return {};
}

// Exporters write one of several tensors that are equal and an Identity for each of the others: in a network
// that is not trained yet the weights and variances of all normalisations, which are ones. Training tells
// them apart, so each becomes a tensor of its own again. Only vectors: what is larger is hardly equal by
// chance.
Status separate_equals(ModelFile& file) {
  constexpr size_t kMaxCopies = size_t{64} << 20;  // bytes
  onnx::GraphProto& graph = *file.proto->mutable_graph();
  std::set<std::string> taken;  // names that stay what they are
  for (const auto& info : graph.input()) taken.insert(info.name());
  for (const auto& info : graph.output()) taken.insert(info.name());
  size_t copied = 0;
  int kept = 0;
  for (int i = 0; i < graph.node_size(); ++i) {
    const onnx::NodeProto& node = graph.node(i);
    const bool copy = node.op_type() == "Identity" && onnx_io::normal_domain(node.domain()).empty() &&
                      node.input_size() == 1 && node.output_size() == 1;
    const auto of = copy ? file.initializers.find(node.input(0)) : file.initializers.end();
    const bool vector = of != file.initializers.end() && is_float(of->second.dtype()) &&
                        of->second.shape().rank() == 1 && of->second.elements() > 1;
    if (vector && copied + of->second.bytes() <= kMaxCopies && !file.initializers.contains(node.output(0)) &&
        taken.insert(node.output(0)).second) {
      copied += of->second.bytes();
      LIMBER_ASSIGN(Tensor own, Tensor::allocate(of->second.type()));
      std::memcpy(own.raw(), of->second.raw(), own.bytes());
      file.initializers.emplace(node.output(0), std::move(own));
    } else {
      graph.mutable_node()->SwapElements(kept++, i);
    }
  }
  graph.mutable_node()->DeleteSubrange(kept, graph.node_size() - kept);
  return {};
}

// A parsed file; makes models for as long as somebody holds one of them.
class OnnxFile : public ModelOrigin, public std::enable_shared_from_this<OnnxFile> {
 public:
  // `owner`: of the bytes, if they outlive the import. `folder`: of external files; "" refuses them.
  static Result<std::shared_ptr<const OnnxFile>> parse(std::span<const std::byte> bytes,
                                                       const std::shared_ptr<const void>& owner,
                                                       const std::string& label, const std::string& folder,
                                                       const ImportOptions& options) {
    std::shared_ptr<OnnxFile> made(new OnnxFile(options));
    ModelFile& file = made->file_;
    file.label = label;
    file.owner = owner;
    auto proto = parse_split(bytes, file.raw);
    if (!proto.ok()) return proto.status().in(label);
    file.proto = *std::move(proto);
    file.reader = std::make_unique<TensorReader>(folder, options.max_tensor_bytes);
    if (const Status loaded = load_initializers(file); !loaded.ok()) return loaded.in(label);
    if (const Status separated = separate_equals(file); !separated.ok()) return separated.in(label);
    return std::shared_ptr<const OnnxFile>(std::move(made));
  }

  Result<Model> make(const InputShapes& shapes) const override {
    ImportOptions options = options_;
    options.shapes = shapes.shapes;
    options.symbols = shapes.symbols;
    const std::lock_guard lock(mutex_);
    std::set<std::string> fixed;
    while (true) {
      Importer importer(file_, options, fixed);
      auto model = importer.run();
      if (importer.wanted().empty()) {
        if (!model.ok()) return model.status().in(file_.label);
        model->origin = shared_from_this();
        return model;
      }
      fixed.insert(importer.wanted().begin(), importer.wanted().end());
    }
  }

 private:
  explicit OnnxFile(const ImportOptions& options) : options_(options) {}

  const ImportOptions options_;  // shapes and symbols aside
  mutable std::mutex mutex_;
  mutable ModelFile file_;  // an import opens external files
};

Result<std::shared_ptr<const OnnxFile>> open_file(const std::string& path, const ImportOptions& options) {
  LIMBER_ASSIGN(const auto file, os_files().map(path));
  const auto folder = std::filesystem::path(path).parent_path();
  return OnnxFile::parse(file->bytes(), file, path, folder.empty() ? "." : folder.string(), options);
}

}  // namespace

Result<std::shared_ptr<const ModelOrigin>> open_onnx(const std::string& path) {
  LIMBER_ASSIGN(auto file, open_file(path, {}));
  return std::shared_ptr<const ModelOrigin>(std::move(file));
}

Result<Model> import_onnx(const std::string& path, const ImportOptions& options) {
  LIMBER_ASSIGN(const auto file, open_file(path, options));
  return file->make({options.shapes, options.symbols});
}

Result<Model> import_onnx_bytes(std::span<const std::byte> bytes, const std::string& label,
                                const ImportOptions& options) {
  LIMBER_ASSIGN(const auto file, OnnxFile::parse(bytes, nullptr, label, "", options));
  return file->make({options.shapes, options.symbols});
}

Result<Signature> read_signature(const std::string& path) {
  LIMBER_ASSIGN(const auto file, os_files().map(path));
  std::vector<std::span<const std::byte>> raw;
  auto model = parse_split(file->bytes(), raw);
  if (!model.ok()) return model.status().in(path);
  const onnx::ModelProto& proto = **model;
  std::set<std::string> initializers;
  for (const auto& tensor : proto.graph().initializer()) initializers.insert(tensor.name());
  Signature signature{.producer = onnx_io::producer_of(proto)};
  for (const auto& input : proto.graph().input()) {
    if (!initializers.contains(input.name())) signature.inputs.push_back(input.name());
  }
  for (const auto& output : proto.graph().output()) signature.outputs.push_back(output.name());
  for (const auto& opset : proto.opset_import()) {
    if (onnx_io::normal_domain(opset.domain()).empty()) signature.opset = opset.version();
  }
  return signature;
}

Result<Tensor> read_onnx_tensor(const std::string& path) {
  LIMBER_ASSIGN(const std::string bytes, os_files().read(path, size_t{1} << 31));
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return corrupt("{}: not an ONNX tensor", path);
  auto tensor = TensorReader("", size_t{1} << 34).read(proto);
  if (!tensor.ok()) return tensor.status().in(path);
  return tensor;
}

}  // namespace limber
