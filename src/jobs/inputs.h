// From files to the inputs of a session.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "jobs/source.h"

namespace limber {

// An image by its name, or builtin:image, which is drawn.
bool is_image(std::string_view file);

// What one input of the model is read from.
struct InputFiles {
  size_t input = 0;                // index among the model's inputs
  std::vector<std::string> files;  // one .npy, or images, which make a batch
};

// Splits "[NAME=]FILE" arguments among the model's inputs: named ones go where they say; an unnamed .npy
// to the next input that has none; all unnamed images to one. kNotFound for a name that does not exist.
Result<std::vector<InputFiles>> assign_files(const Graph& graph, const std::vector<std::string>& arguments);

// The tensor for one input of this type, whose dimensions may be open. Images are resized, cropped and
// normalised to fit; .npy of f64 or i32 is converted where the model wants f32 or i64.
Result<Tensor> read_input(const InputFiles& files, const std::string& name, const TensorType& type,
                          const ImageOptions& options);

// Values of open dimensions, and new shapes for inputs whose fixed first dimension does not match.
struct Adaptation {
  std::map<std::string, int64_t> dims;
  std::map<std::string, std::vector<int64_t>> shapes;
};
// Fails naming the input when another dimension does not match.
Result<Adaptation> adapt_shapes(const Graph& graph, const std::vector<InputFiles>& files,
                                const std::vector<Tensor>& tensors);

}  // namespace limber
