#include "jobs/identity.h"

#include "base/hash.h"

namespace limber {

std::string identity_of(const Model& model) {
  Hasher hasher;
  hasher.add(hash(model.graph));
  for (const std::string& name : model.params->names()) {
    hasher.add(name);
    const auto tensor = model.params->get(name);
    if (tensor.ok())
      hasher.add(std::string_view(reinterpret_cast<const char*>(tensor->raw()), tensor->bytes()));
  }
  return fmt::format("{:016x}", hasher.digest());
}

}  // namespace limber
