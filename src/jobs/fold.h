#pragma once

#include "ir/model.h"

namespace limber {

// The model after the inference passes, with everything that depends on weights alone computed: a
// convolution followed by batch normalisation becomes one convolution with other weights. Open
// dimensions stay open. The result shares no weights with `model` that it changed.
Result<Model> fold_for_inference(const Model& model);

}  // namespace limber
