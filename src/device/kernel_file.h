// Files that the kernel writes anew whenever they are read, and the numbers in them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace limber {

// Stays open, so that a reading is one call of the system and no path is walked again.
class KernelFile {
 public:
  KernelFile() = default;
  explicit KernelFile(const std::string& path);
  ~KernelFile();
  KernelFile(KernelFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  KernelFile& operator=(KernelFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  bool there() const { return descriptor_ >= 0; }
  // As much of it as `buffer` holds; empty when there is none, or none any more.
  std::string_view read(std::span<char> buffer) const;
  // The number it starts with; empty for "max" and other words.
  std::optional<double> number() const;

 private:
  int descriptor_ = -1;
};

// Takes the number that `text` starts with, after blanks, from it.
std::optional<double> take_number(std::string_view& text);
// Takes the line that `text` starts with, without its break, from it.
std::string_view take_line(std::string_view& text);
// The number that follows `key` where a line starts with it: number_after("a 1\nb 2\n", "b ") is 2.
std::optional<double> number_after(std::string_view text, std::string_view key);

// For what is read once. A missing file is empty text.
std::string kernel_text(const std::string& path);
// The entries of a folder whose names start with `prefix`, with their folder, sorted; never more than 256.
std::vector<std::string> kernel_entries(const std::string& folder, std::string_view prefix);

// How much a counter grew since the last reading. It may start again from 0.
class CounterDelta {
 public:
  // Empty for the first reading, and when it went back.
  std::optional<double> since_last(std::optional<double> reading) {
    const std::optional<double> last = std::exchange(last_, reading);
    return last && reading && *reading >= *last ? std::optional<double>(*reading - *last) : std::nullopt;
  }

 private:
  std::optional<double> last_;
};

}  // namespace limber
