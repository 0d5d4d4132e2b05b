#include "base/sha256.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

// Of the length in eight bytes, the lowest first, and the text; by another program.
TEST(Sha256, IsWhatOthersCompute) {
  EXPECT_EQ(Sha256().add("").hex(), "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
  EXPECT_EQ(Sha256().add("limber").hex(), "d9c4b64f618cc8b9014315293077eb8a42dcb124969ca9837e875e0cb6c4a070");
  EXPECT_EQ(Sha256().add("lim").add("ber").hex(),
            "02dd087c0bbba6f5f5e1129414fa54bac71903b6fcb3664a668fe4efe490754e");
  EXPECT_EQ(Sha256().add(std::string(1000, 'a')).hex(),
            "853b74abfcd932e3e88590b70c8680d543d6dd75ee327ecd6c36ff6b406f738b");
}

TEST(Sha256, KnowsItsForm) {
  EXPECT_TRUE(Sha256::is_hex(Sha256().add("x").hex()));
  EXPECT_FALSE(Sha256::is_hex(""));
  EXPECT_FALSE(Sha256::is_hex(std::string(63, '0')));
  EXPECT_FALSE(Sha256::is_hex(std::string(64, 'A')));
  EXPECT_FALSE(Sha256::is_hex(std::string(64, 'g')));
}

}  // namespace
}  // namespace limber
