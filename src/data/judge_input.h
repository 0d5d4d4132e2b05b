// Is a network fed what it was trained with? Its own answers on real images say so: fed wrongly, it gives
// much the same answer to everything, or none with conviction.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "data/dataset.h"
#include "data/preprocess.h"

namespace limber {

// f32[batch,C,H,W] -> f32[batch,classes]: logits, or probabilities.
using AnswerImages = std::function<Result<Tensor>(const Tensor& images)>;

struct JudgeOptions {
  int64_t batch = 16;   // what `answer` is given, always
  int64_t images = 32;  // at most; whole batches, spread over the data
};

struct InputFit {
  std::string_view preset;  // "" where it is the preprocessing that was given
  double confidence = 0;    // mean of the largest probability
  // What an answer tells about which image was seen, in nats: the entropy of the mean answer less the mean
  // entropy of answers. Confidence alone would praise a network that calls everything a goldfish.
  double information = 0;
};

struct InputVerdict {
  InputFit given, best;   // the same when nothing fits clearly better
  bool doubtful = false;  // is `best` clearly better? Never of a handful of images
  std::string advice;     // for people; empty unless doubtful
};

// Compares `given` with presets that networks in circulation were trained with, of which only the
// normalisation is tried. Fails where `answer` or an image does, or when answers are no numbers.
Result<InputVerdict> judge_input(const Dataset& data, const Preprocess& given, const AnswerImages& answer,
                                 const JudgeOptions& options = {});

}  // namespace limber
