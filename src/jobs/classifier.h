// A classifier as the source of a job names it: what trainings, evaluations and elastic models begin with.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/preprocess.h"
#include "io/model_card.h"
#include "jobs/judged_images.h"
#include "jobs/source.h"

namespace limber {

struct Recorded : ModelCard {
  std::optional<TrainingSplit> trained;  // of a checkpoint
};

// What is saved with `model` about its images and classes: in the checkpoint of a run, or in an ONNX file
// that a run was exported to. Nothing when nothing is.
Result<std::optional<Recorded>> checkpoint_of(const std::string& model);

struct Classifier {
  Model model;
  Preprocess input;  // what images must become
};

// Loads the model for images as asked for: crop, or else size, is the side of the input, where it is given
// or where the model leaves it open.
Result<Classifier> load_classifier(const ModelSource& source, const ImageOptions& image,
                                   const JobControl& control = {});

// The same for `batch` images at a time, where `source` asks for no number; a model whose own cannot be
// changed to that, as of a training that fixed it, keeps its own, and source.batch is 0.
Result<Classifier> load_classifier(ModelSource& source, int64_t batch, const ImageOptions& image,
                                   const JobControl& control);

// Mean, standard deviation and resizing as in a checkpoint, unless `image` has its own.
void use_recorded(ImageOptions& image, const Preprocess& recorded);

// Does nothing say how the model's images must be normalised? `image`: with what is recorded.
bool is_unsaid(const ImageOptions& image);

// Tells `control` when the answers on images of `data` say that the model, called `name`, was trained with
// other pixels than `input` makes. A hint: where none can be had, nothing is said. `session`: of the model,
// in scope of its threads; its input and output change.
void tell_doubts(const std::string& name, const Dataset& data, const Preprocess& input, Session& session,
                 const JobControl& control);
// The same with a session of its own, for the model that `options` name.
void tell_doubts(const JobOptions& options, const Dataset& data, const Classifier& classifier,
                 const JobControl& control);

// Are the classes of `data` those of the model? Where their number differs, only names that are the numbers
// of the model's classes say so.
Status check_classes(const Graph& model, const std::vector<std::string>& classes, const std::string& data);

}  // namespace limber
