// A model that is to be served, with everything a server must know of it. Whoever opens files makes this.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/preprocess.h"
#include "serve/choice_index.h"
#include "variant/elastic_model.h"

namespace limber {

struct ServedVariant {
  std::string name;  // as print() shows it
  Variant variant;
  ChoicePoint point;  // as it was measured on this machine, with as many threads
  bool timed = true;  // false: `point` has no latency yet; it is timed when the variant is made ready
  // False: never chosen, as it cannot be compiled, or was judged by other images than the rest.
  bool usable = true;
};

struct ServedSource {
  std::string name, version = "1";
  Graph graph;                                  // the model as it is
  std::shared_ptr<Parameters> params;           // of the graph and of all variants
  std::shared_ptr<const ElasticModel> elastic;  // null: the graph is all there is
  std::vector<ServedVariant> variants;          // to choose from; at least one
  std::string judged_by;                        // the images that their accuracies are of; empty: none
  std::vector<std::string> classes;
  std::optional<Preprocess> images;  // how images become input 0; nothing: it takes none
  std::string note;                  // what whoever starts the server should know; may be empty
};

// A network that answers in the place of the original, with the same inputs and outputs. Never changes.
struct ServedNet {
  std::string name;  // for people; empty: the original as it came
  Graph graph;
  WeightSnapshot weights;
};

// What a model takes and gives. Where the first dimension of every input and output is the same open one, it
// is a batch: requests bring any number of rows, which the server puts together as it likes.
struct ServedSignature {
  struct Port {
    std::string name;
    TensorType type;  // of one row, with its first dimension 1; of everything where there is no batch
    bool operator==(const Port&) const = default;
  };
  std::vector<Port> inputs, outputs;
  bool batched = false;
  bool operator==(const ServedSignature&) const = default;
};

// Open dimensions other than the batch are not served: kInvalidArgument names one and what to do.
Result<ServedSignature> signature_of(const Graph& graph);

}  // namespace limber
