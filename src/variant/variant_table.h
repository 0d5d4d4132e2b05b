// What is known of variants on machines, on disk: variants.db in the folder of an elastic model.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "variant/variant_index.h"

namespace limber {

class SqlDatabase;

// An SQLite file, opened for one model. Variants are stored by names, each with the fingerprint of what it
// uses of the model: a record of another model, or of blocks that have learnt since, is refused instead of
// speaking of something else. A crash at any moment leaves the state before or after a put(), never half. Any
// number of processes may have it open, and any thread may use a table; one writes at a time, the others
// wait. Copies of the folder are independent; the file must not be on a network file system. Untrusted: the
// whole file is checked when it is opened, every record when it is read.
class VariantTable {
 public:
  // Makes the file when it is not there. A file or folder that must not be written is opened for reading.
  // kCorrupt when it is damaged: it may then be deleted, and what it held measured anew. The model may go or
  // change afterwards; the table is that of the model as it was.
  static Result<std::unique_ptr<VariantTable>> open(const std::string& path, const ElasticModel& model);
  ~VariantTable();
  VariantTable(const VariantTable&) = delete;
  VariantTable& operator=(const VariantTable&) = delete;

  // Adds or replaces what is known of a variant in a group; of several all or none. Variants are stored in
  // their canonical form. Durable on return, which takes milliseconds: give many at once. kIo when the disk
  // is full, kInvalidArgument when the model has no such variant.
  Status put(const VariantRecord& record) { return put(std::span(&record, 1)); }
  Status put(std::span<const VariantRecord> records);
  // Fails with kNotFound when it is not there.
  Status erase(const VariantGroup& group, const Variant& variant);
  // What does not hold for this model, or not any more.
  Status erase_refused();

  Result<std::optional<VariantRecord>> get(const VariantGroup& group, const Variant& variant) const;
  // All records that hold for this model, as they are now. The same object until this or another process
  // changes the table: keep it to look things up without touching the file.
  Result<std::shared_ptr<const VariantIndex>> index() const;

  // What index() left out and why, with what to do about it, for people; empty when there is nothing to say.
  Result<std::string> refused() const;

 private:
  struct Model;
  struct Contents;
  VariantTable(std::unique_ptr<SqlDatabase> file, std::unique_ptr<const Model> model);
  // These hold the mutex already.
  Status erase_row(const VariantGroup& group, const std::string& name);
  Result<const Contents*> contents() const;

  const std::unique_ptr<const Model> model_;
  mutable std::mutex mutex_;  // of what follows
  const std::unique_ptr<SqlDatabase> file_;
  mutable std::unique_ptr<const Contents> contents_;
};

}  // namespace limber
