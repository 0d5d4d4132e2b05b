#include "record/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/assert.h"

namespace limber {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;                          // our own records have four levels
constexpr uint64_t kLargestCount = uint64_t{1} << 53;  // whole numbers up to here are exact as doubles
constexpr size_t kLongestList = size_t{1} << 20;       // items; a selection has one per tensor

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

void FieldWriter::begin(std::string_view key) {
  if (text_.back() != '{') text_ += ',';
  text_ += text_of(key) + ":";
}

void FieldWriter::put(int64_t value) {
  LIMBER_ASSERT(value >= 0 && static_cast<uint64_t>(value) <= kLargestCount);
  text_ += std::to_string(value);
}

void FieldWriter::put(uint64_t value) { text_ += std::to_string(value); }

void FieldWriter::put(double value) { text_ += text_of(value); }

void FieldWriter::put(const std::string& value) { text_ += text_of(value); }

struct FieldReader::Impl {
  json root;
  std::vector<const json*> stack;  // from the root to what is read now
  std::vector<std::string> path;   // the keys on the way
};

Result<FieldReader> FieldReader::parse(std::string_view text) {
  bool too_deep = false;
  const auto guard = [&](int depth, json::parse_event_t /*event*/, json& /*value*/) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  auto impl = std::make_unique<Impl>();
  impl->root = json::parse(text, guard, /*allow_exceptions=*/false);
  if (too_deep) return corrupt("not JSON of at most {} levels", kMaxDepth);
  if (impl->root.is_discarded()) return corrupt("not JSON");
  if (!impl->root.is_object()) return corrupt("not a JSON object");
  impl->stack.push_back(&impl->root);
  return FieldReader(std::move(impl));
}

FieldReader::FieldReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FieldReader::FieldReader(FieldReader&&) noexcept = default;
FieldReader::~FieldReader() = default;

bool FieldReader::enter(std::string_view key, Need need) {
  if (!problem_.empty()) return false;
  const json& object = *impl_->stack.back();
  const auto it = object.find(key);
  if (it == object.end()) {
    if (need == Need::kRequired) problem_ = fmt::format("there is no '{}'", key);
    return false;
  }
  impl_->stack.push_back(&*it);
  impl_->path.emplace_back(key);
  return true;
}

void FieldReader::enter(size_t index) {
  impl_->stack.push_back(&(*impl_->stack.back())[index]);
  impl_->path.push_back(std::to_string(index));
}

void FieldReader::leave() {
  impl_->stack.pop_back();
  impl_->path.pop_back();
}

bool FieldReader::is_null() const { return impl_->stack.back()->is_null(); }

void FieldReader::fail(std::string_view expected) {
  if (!problem_.empty()) return;
  const std::vector<std::string>& path = impl_->path;
  const std::string inside = path.size() < 2 ? "" : fmt::format(", at {}", fmt::join(path, "/"));
  problem_ = fmt::format("'{}' should be {}{}", path.front(), expected, inside);
}

size_t FieldReader::list_size() {
  const json& value = *impl_->stack.back();
  if (value.is_array() && value.size() <= kLongestList) return value.size();
  fail(fmt::format("a list of at most {} items", kLongestList));
  return 0;
}

std::vector<std::string> FieldReader::keys() {
  std::vector<std::string> keys;
  const json& value = *impl_->stack.back();
  if (!value.is_object()) {
    fail("an object");
    return keys;
  }
  for (const auto& [key, ignored] : value.items()) keys.push_back(key);
  return keys;
}

void FieldReader::get(bool& value) {
  const json& found = *impl_->stack.back();
  if (!found.is_boolean()) return fail("true or false");
  value = found.get<bool>();
}

void FieldReader::get(int64_t& value) {
  const json& found = *impl_->stack.back();
  if (!found.is_number_unsigned() || found.get<uint64_t>() > kLargestCount)
    return fail("a whole number that is not negative");
  value = static_cast<int64_t>(found.get<uint64_t>());
}

void FieldReader::get(uint64_t& value) {
  const json& found = *impl_->stack.back();
  if (!found.is_number_unsigned()) return fail("a whole number that is not negative");
  value = found.get<uint64_t>();
}

void FieldReader::get(double& value) {
  const json& found = *impl_->stack.back();
  if (!found.is_number() && !found.is_null()) return fail("a number");
  value = found.is_null() ? std::nan("") : found.get<double>();
}

void FieldReader::get(std::string& value) {
  const json& found = *impl_->stack.back();
  if (!found.is_string()) return fail("text");
  value = found.get<std::string>();
}

}  // namespace limber
