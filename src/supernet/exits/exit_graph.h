// Exits as graphs: small classifiers on what the first few blocks give.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "variant/elastic_model.h"

namespace limber {

inline constexpr std::string_view kExitPrefix = "exit/";  // of the parameters that exits have of their own
inline constexpr std::string_view kClassifierName = "classifier";  // of the linear layer of an exit

// What an exit is made of. On feature maps [N,C,H,W]: a 3x3 convolution with stride 2 (depthwise, then 1x1,
// as few parameters must do), `blocks` more of them with a residual connection, each with normalisation, the
// mean over the map, a linear layer. On tokens [N,T,C] the mean over the tokens, on vectors [N,C] the
// vectors, normalised, and a linear layer.
struct ExitDesign {
  int64_t channels = 0;  // of the convolutions; 0: there are none
  int blocks = 0;
  double kept = 1;  // of the linear layer's weights, once make_sparse() has left out the others

  bool operator==(const ExitDesign&) const = default;
};

// Can a classifier read this?
bool fits_exit(const TensorType& features);

// Elements of the parameters of such an exit; a number of a feature counts as one. REQUIRES: fits_exit
int64_t exit_elements(const TensorType& features, int64_t classes, const ExitDesign& design);
// The largest design within so many elements; nothing when not even a linear layer is. `kept`: see
// ExitDesign.
std::optional<ExitDesign> design_exit(const TensorType& features, int64_t classes, int64_t max_elements,
                                      double kept = 1);

// What runs after so many blocks reads. REQUIRES: 0 <= after < number of blocks
const TensorType& features_after(const ElasticModel& model, int after);

// An exit for this model, its linear layer dense, which gives what the model gives: logits, or probabilities
// when the model ends in Softmax. Its parameters are added to the model's as "exit/<name>/..", drawn from the
// seed; the exit itself is not added. kInvalidArgument when the model is no classifier, `name` is taken, or
// the design does not fit.
Result<Exit> make_exit(ElasticModel& model, int after, const ExitDesign& design, std::string_view name,
                       uint64_t seed);

// Takes parameters that only the exit has, and what optimisers keep for them, out of the model's.
void forget_parameters(ElasticModel& model, const Exit& exit);

// Bytes of these parameters by those of the model.
Result<double> storage_of(const ElasticModel& model, const std::set<std::string>& parameters);
// The same of the parameters that only exits have.
Result<double> exit_storage(const ElasticModel& model);

}  // namespace limber
