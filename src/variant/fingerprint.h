// What makes a model this model: SHA-256 of structure and weights.
#pragma once

#include <string>
#include <vector>

#include "variant/elastic_model.h"

namespace limber {

// Of a model as it is now. Reads every weight once (over a gigabyte a second), and leaves files' pages out of
// memory.
class Fingerprints {
 public:
  static Result<Fingerprints> of(const ElasticModel& model);

  // Of all there is: two models with the same have the same variants, which compute the same.
  const std::string& model() const { return model_; }
  // Of what the variant uses, and nothing else: it stays when other alternatives come, go or learn, and
  // changes when one of its own does. REQUIRES: check_variant(model, variant), for the model these are of
  std::string variant(const ElasticModel& model, const Variant& variant) const;

 private:
  std::vector<std::vector<std::string>> alternatives_;  // by block
  std::vector<std::string> exits_;
  std::string model_;
};

}  // namespace limber
