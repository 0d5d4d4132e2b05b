#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "serve/http/page.h"
#include "tests/serve/page/every_byte.h"

namespace limber {
namespace {

std::string content(const std::string& name) {
  std::ifstream file(std::string(LIMBER_ROOT) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LivePage, IsTheFile) {
  const std::string file = content("web/live.html");
  ASSERT_FALSE(file.empty());
  EXPECT_TRUE(live_page() == file) << "embedded: " << live_page().size()
                                   << " bytes, web/live.html: " << file.size();
}

TEST(LivePage, AnyByteCanBeEmbedded) {
  const std::string file = content("tests/serve/page/every_byte.bin");
  ASSERT_GT(file.size(), 256u);
  for (size_t k = 0; k < 256; ++k) ASSERT_EQ(static_cast<unsigned char>(every_byte()[k]), k);
  EXPECT_TRUE(every_byte() == file);
}

}  // namespace
}  // namespace limber
