// What is saved in an ONNX file beside the network, so that it can be used without asking: what images must
// become, and what classes are called.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/preprocess.h"

namespace limber {

struct ModelCard {
  Preprocess input;
  std::vector<std::string> classes;  // in the order of the outputs
};

// Metadata by key, as ExportOptions takes it.
std::map<std::string, std::string> card_texts(const ModelCard& card);

// Untrusted. Nothing when the file has no card; kCorrupt when it has one that makes no sense. Reads no more
// than the file's metadata, however large the network is.
Result<std::optional<ModelCard>> read_card(const std::string& onnx_file);

}  // namespace limber
