#include "jobs/elastic_report.h"

#include <filesystem>

#include "jobs/elastic_work.h"
#include "record/record_file.h"
#include "variant/elastic_folder.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

// Is there one name that all blocks with such an alternative have?
bool is_uniform(const ElasticModel& model, const Variant& variant) {
  const std::string* name = nullptr;
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    if (variant.choices[b] <= 0) continue;
    const std::string& chosen = model.blocks[b].alternatives[static_cast<size_t>(variant.choices[b])].name;
    if (name != nullptr && *name != chosen) return false;
    name = &chosen;
  }
  if (name == nullptr) return false;
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    if (variant.choices[b] != 0) continue;
    for (const Alternative& other : model.blocks[b].alternatives) {
      if (other.name == *name && other.span == 1) return false;
    }
  }
  return true;
}

VariantPoint::Kind kind_of(const ElasticModel& model, const Variant& variant) {
  if (variant.exit >= 0 || variant.confidence > 0) return VariantPoint::Kind::kExits;
  if (variant == original_variant(model)) return VariantPoint::Kind::kOriginal;
  return is_uniform(model, variant) ? VariantPoint::Kind::kUniform : VariantPoint::Kind::kOther;
}

VariantPoint point_of(const ElasticModel& model, const VariantRecord& record) {
  return {.name = print(model, record.variant),
          .kind = kind_of(model, record.variant),
          .predicted_s = record.predicted_s,
          .measured_s = record.measured_s.value_or(0),
          .accuracy = record.accuracy,
          .images = record.images,
          .parameter_bytes = static_cast<double>(record.parameter_bytes)};
}

Status read_variants(const std::string& folder, const ElasticModel& model, ElasticReport& report) {
  if (!std::filesystem::exists(variants_in(folder))) return {};
  LIMBER_ASSIGN(const auto table, VariantTable::open(variants_in(folder), model));
  LIMBER_ASSIGN(const auto index, table->index());
  for (const VariantGroup& group : index->groups()) {
    ElasticReport::Machine machine{fmt::format("{} on {}", group.data, group.context), {}, {}};
    for (const VariantRecord& record : index->all(group)) machine.points.push_back(point_of(model, record));
    for (const VariantRecord* record : index->front(group)) machine.front.push_back(point_of(model, *record));
    report.machines.push_back(std::move(machine));
  }
  return {};
}

// What a line says; one that cannot be read is named.
template <typename T>
void take(const RecordLine& line, const std::string& file, std::vector<T>& to, ElasticReport& report) {
  if (!line.is<T>()) return;
  if (auto record = line.as<T>(); record.ok())
    to.push_back(*std::move(record));
  else
    report.damaged.push_back(fmt::format("{}:{}: {}", file, line.number, record.status().message()));
}

Status read_history(const std::string& folder, ElasticReport& report) {
  const std::string file = history_in(folder);
  const auto history = read_records(file);
  if (history.status().code() == Code::kNotFound) return {};
  LIMBER_TRY(history.status());
  report.damaged = history->damaged;
  for (const RecordLine& line : history->lines) {
    take(line, file, report.searches, report);
    take(line, file, report.exits, report);
  }
  return {};
}

}  // namespace

Result<ElasticReport> read_elastic_report(const std::string& folder) {
  LIMBER_ASSIGN(const ElasticFolder found, load_elastic(folder));
  ElasticReport report{.folder = std::filesystem::path(folder).filename().string(),
                       .blocks = found.model.blocks.size(),
                       .variants = count_variants(found.model)};
  for (const Block& block : found.model.blocks) {
    for (size_t a = 1; a < block.alternatives.size(); ++a) {
      const Alternative& one = block.alternatives[a];
      report.alternatives.push_back({block.name, one.name, one.span, one.error});
    }
  }
  LIMBER_TRY(read_variants(folder, found.model, report));
  LIMBER_TRY(read_history(folder, report));
  return report;
}

}  // namespace limber
