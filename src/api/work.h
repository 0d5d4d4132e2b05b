// The public functions that do whole jobs, in terms of src/jobs. public.cpp shows them to programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/bridge.h"
#include "limber/elastify.h"
#include "limber/evaluate.h"
#include "limber/train.h"

namespace limber::bridge {

Expected<TrainReport> train(const TrainSettings& settings, const TrainControl& control);
Expected<EvaluateReport> evaluate(const EvaluateSettings& settings, const Control& control);
Expected<ElastifyReport> elastify(const ElastifySettings& settings, const Control& control);
Expected<SearchReport> search(const SearchSettings& settings, const Control& control);

class ElasticHandle {
 public:
  virtual ~ElasticHandle() = default;
  virtual Expected<std::vector<KnownVariant>> known(int threads) const = 0;
  virtual Expected<KnownVariant> choose(const VariantBudget& budget, int threads) const = 0;
  virtual Expected<std::unique_ptr<ModelHandle>> model(const std::string& variant) const = 0;
};
Expected<std::unique_ptr<ElasticHandle>> open_elastic(const std::string& folder);

}  // namespace limber::bridge
