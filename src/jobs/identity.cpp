#include "jobs/identity.h"

#include "base/sha256.h"

namespace limber {
namespace {

std::string_view content_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw()), tensor.bytes()};
}

}  // namespace

Result<std::string> identity_of(const Model& model) {
  Sha256 sum;
  sum.add(print(model.graph));
  for (const Value& value : model.graph.values()) {
    if (value.role == Role::kConstant)  // the text holds small ones only
      sum.add(value.name).add(content_of(value.constant));
  }
  for (const std::string& name : model.params->names()) {
    LIMBER_ASSIGN(const Tensor tensor, model.params->get(name));
    sum.add(name).add(content_of(tensor));
  }
  return sum.hex();
}

}  // namespace limber
