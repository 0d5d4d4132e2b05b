#pragma once

#include "serve/protocol/infer_request.h"

namespace limber {

// A model whose input "image" may be given as encoded images.
inline ServeStatus image_model(ModelMetadata& to) {
  to.name = "pets";
  to.inputs = {{"image", DType::kF32, {-1, 3, 8, 8}}};
  to.takes_images = true;
  return {};
}
inline ServeStatus number_model(ModelMetadata& to) {
  to.name = "numbers";
  to.inputs = {{"x", DType::kF32, {-1}}};
  return {};
}
inline ServeStatus missing_model(ModelMetadata&) { return {Refusal::kNotFound, "no model 'pets'"}; }

}  // namespace limber
