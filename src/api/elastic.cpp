#include "api/convert.h"
#include "api/work.h"
#include "jobs/elastic_work.h"
#include "jobs/engine.h"
#include "jobs/search_job.h"
#include "passes/answers.h"
#include "variant/variant_table.h"

namespace limber::bridge {
namespace {

KnownVariant to_known(const ElasticModel& model, const VariantRecord& record) {
  return {.variant = print(model, record.variant),
          .latency_s = record.latency_s(),
          .measured = record.measured_s.has_value(),
          .accuracy = record.accuracy,
          .images = record.images,
          .memory_bytes = record.memory_bytes};
}

class OpenElastic : public ElasticHandle {
 public:
  OpenElastic(ElasticFolder folder, std::unique_ptr<VariantTable> table)
      : folder_(std::move(folder)), table_(std::move(table)) {}

  Expected<std::vector<KnownVariant>> known(int threads) const override {
    const auto index = table_->index();
    if (!index.ok()) return to_error(index.status());
    std::vector<KnownVariant> variants;
    for (const VariantRecord& record : (*index)->all(group(**index, threads)))
      variants.push_back(to_known(folder_.model, record));
    return variants;
  }

  Expected<KnownVariant> choose(const VariantBudget& budget, int threads) const override {
    const auto index = table_->index();
    if (!index.ok()) return to_error(index.status());
    const VariantGroup known = group(**index, threads);
    const VariantRecord* best =
        (*index)->best(known, {.latency_s = budget.latency_s, .memory_bytes = budget.memory_bytes});
    if (best != nullptr) return to_known(folder_.model, *best);
    return to_error(error(Code::kNotFound,
                          "{}: none of {} known variants ({}) is within {} s and {} bytes; search with this "
                          "budget first",
                          folder_.path, (*index)->all(known).size(), known.context, budget.latency_s,
                          budget.memory_bytes));
  }

  Expected<std::unique_ptr<ModelHandle>> model(const std::string& variant) const override {
    return wrap(make(variant));
  }

 private:
  // Of those judged on different images, which cannot be compared, the ones with most of them.
  static VariantGroup group(const VariantIndex& index, int threads) {
    BuildSpec spec;
    spec.threads = threads;
    const std::string context = machine_context(thread_count(spec));
    const VariantGroup* widest = index.widest(context);
    return widest == nullptr ? VariantGroup{context, ""} : *widest;
  }

  Result<limber::Model> make(const std::string& name) const {
    Variant variant = original_variant(folder_.model);
    if (!name.empty()) {
      LIMBER_ASSIGN(variant, parse_variant(folder_.model, name));
    }
    limber::Model model;
    LIMBER_ASSIGN(const Graph graph, materialize(folder_.model, variant));
    model.graph = split_outputs(graph);
    model.params = folder_.model.params;
    return model;
  }

  const ElasticFolder folder_;
  const std::unique_ptr<VariantTable> table_;
};

Result<std::unique_ptr<ElasticHandle>> open_folder(const std::string& path) {
  LIMBER_TRY(check_folder(path));
  LIMBER_ASSIGN(ElasticFolder folder, load_elastic(path));
  LIMBER_ASSIGN(auto table, VariantTable::open(variants_in(path), folder.model));
  return std::unique_ptr<ElasticHandle>(std::make_unique<OpenElastic>(std::move(folder), std::move(table)));
}

}  // namespace

Expected<std::unique_ptr<ElasticHandle>> open_elastic(const std::string& folder) {
  auto handle = open_folder(folder);
  if (!handle.ok()) return to_error(handle.status());
  return *std::move(handle);
}

}  // namespace limber::bridge
