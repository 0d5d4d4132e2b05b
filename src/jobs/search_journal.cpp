#include "jobs/search_journal.h"

#include <set>

#include "base/hash.h"

namespace limber {
namespace {

constexpr const char* kNote = "search";  // says which images the accuracies in the table are of

std::string name_of(const EvaluationSet& set) {
  Hasher hasher;
  for (size_t b = 0; b < set.images.size(); ++b) {
    hasher.add({reinterpret_cast<const char*>(set.images[b].raw()), set.images[b].bytes()});
    for (const int64_t label : set.labels[b]) hasher.add(static_cast<uint64_t>(label));
  }
  return fmt::format("{} images {:016x}", set.count(), hasher.digest());
}

}  // namespace

Result<std::unique_ptr<SearchJournal>> SearchJournal::open(ElasticWork& work) {
  LIMBER_ASSIGN(auto table, VariantTable::open(variants_in(work.folder.path)));
  std::unique_ptr<SearchJournal> journal(new SearchJournal(work, std::move(table)));
  std::string& note = work.folder.info.notes[kNote];
  const std::string name = name_of(work.images);
  if (note != name) {
    LIMBER_TRY(journal->forget());
    note = name;
    LIMBER_TRY(save_elastic_info(work.folder.path, work.folder.info));
  }
  LIMBER_TRY(journal->read());
  return journal;
}

Status SearchJournal::forget() {
  LIMBER_ASSIGN(const auto index, table_->index());
  for (const std::string& context : index->contexts()) {
    if (is_exits_context(context)) continue;  // none of the search's
    for (const VariantRecord& record : index->all(context))
      LIMBER_TRY(table_->erase(context, record.variant));
  }
  return {};
}

Status SearchJournal::read() {
  LIMBER_ASSIGN(const auto index, table_->index());
  std::set<std::vector<int>> seen;
  for (const std::string& context : index->contexts()) {
    if (is_exits_context(context)) continue;
    for (const VariantRecord& record : index->all(context)) {
      const Variant& variant = record.variant;
      if (record.images != work_.images.count()) continue;
      if (!check_variant(work_.folder.model, variant).ok() || !seen.insert(variant.choices).second) continue;
      known_.push_back({variant, work_.table.predict(variant), record.accuracy});
    }
  }
  return {};
}

Result<VariantRecord> SearchJournal::record(const Scored& scored) const {
  LIMBER_ASSIGN(const GraphCost cost, cost_of(work_.folder.model, scored.variant));
  VariantRecord record{.context = work_.context(), .variant = scored.variant, .predicted_s = scored.seconds};
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
