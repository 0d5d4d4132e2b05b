// What is known of variants on machines, on disk: variants.mdb in the folder of an elastic model.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "variant/variant_index.h"

namespace limber {

// An LMDB file: a crash at any moment leaves the state before or after a put(), never half. Any number of
// processes may have it open, and any thread may use a table; one writes at a time, the others wait. Copies
// of the folder are independent; the file must not be on a network file system. Untrusted: the whole file is
// checked when it is opened, every record when it is read.
class VariantTable {
 public:
  // Makes the file when it is not there. A file or folder that must not be written is opened for reading.
  // kCorrupt when it is damaged: it may then be deleted, and what it held measured anew.
  static Result<std::unique_ptr<VariantTable>> open(const std::string& path);
  ~VariantTable();
  VariantTable(const VariantTable&) = delete;
  VariantTable& operator=(const VariantTable&) = delete;

  // Adds or replaces what is known of a variant in a context; of several all or none. Durable on return,
  // which takes milliseconds: give many at once. kIo when the disk is full, kResourceExhausted when the table
  // is.
  Status put(const VariantRecord& record) { return put(std::span(&record, 1)); }
  Status put(std::span<const VariantRecord> records);
  // Fails with kNotFound when it is not there.
  Status erase(std::string_view context, const Variant& variant);
  Status erase_all();  // when the model has changed, nothing that was measured holds any more

  Result<std::optional<VariantRecord>> get(std::string_view context, const Variant& variant) const;
  // All records as they are now. The same object until this or another process changes the table: keep it to
  // look things up without touching the file.
  Result<std::shared_ptr<const VariantIndex>> index() const;

 private:
  class File;
  explicit VariantTable(std::shared_ptr<File> file);

  const std::shared_ptr<File> file_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::shared_ptr<const VariantIndex> index_;
  mutable uint64_t index_id_ = 0;  // the transaction that index_ shows
};

// The stored form: JSON with a version. Untrusted: kCorrupt, or kUnsupported for a newer version.
std::string format_record(const VariantRecord& record);
Result<VariantRecord> parse_record(std::string_view text);

}  // namespace limber
