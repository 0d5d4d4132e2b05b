// From a model to an elastic one: every block gets alternatives from the operator catalogue.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "supernet/expand/partition.h"
#include "variant/elastic_model.h"

namespace limber {

struct ExpandOptions {
  PartitionOptions partition;
  std::vector<std::string> operators;  // names of the catalogue; all of them when empty
  // All parameters together, the model's own included, are at most this many times the model's.
  double size_limit = 2.7;
  // An alternative must save at least this share of the work of what it replaces: of its flops, and of its
  // time where that is measured.
  double min_gain = 0.05;
  // Seconds that a graph takes on the device; see measure_latency(). Flops alone decide when it is empty.
  std::function<Result<double>(const Graph& graph, const std::shared_ptr<Parameters>& params)> measure;
  // How far an alternative, with parameters of its own, is from the original: see Alternative::error. Where
  // two stand for the same blocks, one that is neither faster nor nearer than the other is left out.
  std::function<Result<double>(const Graph& original, const Graph& alternative,
                               const std::shared_ptr<Parameters>& own)>
      judge;
  // After each operator, with the number of operators that are done and that there are.
  std::function<void(std::string_view name, int done, int count)> progress;
};

// The blocks of partition(), each with the original first and then what the catalogue makes of it, by the
// order of the catalogue. New parameters are added to `params` as "alt/<block>/<alternative>/<name>"; those
// of the model stay as they are. Where the size limit leaves something out, those that save most flops for
// their parameters stay. On failure `params` is unchanged.
Result<ElasticModel> expand(const Graph& model, std::shared_ptr<Parameters> params,
                            const ExpandOptions& options = {});

// The same blocks with nothing but the originals; of a model in which no block could be replaced one block,
// which is all of it. kUnsupported when the model has several inputs or outputs.
Result<ElasticModel> without_alternatives(const Graph& model, std::shared_ptr<Parameters> params);

}  // namespace limber
