// A classifier as the source of a job names it: what trainings, evaluations and elastic models begin with.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/preprocess.h"
#include "io/model_card.h"
#include "jobs/source.h"

namespace limber {

// What is saved with `model` about its images and classes: in the checkpoint of a run, or in an ONNX file
// that a run was exported to. Nothing when nothing is.
Result<std::optional<ModelCard>> checkpoint_of(const std::string& model);

struct Classifier {
  Model model;
  Preprocess input;  // what images must become
};

// Loads the model for images as asked for: crop, or else size, is the side of the input, where it is given
// or where the model leaves it open.
Result<Classifier> load_classifier(const ModelSource& source, const ImageOptions& image,
                                   const JobControl& control = {});

// Mean, standard deviation and resizing as in a checkpoint, unless `image` has its own.
void use_recorded(ImageOptions& image, const Preprocess& recorded);

// Are the classes of `data` those of the model? Where their number differs, only names that are the numbers
// of the model's classes say so.
Status check_classes(const Graph& model, const std::vector<std::string>& classes, const std::string& data);

}  // namespace limber
