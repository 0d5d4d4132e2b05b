#include "ir/model.h"

namespace limber {

Result<Model> with_shapes(const Model& model, const InputShapes& shapes) {
  if (model.origin == nullptr) return unsupported("the shapes of this model's inputs cannot be changed");
  LIMBER_ASSIGN(Model made, model.origin->make(shapes));
  const std::vector<std::string> names = made.params->names();
  if (names == model.params->names()) {
    made.params = model.params;
    return made;
  }
  // Another shape may take another branch, which has weights of its own.
  for (const std::string& name : names) {
    if (!model.params->contains(name)) continue;
    LIMBER_ASSIGN(Tensor tensor, model.params->get(name));
    made.params->set(name, std::move(tensor));
  }
  return made;
}

}  // namespace limber
