// A checkpoint: a folder with a model, its weights, the optimiser's state and where training stands.
// docs/checkpoint-format.md describes the files.
#pragma once

#include <string>

#include "base/file.h"
#include "ir/model.h"
#include "train/manifest.h"

namespace limber {

struct Checkpoint {
  std::string path;
  CheckpointInfo info;
  Graph graph;                         // exactly the one that was saved
  std::shared_ptr<Parameters> params;  // with optimiser state
};

// Writes the folder `path` as a whole or not at all: after a crash at any moment there is the old folder
// or the new one. `params` may hold more than the graph reads: what starts with "optimizer/" is saved too,
// the rest is not. Fails, leaving what was there, when a weight is not finite: is_divergence().
Status save_checkpoint(const std::string& path, const Graph& graph, const Parameters& params,
                       const CheckpointInfo& info, const FileSystem& files = os_files());

// Untrusted: every byte is checked against the manifest, and everything against everything else.
Result<Checkpoint> load_checkpoint(const std::string& path);

// The same checks; gives the manifest only.
Result<CheckpointInfo> check_checkpoint(const std::string& path);

// Is there a manifest in this folder?
bool is_checkpoint(const std::string& path);
// The plain ONNX file in a checkpoint.
std::string model_in(const std::string& checkpoint);

}  // namespace limber
