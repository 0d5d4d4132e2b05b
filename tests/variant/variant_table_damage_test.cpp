// Files that are not as SQLite wrote them.
#include <sqlite3.h>

#include "base/file.h"
#include "tests/data/files.h"
#include "tests/variant/table_case.h"

namespace limber::test {
namespace {

namespace fs = std::filesystem;

const ElasticModel& wide_model() {
  static const ElasticModel* model = new ElasticModel(table_model(60));
  return *model;
}

// Several pages, some of them free.
std::string filled_table(const std::string& path) {
  auto table = open_table(path, wide_model());
  Random random(6);
  for (int round = 0; round < 3; ++round) {
    std::vector<VariantRecord> batch;
    for (int n = 0; n < 60; ++n) batch.push_back(random_record(random, wide_model(), n == 0 ? 60 : 8));
    EXPECT_TRUE(table->put(batch).ok());
    EXPECT_TRUE(table->erase(batch[0].group, batch[0].variant).ok());
  }
  EXPECT_TRUE(table->put(random_record(random, wide_model(), 60)).ok());
  table.reset();
  return *os_files().read(path, size_t{1} << 24);
}

void write_bytes(const std::string& path, const std::string& bytes) {
  fs::remove(path + "-journal");
  std::ofstream(path, std::ios::binary) << bytes;
}

// Opens the file and works with it, unless it is refused: whatever is wrong must be a Status.
void expect_no_crash(const std::string& path, const std::string& bytes, const std::string& what) {
  write_bytes(path, bytes);
  auto table = VariantTable::open(path, wide_model());
  if (!table.ok()) {
    EXPECT_NE(table.status().message().find("t.db"), std::string::npos) << table.status().message();
    return;
  }
  Random random(1);
  for (int i = 0; i < 2; ++i) {
    const Status status = (*table)->put(random_record(random, wide_model(), random.below(60)));
    if (!status.ok()) {  // damage in what is free shows when it is used
      EXPECT_EQ(status.code(), Code::kCorrupt) << what << ": " << status.message();
      return;
    }
  }
  EXPECT_TRUE((*table)->index().ok()) << what;
  table->reset();
  EXPECT_TRUE(VariantTable::open(path, wide_model()).ok()) << what;
}

constexpr size_t kPage = 4096;

TEST(VariantTableDamage, FlippedBitsAreAStatus) {
  const Folder folder;
  const std::string path = folder / "t.db", good = filled_table(path);
  ASSERT_GT(good.size(), 8 * kPage);
  Random random(7);
  const auto page = [&] { return random.below(good.size() / kPage) * kPage; };
  for (int i = 0; i < 150; ++i) {
    std::string bad = good;
    // Headers of pages and the list behind them more often than what records hold.
    const size_t at = page() + random.below(i % 4 == 0 ? kPage : i % 4 == 1 ? 160 : 16);
    bad[at] = static_cast<char>(bad[at] ^ (1 << random.below(8)));
    expect_no_crash(path, bad, fmt::format("bit flipped at {}", at));
  }
  for (int i = 0; i < 60; ++i) {
    std::string bad = good;
    const size_t start = page();
    for (size_t at = start; at < start + 64; ++at) {
      if (random.below(3) == 0) bad[at] = static_cast<char>(random.below(256));
    }
    expect_no_crash(path, bad, fmt::format("page {} overwritten", start / kPage));
  }
}

TEST(VariantTableDamage, PagesThatMovedAreAStatus) {
  const Folder folder;
  const std::string path = folder / "t.db", good = filled_table(path);
  Random random(8);
  for (int i = 0; i < 60; ++i) {
    std::string bad = good;
    bad.replace(random.below(good.size() / kPage) * kPage, kPage,
                good.substr(random.below(good.size() / kPage) * kPage, kPage));
    expect_no_crash(path, bad, "page replaced");
  }
}

TEST(VariantTableDamage, TruncatedAndForeignFilesAreAStatus) {
  const Folder folder;
  const std::string path = folder / "t.db", good = filled_table(path);
  for (size_t size = 1; size < good.size(); size += 2041)
    expect_no_crash(path, good.substr(0, size), fmt::format("cut to {}", size));
  for (const std::string& text : {std::string("no table"), std::string(9000, 'x'), std::string(9000, '\0')}) {
    write_bytes(path, text);
    expect_failure(VariantTable::open(path, wide_model()), Code::kCorrupt, {"t.db", "delete the file"});
  }
  write_bytes(path, "");  // made, never written
  EXPECT_TRUE(VariantTable::open(path, wide_model()).ok());
}

// What somebody else made with SQLite.
void run_sql(const std::string& path, const std::string& sql) {
  sqlite3* file = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &file), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(file, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(file);
  sqlite3_close(file);
}

TEST(VariantTableDamage, NothingInTheFileRuns) {
  const Folder folder;
  const std::string path = folder / "t.db", good = filled_table(path);
  const auto refused = [&](const std::string& sql, Code code, const std::string& why) {
    write_bytes(path, good);
    run_sql(path, sql);
    expect_failure(VariantTable::open(path, wide_model()), code, {"t.db", why});
  };
  refused("CREATE TRIGGER t AFTER INSERT ON variants BEGIN DELETE FROM variants; END", Code::kCorrupt,
          "its tables are not those");
  refused(
      "DROP TABLE variants; CREATE VIEW variants AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM "
      "r) "
      "SELECT x FROM r",
      Code::kCorrupt, "its tables are not those");
  refused("CREATE INDEX i ON variants(abs(images))", Code::kCorrupt, "its tables are not those");
  refused("PRAGMA user_version = 3", Code::kUnsupported, "update Limber");
  refused("PRAGMA application_id = 1", Code::kCorrupt, "another program");
  refused("UPDATE variants SET accuracy = 7", Code::kCorrupt, "accuracy");
  refused("UPDATE variants SET images = -1", Code::kCorrupt, "images");
  refused("UPDATE variants SET fingerprint = 'none'", Code::kCorrupt, "fingerprint");
  refused("UPDATE variants SET predicted_s = 1e999", Code::kCorrupt, "latency");
  write_bytes(path, good);
  run_sql(path, "UPDATE variants SET variant = variant || 'x' || char(10)");
  auto table = open_table(path, wide_model());
  ASSERT_NE(table, nullptr);
  EXPECT_EQ((*table->index())->size(), 0u);
  EXPECT_NE(table->refused().value(), "");
}

}  // namespace
}  // namespace limber::test
