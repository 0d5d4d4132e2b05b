// A classifier and its data, as the command line names them: what train and eval share.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/image_arguments.h"
#include "cli/options.h"
#include "data/dataset.h"
#include "train/manifest.h"

namespace limber {

// What the checkpoint says that `model` names, a run or a checkpoint; nothing when it names no folder.
Result<std::optional<CheckpointInfo>> checkpoint_of(const std::string& model);

struct Classifier {
  Model model;
  AugmentOptions input;  // what images must become
};

// Loads the model for images as asked for: --crop, or else --size, is the side of the input, where it is
// given or where the model leaves it open; --mean and --std apply.
Result<Classifier> load_classifier(const CommonOptions& options, const ImageOptions& image);

// Mean, standard deviation and resizing as in a checkpoint, unless the command line has its own.
void use_recorded(ImageOptions& image, const AugmentOptions& recorded);

}  // namespace limber
