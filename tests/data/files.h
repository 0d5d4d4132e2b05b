// A folder for one test, and things to put into it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "data/image.h"

namespace limber {

// Removed with all it holds.
class Folder {
 public:
  Folder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = fmt::format("{}/limber-{}-{}-{}", std::filesystem::temp_directory_path().string(), getpid(),
                        test->test_suite_name(), test->name());
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path(*this / name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    EXPECT_TRUE(file.flush().good()) << path;
    return path.string();
  }
  // An image whose every pixel is `value`.
  std::string write_image(const std::string& name, uint8_t value, int side = 4) const {
    Tensor image = *Tensor::allocate({DType::kU8, Shape{side, side, 3}});
    std::fill(image.data<uint8_t>().begin(), image.data<uint8_t>().end(), value);
    return write(name, *encode_png(image));
  }
  void make(const std::string& name) const { std::filesystem::create_directories(*this / name); }

 private:
  std::string path_;
};

// Fails unless `result` failed with a message that has all `parts`.
template <typename T>
void expect_failure(const Result<T>& result, Code code, std::initializer_list<std::string> parts) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(code_name(result.status().code()), std::string(code_name(code))) << result.status().message();
  for (const std::string& part : parts) {
    EXPECT_NE(result.status().message().find(part), std::string::npos)
        << "'" << part << "' is not in: " << result.status().message();
  }
}

}  // namespace limber
