// Files that are not as LMDB wrote them.
#include "base/file.h"
#include "base/hash.h"
#include "tests/data/files.h"
#include "tests/variant/table_case.h"
#include "variant/lmdb_check.h"

namespace limber::test {
namespace {

namespace fs = std::filesystem;

std::string filled_table(const std::string& path) {
  auto table = open_table(path);
  Random random(6);
  for (int round = 0; round < 6; ++round) {
    std::vector<VariantRecord> batch;
    for (int n = 0; n < 60; ++n) batch.push_back(random_record(random, n == 0 ? 3000 : 8));
    EXPECT_TRUE(table->put(batch).ok());
    EXPECT_TRUE(table->erase(batch[0].context, batch[0].variant).ok());
  }
  std::vector<VariantRecord> last = {random_record(random, 3000)};
  EXPECT_TRUE(table->put(last).ok());
  table.reset();
  return *os_files().read(path, size_t{1} << 24);
}

Status check_bytes(const std::string& bytes) {
  const auto file = std::as_bytes(std::span(bytes));
  LIMBER_TRY(check_lmdb_header(file, size_t{1} << 28));
  return check_lmdb(file);
}

// Opens the file and works with it, unless it is refused: whatever is wrong must be a Status.
void expect_no_crash(const std::string& path, const std::string& bytes, const std::string& what) {
  // Most are found to be damaged without a file, which is faster.
  if (Random(Hasher().add(bytes).digest()).below(8) != 0 && !check_bytes(bytes).ok()) return;
  fs::remove(path + "-lock");
  std::ofstream(path, std::ios::binary) << bytes;
  auto table = VariantTable::open(path);
  if (!table.ok()) {
    EXPECT_NE(table.status().message().find("t.mdb"), std::string::npos) << table.status().message();
    return;
  }
  Random random(1);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE((*table)->put(random_record(random, 1 + random.below(2000))).ok()) << what;
  EXPECT_TRUE((*table)->index().ok()) << what;
  table->reset();
  EXPECT_TRUE(VariantTable::open(path).ok()) << what;
}

constexpr size_t kPage = 4096;

// Pages that the table is made of; the others are free.
std::vector<size_t> pages_in_use(const std::string& good) {
  std::vector<size_t> pages;
  for (size_t page = 0; page < good.size() / kPage; ++page) {
    std::string bad = good;
    bad.replace(page * kPage, kPage, kPage, '\0');
    if (!check_bytes(bad).ok()) pages.push_back(page);
  }
  return pages;
}

TEST(VariantTableDamage, FlippedBitsAreAStatus) {
  const Folder folder;
  const std::string path = folder / "t.mdb", good = filled_table(path);
  ASSERT_TRUE(check_bytes(good).ok()) << check_bytes(good).message();
  const auto pages = pages_in_use(good);
  ASSERT_GT(pages.size(), 8u);
  Random random(7);
  const auto page = [&] { return pages[random.below(pages.size())] * kPage; };
  for (int i = 0; i < 500; ++i) {
    std::string bad = good;
    // Headers of pages and the list behind them more often than what records hold.
    const size_t at = page() + random.below(i % 4 == 0 ? kPage : i % 4 == 1 ? 160 : 16);
    bad[at] = static_cast<char>(bad[at] ^ (1 << random.below(8)));
    expect_no_crash(path, bad, fmt::format("bit flipped at {}", at));
  }
  for (int i = 0; i < 150; ++i) {
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
  const std::string path = folder / "t.mdb", good = filled_table(path);
  const auto pages = pages_in_use(good);
  Random random(8);
  for (int i = 0; i < 150; ++i) {
    std::string bad = good;
    bad.replace(pages[random.below(pages.size())] * kPage, kPage,
                good.substr(random.below(good.size() / kPage) * kPage, kPage));
    expect_no_crash(path, bad, "page replaced");
  }
}

TEST(VariantTableDamage, TruncatedAndForeignFilesAreAStatus) {
  const Folder folder;
  const std::string path = folder / "t.mdb", good = filled_table(path);
  for (size_t size = 1; size < good.size(); size += 1021)
    expect_no_crash(path, good.substr(0, size), fmt::format("cut to {}", size));
  for (const std::string& text : {std::string("no table"), std::string(9000, 'x'), std::string(9000, '\0')}) {
    fs::remove(path + "-lock");
    ASSERT_TRUE(os_files().write(path, text).ok());
    expect_failure(VariantTable::open(path), Code::kCorrupt, {"t.mdb"});
  }
  ASSERT_TRUE(os_files().write(path, "").ok());  // made, never written
  EXPECT_TRUE(VariantTable::open(path).ok());
}

}  // namespace
}  // namespace limber::test
