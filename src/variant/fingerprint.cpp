#include "variant/fingerprint.h"

#include <map>

#include "base/sha256.h"

namespace limber {
namespace {

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw()), tensor.bytes()};
}

class GraphReader {
 public:
  explicit GraphReader(const Parameters& params) : params_(params) {}

  Result<std::string> read(const Graph& graph) {
    Sha256 sum;
    sum.add(print(graph));
    for (const Value& value : graph.values()) {
      if (value.role == Role::kConstant)  // the text holds small ones only
        sum.add(value.name).add(bytes_of(value.constant));
    }
    for (const std::string& name : parameters_of(graph)) {
      LIMBER_ASSIGN(const std::string* const weights, weights_of(name));
      sum.add(name).add(*weights);
    }
    return sum.hex();
  }

 private:
  // Those that graphs share are read once.
  Result<const std::string*> weights_of(const std::string& name) {
    const auto [there, added] = weights_.try_emplace(name);
    if (!added) return &there->second;
    LIMBER_ASSIGN(const Tensor tensor, params_.get(name));
    there->second = Sha256().add(tensor.type().to_string()).add(bytes_of(tensor)).hex();
    params_.page_out(name);
    return &there->second;
  }

  const Parameters& params_;
  std::map<std::string, std::string> weights_;
};

void add_exit(Sha256& sum, const Exit& exit, const std::string& fingerprint) {
  sum.add("exit").add(exit.name).add(std::to_string(exit.after)).add(fingerprint);
}

void add_alternative(Sha256& sum, const Block& block, const Alternative& a, const std::string& fingerprint) {
  sum.add("alternative").add(block.name).add(a.name).add(std::to_string(a.span)).add(fingerprint);
}

}  // namespace

Result<Fingerprints> Fingerprints::of(const ElasticModel& model) {
  GraphReader reader(*model.params);
  Fingerprints made;
  Sha256 sum;
  LIMBER_ASSIGN(const std::string base, reader.read(model.base));
  sum.add("model").add(base);
  for (const Block& block : model.blocks) {
    auto& row = made.alternatives_.emplace_back();
    for (const Alternative& alternative : block.alternatives) {
      LIMBER_ASSIGN(row.emplace_back(), reader.read(alternative.graph));
      add_alternative(sum, block, alternative, row.back());
    }
  }
  for (const Exit& exit : model.exits) {
    LIMBER_ASSIGN(made.exits_.emplace_back(), reader.read(exit.graph));
    add_exit(sum, exit, made.exits_.back());
  }
  made.model_ = sum.hex();
  return made;
}

std::string Fingerprints::variant(const ElasticModel& model, const Variant& variant) const {
  Sha256 sum;
  sum.add("variant");
  const int end = variant.exit < 0 ? static_cast<int>(model.blocks.size())
                                   : model.exits[static_cast<size_t>(variant.exit)].after;
  for (size_t b = 0; b < static_cast<size_t>(end); ++b) {
    if (variant.choices[b] == Variant::kCovered) continue;
    const auto choice = static_cast<size_t>(variant.choices[b]);
    add_alternative(sum, model.blocks[b], model.blocks[b].alternatives[choice], alternatives_[b][choice]);
  }
  for (size_t e = 0; e < model.exits.size(); ++e) {
    // With a confidence an image may leave at any of them.
    if (variant.confidence > 0 || variant.exit == static_cast<int>(e))
      add_exit(sum, model.exits[e], exits_[e]);
  }
  return sum.hex();
}

}  // namespace limber
