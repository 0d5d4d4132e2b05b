#include "io/sqlite.h"

#include <sqlite3.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/assert.h"

namespace limber {
namespace {

namespace fs = std::filesystem;

constexpr int kWaitMs = 60000;          // for others that write; a commit takes milliseconds
constexpr int kMaxCell = 4 << 20;       // bytes of a text in a file
constexpr int kMaxSql = 1 << 16;        // bytes of a statement, those in the file's schema included
constexpr uint32_t kOurs = 0x4c6d6272;  // "Lmbr": application_id in the header

sqlite3_stmt* as_statement(void* statement) { return static_cast<sqlite3_stmt*>(statement); }

Status check_file(const std::string& path, uint64_t max_bytes) {
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (!fs::exists(status)) return {};
  if (!fs::is_regular_file(status)) return invalid("{}: not a regular file", path);
  if (const auto bytes = fs::file_size(path, ec); !ec && bytes > max_bytes)
    return error(Code::kResourceExhausted, "{}: {} bytes, at most {} are read", path, bytes, max_bytes);
  return {};
}

}  // namespace

struct SqlDatabase::Handle {
  sqlite3* connection = nullptr;
  ~Handle() { sqlite3_close(connection); }
};

SqlDatabase::SqlDatabase(std::string path, std::unique_ptr<Handle> handle)
    : path_(std::move(path)), handle_(std::move(handle)) {}
SqlDatabase::~SqlDatabase() = default;

Result<std::unique_ptr<SqlDatabase>> SqlDatabase::open(const std::string& path, const SqlFormat& format) {
  LIMBER_TRY(check_file(path, format.max_bytes));
  auto handle = std::make_unique<Handle>();
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int rc = sqlite3_open_v2(path.c_str(), &handle->connection, kFlags, nullptr);
  std::unique_ptr<SqlDatabase> database(new SqlDatabase(path, std::move(handle)));
  if (rc != SQLITE_OK) return database->fail("open", rc);
  LIMBER_TRY(database->configure(format));
  LIMBER_TRY(database->check(format));
  return database;
}

Status SqlDatabase::configure(const SqlFormat& format) {
  sqlite3* const c = handle_->connection;
  sqlite3_extended_result_codes(c, 1);
  sqlite3_busy_timeout(c, kWaitMs);
  sqlite3_limit(c, SQLITE_LIMIT_LENGTH, kMaxCell);
  sqlite3_limit(c, SQLITE_LIMIT_SQL_LENGTH, kMaxSql);
  sqlite3_limit(c, SQLITE_LIMIT_ATTACHED, 0);
  // What a file says is data: no functions run because of it, no pages are mapped that may shrink.
  sqlite3_db_config(c, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(c, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(c, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(c, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  // A rollback journal: one file when nobody writes, readable where nothing may be written. EXTRA also syncs
  // the folder, so that a commit survives a loss of power.
  return run(
      fmt::format("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY;"
                  "PRAGMA synchronous=EXTRA; PRAGMA max_page_count={}",
                  format.max_bytes / 4096));
}

Status SqlDatabase::check(const SqlFormat& format) {
  const auto foreign = [&](std::string_view what) {
    return corrupt("{}: {}; delete the file, and what it held is found anew", path_, what);
  };
  LIMBER_ASSIGN(const int64_t things, number("SELECT count(*) FROM sqlite_schema"));
  if (things == 0) return make(format);
  LIMBER_ASSIGN(const int64_t owner, number("PRAGMA application_id"));
  LIMBER_ASSIGN(const int64_t version, number("PRAGMA user_version"));
  if (owner != kOurs) return foreign("it is a database of another program");
  if (version > format.version)
    return unsupported("{}: version {} is newer than this program reads ({}); update Limber", path_, version,
                       format.version);
  LIMBER_ASSIGN(SqlStatement schema, prepare("SELECT sql FROM sqlite_schema"));
  LIMBER_TRY(schema.next().status());
  if (things != 1 || version != format.version || schema.text(0) != format.schema)
    return foreign("its tables are not those of this version");
  LIMBER_TRY(schema.finish());
  LIMBER_ASSIGN(SqlStatement pages, prepare("PRAGMA quick_check(1)"));
  LIMBER_TRY(pages.next().status());
  if (pages.text(0) != "ok") return foreign(fmt::format("damaged: {}", pages.text(0)));
  return pages.finish();
}

Status SqlDatabase::make(const SqlFormat& format) {
  // Somebody else may be making it too.
  LIMBER_ASSIGN(Transaction transaction, Transaction::begin(*this));
  LIMBER_ASSIGN(const int64_t things, number("SELECT count(*) FROM sqlite_schema"));
  if (things != 0) return check(format);
  LIMBER_TRY(run(format.schema));
  LIMBER_TRY(run(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kOurs, format.version)));
  return transaction.commit();
}

Status SqlDatabase::fail(std::string_view what, int rc) const {
  const int kind = rc & 0xff;
  sqlite3* const c = handle_->connection;
  const bool damaged = kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB;
  if (damaged)
    return corrupt("{}: cannot {}: {}; delete the file, and what it held is found anew", path_, what,
                   sqlite3_errmsg(c));
  const bool missing = kind == SQLITE_CANTOPEN && sqlite3_system_errno(c) == ENOENT;
  return error(missing ? Code::kNotFound : Code::kIo, "{}: cannot {}: {}", path_, what, sqlite3_errmsg(c));
}

Status SqlDatabase::run(std::string_view sql) {
  const int rc = sqlite3_exec(handle_->connection, std::string(sql).c_str(), nullptr, nullptr, nullptr);
  return rc == SQLITE_OK ? Status() : fail("run a statement", rc);
}

Result<SqlStatement> SqlDatabase::prepare(std::string_view sql) const {
  sqlite3_stmt* made = nullptr;
  const int rc =
      sqlite3_prepare_v2(handle_->connection, sql.data(), static_cast<int>(sql.size()), &made, nullptr);
  if (rc != SQLITE_OK) return fail("read", rc);
  return SqlStatement(*this, made);
}

Result<int64_t> SqlDatabase::number(std::string_view sql) const {
  LIMBER_ASSIGN(SqlStatement statement, prepare(sql));
  LIMBER_TRY(statement.next().status());
  return statement.integer(0);
}

int SqlDatabase::changed_rows() const { return sqlite3_changes(handle_->connection); }

Result<uint64_t> SqlDatabase::state() const {
  LIMBER_ASSIGN(const int64_t others, number("PRAGMA data_version"));
  const auto ours = static_cast<uint64_t>(sqlite3_total_changes64(handle_->connection));
  return (static_cast<uint64_t>(others) << 40) ^ ours;
}

Result<SqlDatabase::Transaction> SqlDatabase::Transaction::begin(SqlDatabase& database) {
  LIMBER_TRY(database.run("BEGIN IMMEDIATE"));
  return Transaction(&database);
}
SqlDatabase::Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}
SqlDatabase::Transaction::~Transaction() {
  // Some failures end a transaction by themselves.
  if (database_ != nullptr && sqlite3_get_autocommit(database_->handle_->connection) == 0)
    static_cast<void>(database_->run("ROLLBACK"));
}
Status SqlDatabase::Transaction::commit() {
  LIMBER_TRY(database_->run("COMMIT"));
  database_ = nullptr;
  return {};
}

SqlStatement::SqlStatement(SqlStatement&& other) noexcept
    : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)) {}
SqlStatement::~SqlStatement() { sqlite3_finalize(as_statement(statement_)); }

SqlStatement& SqlStatement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text(as_statement(statement_), parameter, text.data(), static_cast<int>(text.size()),
                    SQLITE_STATIC);
  return *this;
}
SqlStatement& SqlStatement::bind(int parameter, double number) {
  sqlite3_bind_double(as_statement(statement_), parameter, number);
  return *this;
}
SqlStatement& SqlStatement::bind(int parameter, int64_t number) {
  sqlite3_bind_int64(as_statement(statement_), parameter, number);
  return *this;
}
SqlStatement& SqlStatement::bind(int parameter, const std::optional<double>& number) {
  if (number) return bind(parameter, *number);
  sqlite3_bind_null(as_statement(statement_), parameter);
  return *this;
}

Result<bool> SqlStatement::next() {
  const int rc = sqlite3_step(as_statement(statement_));
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  return database_->fail(sqlite3_stmt_readonly(as_statement(statement_)) != 0 ? "read" : "write", rc);
}

Status SqlStatement::finish() {
  for (bool more = true; more;) {
    LIMBER_ASSIGN(more, next());
  }
  sqlite3_reset(as_statement(statement_));
  return {};
}

std::string_view SqlStatement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(as_statement(statement_), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(as_statement(statement_), column))};
}
double SqlStatement::number(int column) const {
  return sqlite3_column_double(as_statement(statement_), column);
}
int64_t SqlStatement::integer(int column) const {
  return sqlite3_column_int64(as_statement(statement_), column);
}
std::optional<double> SqlStatement::maybe_number(int column) const {
  if (sqlite3_column_type(as_statement(statement_), column) == SQLITE_NULL) return std::nullopt;
  return number(column);
}

}  // namespace limber
