#include "jobs/search_journal.h"

#include <set>

namespace limber {

Result<std::unique_ptr<SearchJournal>> SearchJournal::open(ElasticWork& work) {
  LIMBER_ASSIGN(auto table, VariantTable::open(variants_in(work.folder.path), work.folder.model));
  std::unique_ptr<SearchJournal> journal(new SearchJournal(work, std::move(table)));
  LIMBER_TRY(journal->read());
  return journal;
}

Status SearchJournal::read() {
  LIMBER_ASSIGN(const auto index, table_->index());
  std::set<std::vector<int>> seen;
  for (const VariantGroup& group : index->groups()) {
    if (group.data != images_ || is_exits_context(group.context)) continue;  // exits are none of the search's
    for (const VariantRecord& record : index->all(group)) {
      const Variant& variant = record.variant;
      if (!seen.insert(variant.choices).second) continue;
      known_.push_back({variant, work_.table.predict(variant), record.accuracy});
    }
  }
  return {};
}

Result<VariantRecord> SearchJournal::record(const Scored& scored) const {
  LIMBER_ASSIGN(const GraphCost cost, cost_of(work_.folder.model, scored.variant));
  VariantRecord record{
      .group = {work_.context(), images_}, .variant = scored.variant, .predicted_s = scored.seconds};
  record.accuracy = scored.accuracy;
  record.images = work_.images.count();
  record.parameter_bytes = cost.parameter_bytes;
  record.flops = cost.flops;
  return record;
}

Status SearchJournal::add(std::span<const Scored> scored) {
  std::vector<VariantRecord> records;
  for (const Scored& one : scored) {
    LIMBER_ASSIGN(VariantRecord made, record(one));
    records.push_back(std::move(made));
  }
  return table_->put(records);
}

Status SearchJournal::add_measured(const Scored& scored, double seconds, uint64_t memory_bytes) {
  LIMBER_ASSIGN(VariantRecord made, record(scored));
  made.measured_s = seconds;
  made.memory_bytes = memory_bytes;
  return table_->put(made);
}

}  // namespace limber
