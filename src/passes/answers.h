// What a model says of an image, where that is more than one class.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace limber {

enum class Answers : uint8_t {
  kClasses,  // [N, classes]: the best class counts
  kPlaces,   // [N, classes, places..]: the best class of each place counts, as in segmentation
  kValues,   // any f32: how near the numbers are, as for boxes, key points, depth
};

std::string_view answers_name(Answers answers);  // "classes", "places", "values"

// kInvalidArgument naming the output's type when it cannot be read so.
Status check_answers(const Graph& model, Answers answers);
// The model with what is compared and taught as its only output: logits for classes, else the first output
// (of places what a Softmax at the end reads).
Graph answers_of(const Graph& model, Answers answers);

// One output in place of several: all of them, each flattened, one behind the other, as "joined"
// f32[N, elements]. A graph with one output stays as it is. kUnsupported naming the output that is not f32,
// has no sample as its first axis, or whose size differs from sample to sample.
Result<Graph> join_outputs(const Graph& graph);
// join_outputs() undone: the outputs as they were, by name, type and order. What is not joined stays.
Graph split_outputs(const Graph& graph);
// Elements of one sample, by joined output; one number for a graph that is not joined.
// REQUIRES: f32 outputs of known size
std::vector<int64_t> output_sizes(const Graph& graph);

}  // namespace limber
