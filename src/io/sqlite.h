// A database file of ours, by SQLite. The file is untrusted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace limber {

class SqlStatement;

struct SqlFormat {
  std::string_view schema;  // the one CREATE statement that makes it; a file with anything else is refused
  int version = 1;          // of the schema; newer ones are refused
  uint64_t max_bytes = uint64_t{256} << 20;
};

// One connection; use from one thread at a time. Others, in any process, may have the file open too: who
// writes waits for them, up to a minute.
class SqlDatabase {
 public:
  // Makes the file when it is not there; opens it for reading when it must not be written. Nothing in the
  // file is trusted: its schema must be the given one to the letter, and all pages are checked. kCorrupt when
  // it is damaged or of something else, kUnsupported when it is newer, kNotFound when its folder is not
  // there.
  static Result<std::unique_ptr<SqlDatabase>> open(const std::string& path, const SqlFormat& format);
  ~SqlDatabase();
  SqlDatabase(const SqlDatabase&) = delete;
  SqlDatabase& operator=(const SqlDatabase&) = delete;

  const std::string& path() const { return path_; }
  Status run(std::string_view sql);
  Result<SqlStatement> prepare(std::string_view sql) const;
  int changed_rows() const;  // by the last statement
  // Differs from what it was when anybody has changed the file since. About a microsecond.
  Result<uint64_t> state() const;

  // Writes wait for the end, and are given up when that does not come. Durable on return of commit().
  class Transaction {
   public:
    static Result<Transaction> begin(SqlDatabase& database);
    ~Transaction();
    Transaction(Transaction&& other) noexcept;
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    Status commit();

   private:
    explicit Transaction(SqlDatabase* database) : database_(database) {}
    SqlDatabase* database_;
  };

 private:
  struct Handle;
  friend class SqlStatement;
  SqlDatabase(std::string path, std::unique_ptr<Handle> handle);
  Status configure(const SqlFormat& format);
  Status check(const SqlFormat& format);
  Status make(const SqlFormat& format);
  Result<int64_t> number(std::string_view sql) const;
  Status fail(std::string_view what, int rc) const;

  const std::string path_;
  std::unique_ptr<Handle> handle_;
};

// Parameters are counted from 1, columns from 0.
class SqlStatement {
 public:
  ~SqlStatement();
  SqlStatement(SqlStatement&& other) noexcept;
  SqlStatement(const SqlStatement&) = delete;
  SqlStatement& operator=(const SqlStatement&) = delete;

  SqlStatement& bind(int parameter, std::string_view text);  // which must live until the statement has run
  SqlStatement& bind(int parameter, double number);
  SqlStatement& bind(int parameter, int64_t number);
  SqlStatement& bind(int parameter, const std::optional<double>& number);

  Result<bool> next();  // is there a row?
  Status finish();      // runs to the end, and may then be bound again

  std::string_view text(int column) const;  // until the next call
  double number(int column) const;
  int64_t integer(int column) const;
  std::optional<double> maybe_number(int column) const;

 private:
  friend class SqlDatabase;
  SqlStatement(const SqlDatabase& database, void* statement) : database_(&database), statement_(statement) {}
  const SqlDatabase* database_;
  void* statement_;
};

}  // namespace limber
