// How good a classifier is on a set of images, in all the detail that a page about it shows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/fields.h"

namespace limber {

struct EvaluationRecord {
  static constexpr std::string_view kKind = "eval.result", kOldKind = "";

  // So many images of class `truth` were taken for `predicted`; classes by number. Pairs without images are
  // left out.
  struct Cell {
    uint64_t truth = 0, predicted = 0;
    int64_t count = 0;
    static void fields(auto& self, auto& field) {
      field("truth", self.truth);
      field("predicted", self.predicted);
      field("count", self.count);
    }
  };
  // Images whose confidence (the probability of the predicted class) lies in one of equal parts of 0 to 1.
  struct Bin {
    int64_t images = 0, correct = 0;
    double confidence = 0;  // sum over the images
    static void fields(auto& self, auto& field) {
      field("images", self.images);
      field("correct", self.correct);
      field("confidence", self.confidence);
    }
  };
  struct Mistake {
    std::string image;  // where it is: a file, or DATA and a number
    uint64_t truth = 0, predicted = 0;
    double confidence = 0;
    std::string png;  // a small picture of it in base64; may be empty
    static void fields(auto& self, auto& field) {
      field("image", self.image);
      field("truth", self.truth);
      field("predicted", self.predicted);
      field("confidence", self.confidence);
      field("png", self.png, Need::kOptional);
    }
  };

  std::string model, data;
  std::string which = "test";  // images: "test", "training", "held out" ...
  int64_t images = 0;
  int64_t correct_top5 = 0;
  double loss = 0;  // mean cross entropy
  double seconds = 0;
  std::vector<std::string> classes;
  std::vector<Cell> confusion;  // each pair once
  std::vector<Bin> bins;        // from the least confident
  std::vector<Mistake> worst;   // the most confident first

  static void fields(auto& self, auto& field) {
    field("model", self.model);
    field("data", self.data);
    field("which", self.which);
    field("images", self.images);
    field("correct_top5", self.correct_top5);
    field("loss", self.loss);
    field("seconds", self.seconds);
    field("classes", self.classes);
    field("confusion", self.confusion);
    field("bins", self.bins);
    field("worst", self.worst);
  }
  std::string problem() const;

  struct ClassCount {
    int64_t images = 0, correct = 0, predicted = 0;  // of the class; of these right; taken for it
  };
  std::vector<ClassCount> by_class() const;
  std::vector<Cell> mistaken() const;  // pairs of different classes, the most frequent first
  int64_t correct() const;
  // Expected calibration error: how far confidence is from accuracy, 0 to 1, mean over images.
  double calibration_error() const;
};

}  // namespace limber
