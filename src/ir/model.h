// A network with its weights, wherever it came from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"

namespace limber {

// What inputs are, where it is not what the model says.
struct InputShapes {
  std::map<std::string, std::vector<int64_t>> shapes;  // input -> dimensions; -1 keeps one as it is
  std::map<std::string, int64_t> symbols;              // named dimension ("batch") -> value
};

struct Model;

// What a model was made from, such as a parsed file. A graph alone does not tell which of the numbers in it
// come from the shapes of its inputs (the target of a Reshape, a branch that was taken): for other shapes it
// is made again from here. Immutable; any thread may use it.
class ModelOrigin {
 public:
  virtual ~ModelOrigin() = default;
  // Exactly what reading it anew would give, without reading anything.
  virtual Result<Model> make(const InputShapes& shapes) const = 0;
};

struct Model {
  Graph graph;
  std::shared_ptr<Parameters> params;  // holds exactly the parameters that `graph` names
  int64_t opset = 0;                   // of ONNX's default domain, where it came from a file
  int64_t ir_version = 0;
  std::string producer;                       // "pytorch 1.13.1"
  std::shared_ptr<const ModelOrigin> origin;  // null: other shapes are not possible; holds a file's structure
};

// The model for inputs of other shapes. What is not given is as in the file, not as in `model`. Weights are
// those of `model`, also where they have changed, and shared with it. kUnsupported without an origin.
Result<Model> with_shapes(const Model& model, const InputShapes& shapes);

}  // namespace limber
