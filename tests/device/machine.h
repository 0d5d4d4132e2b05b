// A machine made of files.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "device/linux_sensor.h"

namespace limber {

class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::temp_directory_path() /
            fmt::format("limber-machine-{}-{}-{}", getpid(), test->test_suite_name(), test->name());
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // Written over in place, as a kernel does it: whoever has it open sees the new text.
  std::string file(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
    return (root_ / path).string();
  }
  // Both cores together, in ticks; `own` is of /proc/self/stat.
  void cpu(int user, int system, int idle, int steal, int own) const {
    file(
        "proc/stat",
        fmt::format(
            "cpu  {0} 0 {1} {2} 0 0 0 {3} 0 0\ncpu0 {4} 0 {1} {2} 0 0 0 {3} 0 0\ncpu1 {4} 0 0 0 0 0 0 0 0 0\n"
            "intr 12 0 0\nctxt 5\n",
            user, system, idle, steal, user / 2));
    // A name that looks like the words after it.
    file("proc/self/stat",
         fmt::format("77 (a) 1 2 (b) S 1 1 1 0 -1 4194304 99 0 0 0 {} {} 0 0 20 0 1 0 136797\n", own, 0));
  }
  LinuxSensor sensor() {
    return LinuxSensor({.root = root_.string(), .gpu_library = "", .clock = [this] { return time_; }});
  }

  std::filesystem::path root_;
  double time_ = 100;
};

}  // namespace limber
