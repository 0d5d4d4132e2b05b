#include "variant/variant_table.h"

#include <lmdb.h>

#include <cerrno>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/hash.h"
#include "io/json_fields.h"
#include "variant/lmdb_check.h"

namespace limber {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kRecordVersion = 1;
constexpr size_t kMapBytes = size_t{256} << 20;  // of address space; about a million records
constexpr mdb_mode_t kMode = 0644;

Status lmdb_failure(const std::string& path, const char* what, int rc) {
  const bool damaged = rc == MDB_INVALID || rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND ||
                       rc == MDB_VERSION_MISMATCH || rc == MDB_PANIC;
  const Code code = rc == ENOENT         ? Code::kNotFound
                    : rc == MDB_MAP_FULL ? Code::kResourceExhausted
                    : damaged            ? Code::kCorrupt
                                         : Code::kIo;
  return error(code, "{}: cannot {}: {}", path, what, mdb_strerror(rc));
}

// LMDB's keys are short, so a hash stands for context and variant; the record says both again.
struct Key {
  uint64_t words[2];
  MDB_val val() { return {sizeof(words), words}; }
};
Key key_of(std::string_view context, const Variant& variant) {
  const std::string text = print(variant);
  return {{Hasher().add(context).add(text).digest(), Hasher().add(text).add(context).digest()}};
}

std::string_view text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

struct Abort {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};
using Transaction = std::unique_ptr<MDB_txn, Abort>;  // given up unless committed

struct CloseCursor {
  void operator()(MDB_cursor* cursor) const { mdb_cursor_close(cursor); }
};
using Cursor = std::unique_ptr<MDB_cursor, CloseCursor>;

}  // namespace

// One per file and process: LMDB must not open a file twice.
class VariantTable::File {
 public:
  static Result<std::shared_ptr<File>> open(const std::string& path);
  File(std::string path, MDB_env* env) : path_(std::move(path)), env_(env) {}
  ~File() { mdb_env_close(env_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // The whole file is sound. Readers beside it and a writer do not disturb.
  Status check() const;
  Result<Transaction> begin(unsigned flags) const;
  Status commit(Transaction txn) const;
  // Of the last change, whoever made it.
  uint64_t last_id() const;

  Status fail(const char* what, int rc) const { return lmdb_failure(path_, what, rc); }
  const std::string& path() const { return path_; }
  MDB_dbi records() const { return records_; }

 private:
  static Result<std::shared_ptr<File>> open_new(const std::string& path);
  Status open_records();

  const std::string path_;
  MDB_env* const env_;
  MDB_dbi records_ = 0;
};

namespace {

// Files that are open in this process. The last user's going and another's coming exclude each other.
struct OpenFiles {
  std::mutex mutex;
  std::map<std::string, std::pair<std::shared_ptr<void>, int>> files;  // with their number of users
};
OpenFiles& open_files() {
  static OpenFiles* files = new OpenFiles;
  return *files;
}

Status check_header(const std::string& path) {
  const auto file = os_files().map(path);
  if (!file.ok()) return file.status().code() == Code::kNotFound ? Status() : file.status();
  const Status status = check_lmdb_header((*file)->bytes(), kMapBytes);
  if (status.ok()) return status;
  return error(status.code(), "{}: {}; delete the file, and what it held is measured again", path,
               status.message());
}

}  // namespace

Result<std::shared_ptr<VariantTable::File>> VariantTable::File::open(const std::string& path) {
  std::error_code ec;
  const std::string name = fs::weakly_canonical(path, ec).string();
  if (ec) return error(Code::kIo, "{}: {}", path, ec.message());
  OpenFiles& all = open_files();
  const std::lock_guard lock(all.mutex);
  auto found = all.files.find(name);
  if (found == all.files.end()) {
    LIMBER_ASSIGN(std::shared_ptr<File> file, open_new(path));
    found = all.files.emplace(name, std::pair(std::shared_ptr<void>(std::move(file)), 0)).first;
  }
  ++found->second.second;
  const auto release = [name](File*) {
    OpenFiles& there = open_files();
    const std::lock_guard guard(there.mutex);
    const auto it = there.files.find(name);
    if (--it->second.second == 0) there.files.erase(it);
  };
  return std::shared_ptr<File>(static_cast<File*>(found->second.first.get()), release);
}

Result<std::shared_ptr<VariantTable::File>> VariantTable::File::open_new(const std::string& path) {
  LIMBER_TRY(check_header(path));
  for (const unsigned flags : {0U, unsigned{MDB_RDONLY}}) {
    MDB_env* env = nullptr;
    if (const int rc = mdb_env_create(&env); rc != 0) return lmdb_failure(path, "open", rc);
    auto file = std::make_shared<File>(path, env);
    mdb_env_set_mapsize(env, kMapBytes);
    const int rc = mdb_env_open(env, path.c_str(), flags | MDB_NOSUBDIR | MDB_NOTLS, kMode);
    if ((rc == EACCES || rc == EROFS) && flags == 0) continue;
    if (rc != 0) return file->fail("open", rc);
    int dead = 0;
    mdb_reader_check(env, &dead);  // of processes that crashed
    LIMBER_TRY(file->check());
    LIMBER_TRY(file->open_records());
    return file;
  }
  return lmdb_failure(path, "open", EACCES);
}

Status VariantTable::File::open_records() {
  LIMBER_ASSIGN(Transaction txn, begin(MDB_RDONLY));
  if (const int rc = mdb_dbi_open(txn.get(), nullptr, 0, &records_); rc != 0) return fail("open", rc);
  return commit(std::move(txn));
}

Status VariantTable::File::check() const {
  constexpr int kAttempts = 20;
  for (int attempt = 1;; ++attempt) {
    // As long as it runs, nobody writes over the pages that it shows.
    LIMBER_ASSIGN(const Transaction txn, begin(MDB_RDONLY));
    LIMBER_ASSIGN(const auto bytes, os_files().map(path_));
    const Status status = check_lmdb(bytes->bytes(), mdb_txn_id(txn.get()));
    if (status.code() == Code::kNotFound && attempt < kAttempts) continue;  // others have been writing
    return status.ok() ? status : error(status.code(), "{}: damaged: {}; delete it", path_, status.message());
  }
}

Result<Transaction> VariantTable::File::begin(unsigned flags) const {
  MDB_txn* txn = nullptr;
  if (const int rc = mdb_txn_begin(env_, nullptr, flags, &txn); rc != 0)
    return fail(flags == 0 ? "write" : "read", rc);
  return Transaction(txn);
}

Status VariantTable::File::commit(Transaction txn) const {
  const int rc = mdb_txn_commit(txn.release());
  return rc == 0 ? Status() : fail("write", rc);
}

uint64_t VariantTable::File::last_id() const {
  MDB_envinfo info;
  mdb_env_info(env_, &info);
  return info.me_last_txnid;
}

VariantTable::VariantTable(std::shared_ptr<File> file) : file_(std::move(file)) {}
VariantTable::~VariantTable() = default;

Result<std::unique_ptr<VariantTable>> VariantTable::open(const std::string& path) {
  LIMBER_ASSIGN(std::shared_ptr<File> file, File::open(path));
  std::unique_ptr<VariantTable> table(new VariantTable(std::move(file)));
  LIMBER_TRY(table->index().status());
  return table;
}

Status VariantTable::put(std::span<const VariantRecord> records) {
  for (const VariantRecord& record : records) LIMBER_TRY(check_record(record));
  LIMBER_ASSIGN(Transaction txn, file_->begin(0));
  for (const VariantRecord& record : records) {
    Key key = key_of(record.context, record.variant);
    std::string text = format_record(record);
    MDB_val at = key.val(), value{text.size(), text.data()};
    if (const int rc = mdb_put(txn.get(), file_->records(), &at, &value, 0); rc != 0)
      return file_->fail("write", rc);
  }
  return file_->commit(std::move(txn));
}

Status VariantTable::erase(std::string_view context, const Variant& variant) {
  LIMBER_ASSIGN(Transaction txn, file_->begin(0));
  Key key = key_of(context, variant);
  MDB_val at = key.val();
  const int rc = mdb_del(txn.get(), file_->records(), &at, nullptr);
  if (rc == MDB_NOTFOUND)
    return error(Code::kNotFound, "{}: no variant '{}' on '{}'", file_->path(), print(variant), context);
  return rc == 0 ? file_->commit(std::move(txn)) : file_->fail("write", rc);
}

Status VariantTable::erase_all() {
  LIMBER_ASSIGN(Transaction txn, file_->begin(0));
  const int rc = mdb_drop(txn.get(), file_->records(), 0);
  return rc == 0 ? file_->commit(std::move(txn)) : file_->fail("write", rc);
}

Result<std::optional<VariantRecord>> VariantTable::get(std::string_view context,
                                                       const Variant& variant) const {
  LIMBER_ASSIGN(const Transaction txn, file_->begin(MDB_RDONLY));
  Key key = key_of(context, variant);
  MDB_val at = key.val(), value{};
  const int rc = mdb_get(txn.get(), file_->records(), &at, &value);
  if (rc == MDB_NOTFOUND) return std::optional<VariantRecord>();
  if (rc != 0) return file_->fail("read", rc);
  auto record = parse_record(text_of(value));
  if (!record.ok()) return record.status().in(file_->path());
  if (record->context != context || record->variant != variant) return std::optional<VariantRecord>();
  return std::optional(*std::move(record));
}

Result<std::shared_ptr<const VariantIndex>> VariantTable::index() const {
  const std::lock_guard lock(mutex_);
  if (index_ != nullptr && index_id_ == file_->last_id()) return index_;
  LIMBER_ASSIGN(const Transaction txn, file_->begin(MDB_RDONLY));
  MDB_cursor* opened = nullptr;
  if (const int rc = mdb_cursor_open(txn.get(), file_->records(), &opened); rc != 0)
    return file_->fail("read", rc);
  const Cursor cursor(opened);
  std::vector<VariantRecord> records;
  MDB_val at{}, value{};
  int rc = 0;
  while ((rc = mdb_cursor_get(cursor.get(), &at, &value, MDB_NEXT)) == 0) {
    auto record = parse_record(text_of(value));
    if (!record.ok()) return record.status().in(file_->path());
    Key key = key_of(record->context, record->variant);
    if (text_of(key.val()) != text_of(at))
      return corrupt("{}: a record of '{}' is stored under another key; delete the file", file_->path(),
                     print(record->variant));
    records.push_back(*std::move(record));
  }
  if (rc != MDB_NOTFOUND) return file_->fail("read", rc);
  index_ = std::make_shared<const VariantIndex>(std::move(records));
  index_id_ = mdb_txn_id(txn.get());
  return index_;
}

// --- records --------------------------------------------------------------------------------------------

std::string format_record(const VariantRecord& r) {
  ordered_json out = {{"version", kRecordVersion},
                      {"context", r.context},
                      {"variant", print(r.variant)},
                      {"predicted_s", r.predicted_s},
                      {"accuracy", r.accuracy},
                      {"images", r.images},
                      {"memory_bytes", r.memory_bytes},
                      {"parameter_bytes", r.parameter_bytes},
                      {"flops", r.flops}};
  if (r.measured_s) out["measured_s"] = *r.measured_s;
  if (r.energy_j) out["energy_j"] = *r.energy_j;
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<VariantRecord> parse_record(std::string_view text) {
  LIMBER_ASSIGN(const json object, parse_json_object(text, 2));
  JsonFields in(object, "record");
  VariantRecord r;
  int version = 0;
  std::string variant;
  int64_t memory = 0, parameters = 0;
  in.read("version", version, 1, INT32_MAX);
  if (in.status().ok() && version > kRecordVersion) {
    return unsupported("a record of version {} is newer than this program reads ({}); update Limber", version,
                       kRecordVersion);
  }
  in.read("context", r.context);
  in.read("variant", variant);
  in.read("predicted_s", r.predicted_s);
  in.read("accuracy", r.accuracy);
  in.read("images", r.images, 0, INT64_MAX);
  in.read("memory_bytes", memory, 0, INT64_MAX);
  in.read("parameter_bytes", parameters, 0, INT64_MAX);
  in.read("flops", r.flops);
  if (object.contains("measured_s")) in.read("measured_s", r.measured_s.emplace());
  if (object.contains("energy_j")) in.read("energy_j", r.energy_j.emplace());
  LIMBER_TRY(in.status());
  r.memory_bytes = static_cast<uint64_t>(memory);
  r.parameter_bytes = static_cast<uint64_t>(parameters);
  auto parsed = parse_variant(variant);
  if (!parsed.ok()) return corrupt("record: {}", parsed.status().message());
  r.variant = *std::move(parsed);
  if (const Status status = check_record(r); !status.ok()) return corrupt("record: {}", status.message());
  return r;
}

}  // namespace limber
