#include "adapt/strategy.h"

namespace limber::adapt {

Status check_images(const Graph& model, const Tensor& images) {
  LIMBER_ASSERT(model.inputs().size() == 1);
  const TensorType& want = model.value(model.inputs()[0]).type;
  const Shape& shape = images.shape();
  bool fits = images.dtype() == want.dtype && shape.rank() == want.shape.rank() && shape.rank() == 4 &&
              shape.dim(0) > 0;
  for (int axis = 1; fits && axis < 4; ++axis)
    fits = !want.shape[axis].is_constant() || want.shape[axis] == shape[axis];
  if (fits) return {};
  return invalid("a batch of images is {}; the model takes {}, and at least one", images.type().to_string(),
                 want.to_string());
}

}  // namespace limber::adapt
