// Which operators a file uses, and whether they can be run.
#include <algorithm>

#include "io/importer.h"

namespace limber {
namespace {

using onnx_io::Converter;
using onnx_io::kMaxDepth;

struct Key {
  std::string op_type, domain;
  int64_t version;
  auto operator<=>(const Key&) const = default;
};

class Counter {
 public:
  explicit Counter(const onnx::ModelProto& model) : model_(model) {}

  std::vector<OperatorUse> run() {
    std::map<std::string, int64_t> opsets;
    for (const auto& o : model_.opset_import()) opsets[onnx_io::normal_domain(o.domain())] = o.version();
    if (!opsets.contains("")) opsets[""] = 1;
    count(model_.graph().node(), opsets, 0);
    for (const auto& function : model_.functions()) {
      std::map<std::string, int64_t> inner = opsets;
      for (const auto& o : function.opset_import()) inner[onnx_io::normal_domain(o.domain())] = o.version();
      count(function.node(), inner, 0);
    }
    std::vector<OperatorUse> out;
    for (const auto& [key, uses] : counts_) out.push_back(describe(key, uses));
    return out;
  }

 private:
  void count(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
             const std::map<std::string, int64_t>& opsets, int depth) {
    for (const auto& node : nodes) {
      const std::string domain = onnx_io::normal_domain(node.domain());
      const auto opset = opsets.find(domain);
      ++counts_[{node.op_type(), domain, opset == opsets.end() ? 0 : opset->second}];
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g() && depth < kMaxDepth) count(attribute.g().node(), opsets, depth + 1);
      }
    }
  }

  bool is_local(const Key& key) const {
    return std::any_of(model_.functions().begin(), model_.functions().end(), [&](const auto& f) {
      return f.name() == key.op_type && onnx_io::normal_domain(f.domain()) == key.domain;
    });
  }

  OperatorUse describe(const Key& key, int64_t uses) const {
    OperatorUse use{key.op_type, key.domain, key.version, uses};
    const Converter* converter = key.domain.empty() ? onnx_io::find_converter(key.op_type) : nullptr;
    const bool in_range = converter != nullptr && key.version >= converter->first_version &&
                          key.version <= converter->last_version;
    use.forward =
        in_range || is_local(key) || onnx_io::has_function_body(key.op_type, key.domain, key.version);
    use.gradient = use.forward && onnx_io::has_gradient(key.op_type);
    if (use.forward) return use;
    use.reason = converter == nullptr ? onnx_io::unsupported_reason(key.op_type, key.domain)
                                      : "only supported in " + onnx_io::supported_range(*converter);
    return use;
  }

  const onnx::ModelProto& model_;
  std::map<Key, int64_t> counts_;
};

}  // namespace

Result<std::vector<OperatorUse>> list_operators(const std::string& path) {
  LIMBER_ASSIGN(const auto file, os_files().map(path));
  auto model = onnx_io::parse_model(file->bytes());
  if (!model.ok()) return model.status().in(path);
  return Counter(**model).run();
}

}  // namespace limber
