#include "variant/variant_table.h"

#include <filesystem>

#include "base/sha256.h"
#include "io/sqlite.h"
#include "variant/fingerprint.h"

namespace limber {
namespace {

constexpr SqlFormat kFormat{.schema =
                                "CREATE TABLE variants ("
                                "context TEXT NOT NULL, data TEXT NOT NULL, variant TEXT NOT NULL, "
                                "fingerprint TEXT NOT NULL, predicted_s REAL NOT NULL, measured_s REAL, "
                                "accuracy REAL NOT NULL, images INTEGER NOT NULL, "
                                "memory_bytes INTEGER NOT NULL, parameter_bytes INTEGER NOT NULL, "
                                "flops REAL NOT NULL, energy_j REAL, "
                                "PRIMARY KEY (context, data, variant)) STRICT, WITHOUT ROWID",
                            .version = 2};

constexpr std::string_view kSelect =
    "SELECT context, data, variant, fingerprint, predicted_s, measured_s, accuracy, images, memory_bytes, "
    "parameter_bytes, flops, energy_j FROM variants";
constexpr std::string_view kThisOne = " WHERE context = ?1 AND data = ?2 AND variant = ?3";

// A row as it is stored: the variant is a name.
struct StoredRecord {
  VariantRecord record;
  std::string name, fingerprint;
};

Result<StoredRecord> read_row(const SqlStatement& row, const std::string& path) {
  StoredRecord stored;
  VariantRecord& r = stored.record;
  r.group = {std::string(row.text(0)), std::string(row.text(1))};
  stored.name = row.text(2);
  stored.fingerprint = row.text(3);
  r.predicted_s = row.number(4);
  r.measured_s = row.maybe_number(5);
  r.accuracy = row.number(6);
  r.images = row.integer(7);
  r.memory_bytes = static_cast<uint64_t>(row.integer(8));
  r.parameter_bytes = static_cast<uint64_t>(row.integer(9));
  r.flops = row.number(10);
  r.energy_j = row.maybe_number(11);
  Status status = check_record(r);
  if (status.ok() && !Sha256::is_hex(stored.fingerprint)) status = invalid("a fingerprint that is none");
  if (!status.ok())
    return corrupt("{}: {}; delete the file, and what it held is found anew", path, status.message());
  return stored;
}

Status write_row(SqlStatement& insert, const StoredRecord& stored) {
  const VariantRecord& r = stored.record;
  insert.bind(1, r.group.context).bind(2, r.group.data).bind(3, stored.name).bind(4, stored.fingerprint);
  insert.bind(5, r.predicted_s).bind(6, r.measured_s).bind(7, r.accuracy).bind(8, r.images);
  insert.bind(9, static_cast<int64_t>(r.memory_bytes)).bind(10, static_cast<int64_t>(r.parameter_bytes));
  insert.bind(11, r.flops).bind(12, r.energy_j);
  return insert.finish();
}

// The names by which variants are known; graphs are not needed for that.
ElasticModel names_of(const ElasticModel& model) {
  ElasticModel names;
  for (const Block& block : model.blocks) {
    Block& made = names.blocks.emplace_back(Block{block.name, {}});
    for (const Alternative& a : block.alternatives) made.alternatives.push_back({a.name, a.span, {}, 0});
  }
  for (const Exit& exit : model.exits) names.exits.push_back({exit.name, exit.after, {}});
  return names;
}

}  // namespace

// Turns rows into what holds for the model, and back.
struct VariantTable::Model {
  ElasticModel names;
  Fingerprints fingerprints;

  Result<StoredRecord> store(const VariantRecord& record) const {
    LIMBER_TRY(check_record(record));
    LIMBER_TRY(check_variant(names, record.variant));
    StoredRecord stored{record, {}, fingerprints.variant(names, record.variant)};
    stored.name = print(names, canonical(names, record.variant));
    return stored;
  }
  // Fills in the variant, or says why there is none.
  Status resolve(StoredRecord& stored) const {
    LIMBER_ASSIGN(stored.record.variant, parse_variant(names, stored.name));
    const std::string now = fingerprints.variant(names, stored.record.variant);
    if (now == stored.fingerprint) return {};
    return invalid(
        "'{}' was judged on another model, or its blocks have learnt since: fingerprint {:.12}, now {:.12}",
        stored.name, stored.fingerprint, now);
  }
};

// All rows, as of a state of the file.
struct VariantTable::Contents {
  uint64_t state = 0;
  std::shared_ptr<const VariantIndex> index;
  std::vector<StoredRecord> refused;
  std::string reason;
};

VariantTable::VariantTable(std::unique_ptr<SqlDatabase> file, std::unique_ptr<const Model> model)
    : model_(std::move(model)), file_(std::move(file)) {}
VariantTable::~VariantTable() = default;

Result<std::unique_ptr<VariantTable>> VariantTable::open(const std::string& path, const ElasticModel& model) {
  LIMBER_ASSIGN(Fingerprints fingerprints, Fingerprints::of(model));
  auto known = std::make_unique<const Model>(Model{names_of(model), std::move(fingerprints)});
  LIMBER_ASSIGN(auto file, SqlDatabase::open(path, kFormat));
  std::unique_ptr<VariantTable> table(new VariantTable(std::move(file), std::move(known)));
  LIMBER_TRY(table->index().status());
  return table;
}

Status VariantTable::put(std::span<const VariantRecord> records) {
  std::vector<StoredRecord> rows;
  for (const VariantRecord& record : records) {
    LIMBER_ASSIGN(rows.emplace_back(), model_->store(record));
  }
  const std::lock_guard lock(mutex_);
  LIMBER_ASSIGN(auto transaction, SqlDatabase::Transaction::begin(*file_));
  LIMBER_ASSIGN(SqlStatement insert, file_->prepare("INSERT OR REPLACE INTO variants VALUES "
                                                    "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"));
  for (const StoredRecord& row : rows) LIMBER_TRY(write_row(insert, row));
  return transaction.commit();
}

Status VariantTable::erase_row(const VariantGroup& group, const std::string& name) {
  LIMBER_ASSIGN(SqlStatement erase, file_->prepare(fmt::format("DELETE FROM variants{}", kThisOne)));
  return erase.bind(1, group.context).bind(2, group.data).bind(3, name).finish();
}

Status VariantTable::erase(const VariantGroup& group, const Variant& variant) {
  LIMBER_TRY(check_variant(model_->names, variant));
  const std::string name = print(model_->names, canonical(model_->names, variant));
  const std::lock_guard lock(mutex_);
  LIMBER_TRY(erase_row(group, name));
  if (file_->changed_rows() > 0) return {};
  return error(Code::kNotFound, "{}: no variant '{}' on '{}'", file_->path(), name, group.context);
}

Status VariantTable::erase_refused() {
  const std::lock_guard lock(mutex_);
  LIMBER_ASSIGN(const Contents* const now, contents());
  LIMBER_ASSIGN(auto transaction, SqlDatabase::Transaction::begin(*file_));
  for (const StoredRecord& stored : now->refused) LIMBER_TRY(erase_row(stored.record.group, stored.name));
  return transaction.commit();
}

Result<std::optional<VariantRecord>> VariantTable::get(const VariantGroup& group,
                                                       const Variant& variant) const {
  LIMBER_TRY(check_variant(model_->names, variant));
  const std::string name = print(model_->names, canonical(model_->names, variant));
  const std::lock_guard lock(mutex_);
  LIMBER_ASSIGN(SqlStatement select, file_->prepare(fmt::format("{}{}", kSelect, kThisOne)));
  LIMBER_ASSIGN(const bool found, select.bind(1, group.context).bind(2, group.data).bind(3, name).next());
  if (!found) return std::optional<VariantRecord>();
  LIMBER_ASSIGN(StoredRecord stored, read_row(select, file_->path()));
  if (!model_->resolve(stored).ok()) return std::optional<VariantRecord>();
  return std::optional(std::move(stored.record));
}

Result<const VariantTable::Contents*> VariantTable::contents() const {
  LIMBER_ASSIGN(const uint64_t state, file_->state());
  if (contents_ != nullptr && contents_->state == state) return contents_.get();
  auto now = std::make_unique<Contents>();
  now->state = state;
  std::vector<VariantRecord> records;
  LIMBER_ASSIGN(SqlStatement select, file_->prepare(kSelect));
  for (;;) {
    LIMBER_ASSIGN(const bool more, select.next());
    if (!more) break;
    LIMBER_ASSIGN(StoredRecord stored, read_row(select, file_->path()));
    if (const Status status = model_->resolve(stored); status.ok()) {
      records.push_back(std::move(stored.record));
    } else {
      if (now->refused.empty()) now->reason = status.message();
      now->refused.push_back(std::move(stored));
    }
  }
  now->index = std::make_shared<const VariantIndex>(std::move(records));
  contents_ = std::move(now);
  return contents_.get();
}

Result<std::shared_ptr<const VariantIndex>> VariantTable::index() const {
  const std::lock_guard lock(mutex_);
  LIMBER_ASSIGN(const Contents* const now, contents());
  return now->index;
}

Result<std::string> VariantTable::refused() const {
  const std::lock_guard lock(mutex_);
  LIMBER_ASSIGN(const Contents* const now, contents());
  if (!now->refused.empty())
    return fmt::format(
        "{}: {} of its records do not hold for this model and are left out: {}; judge them again "
        "with 'limber search' or 'limber exits'",
        file_->path(), now->refused.size(), now->reason);
  const auto old = std::filesystem::path(file_->path()).replace_extension(".mdb");
  std::error_code ignored;
  if (!std::filesystem::exists(old, ignored)) return std::string();
  return fmt::format(
      "{}: an earlier version wrote it, without the names of what it speaks of; it is not read. Judge "
      "variants again with 'limber search' and delete it",
      old.string());
}

}  // namespace limber
