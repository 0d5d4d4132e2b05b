#include "device/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace limber {
namespace {

// Of a folder, and bytes of a file: far more than kernels have, bounds for a folder that is none of a kernel.
constexpr size_t kMostEntries = 256;
constexpr size_t kLongestText = 65536;

}  // namespace

KernelFile::KernelFile(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

KernelFile::~KernelFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string_view KernelFile::read(std::span<char> buffer) const {
  size_t size = 0;
  while (descriptor_ >= 0 && size < buffer.size()) {
    const ssize_t got =
        pread(descriptor_, buffer.data() + size, buffer.size() - size, static_cast<off_t>(size));
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return {buffer.data(), size};
}

std::optional<double> KernelFile::number() const {
  std::array<char, 64> buffer;
  std::string_view text = read(buffer);
  return take_number(text);
}

std::optional<double> take_number(std::string_view& text) {
  const size_t start = std::min(text.find_first_not_of(" \t"), text.size());
  double value = 0;
  const auto [end, problem] =
      std::from_chars(text.data() + start, text.data() + text.size(), value, std::chars_format::fixed);
  if (problem != std::errc() || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::optional<double> number_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    return take_number(line);
  }
  return std::nullopt;
}

std::string kernel_text(const std::string& path) {
  std::string text(kLongestText, '\0');
  text.resize(KernelFile(path).read(text).size());
  return text;
}

std::vector<std::string> kernel_entries(const std::string& folder, std::string_view prefix) {
  std::vector<std::string> found;
  std::error_code problem;
  for (std::filesystem::directory_iterator it(folder, problem), end; !problem && it != end;
       it.increment(problem)) {
    if (found.size() == kMostEntries) break;
    if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace limber
