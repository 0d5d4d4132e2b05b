// A network with its weights, wherever it came from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ir/graph.h"
#include "ir/parameters.h"

namespace limber {

struct Model {
  Graph graph;
  std::shared_ptr<Parameters> params;  // holds exactly the parameters that `graph` names
  int64_t opset = 0;                   // of ONNX's default domain, where it came from a file
  int64_t ir_version = 0;
  std::string producer;  // "pytorch 1.13.1"
};

}  // namespace limber
