#include "io/json_fields.h"

#include <algorithm>
#include <charconv>

#include "data/dataset.h"

namespace limber {

using nlohmann::json;
using nlohmann::ordered_json;

Result<json> parse_json_object(std::string_view text, int max_depth) {
  bool too_deep = false;
  const auto guard = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > max_depth;
    return !too_deep;
  };
  json object = json::parse(text, guard, /*allow_exceptions=*/false);
  if (too_deep || !object.is_object()) return corrupt("not a JSON object");
  return object;
}

std::string format_json(const ordered_json& object) {
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

JsonFields::JsonFields(const json& object, std::string_view where) : object_(object), where_(where) {
  if (!object.is_object()) status_ = corrupt("{} is not an object", where);
}

const json* JsonFields::find(const char* key) {
  if (!status_.ok()) return nullptr;
  const auto it = object_.find(key);
  if (it == object_.end()) return fail(key, "is missing");
  return &*it;
}

void JsonFields::read(const char* key, int64_t& to, int64_t low, int64_t high) {
  const json* value = find(key);
  if (value == nullptr) return;
  const bool fits =
      value->is_number_unsigned() ? value->get<uint64_t>() <= INT64_MAX : value->is_number_integer();
  if (!fits || value->get<int64_t>() < low || value->get<int64_t>() > high) {
    fail(key, fmt::format("should be an integer in {}..{}", low, high));
    return;
  }
  to = value->get<int64_t>();
}

void JsonFields::read(const char* key, int& to, int low, int high) {
  int64_t value = to;
  read(key, value, int64_t{low}, int64_t{high});
  to = static_cast<int>(value);
}

void JsonFields::read(const char* key, double& to) {
  const json* value = find(key);
  if (value == nullptr) return;
  if (value->is_number()) {
    to = value->get<double>();
  } else {
    fail(key, "should be a number");
  }
}

void JsonFields::read(const char* key, std::string& to) {
  const json* value = find(key);
  if (value == nullptr) return;
  if (value->is_string()) {
    to = value->get<std::string>();
  } else {
    fail(key, "should be text");
  }
}

void JsonFields::read_hex(const char* key, uint64_t& to) {
  std::string text;
  read(key, text);
  if (status_.ok() && !parse_hex(text, to)) fail(key, "should be 16 hexadecimal digits");
}

const json* JsonFields::fail(const char* key, std::string_view why) {
  if (status_.ok()) status_ = corrupt("{}'{}' {}", where_.empty() ? "" : where_ + "/", key, why);
  return nullptr;
}

Status check_format(JsonFields& in, std::string_view format, int version, std::string_view remedy) {
  std::string found;
  int number = 0;
  in.read("format", found);
  in.read("version", number, 1, INT32_MAX);
  LIMBER_TRY(in.status());
  if (found != format) return corrupt("'format' is '{}', expected '{}'", found, format);
  if (number > version) {
    return unsupported("version {} is newer than this program reads ({}); update Limber", number, version);
  }
  if (number < version) {
    return unsupported("version {} is older than this program reads ({}); {}", number, version, remedy);
  }
  return {};
}

std::string format_hex(uint64_t value) { return fmt::format("{:016x}", value); }

bool parse_hex(std::string_view text, uint64_t& value) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return true;
}

Status read_texts(const json& object, std::string_view what, TextMap& texts) {
  if (!object.is_object()) return corrupt("'{}' is not an object", what);
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) return corrupt("'{}' in '{}' is not text", key, what);
    texts[key] = value.get<std::string>();
  }
  return {};
}

Status read_classes(const json& list, std::vector<std::string>& classes) {
  if (!list.is_array() || list.size() > static_cast<size_t>(kMaxClasses))
    return corrupt("'classes' should be a list of at most {} names", kMaxClasses);
  for (const json& name : list) {
    if (!name.is_string()) return corrupt("'classes' holds something that is not text");
    classes.push_back(name.get<std::string>());
  }
  return {};
}

ordered_json write_input(const Preprocess& input) {
  return {{"height", input.height},           {"width", input.width},
          {"channels", input.channels},       {"resize", input.resize},
          {"mean", input.normalisation.mean}, {"std", input.normalisation.std}};
}

namespace {

void read_channels(JsonFields& in, const char* key, std::array<float, 3>& to) {
  const json* list = in.find(key);
  if (list == nullptr) return;
  const bool numbers = list->is_array() && list->size() == 3 &&
                       std::all_of(list->begin(), list->end(), [](const json& x) { return x.is_number(); });
  if (!numbers) {
    in.fail(key, "should be three numbers");
    return;
  }
  for (size_t c = 0; c < 3; ++c) to[c] = (*list)[c].get<float>();
}

}  // namespace

Status read_input(const json& object, Preprocess& input) {
  JsonFields in(object, "input");
  in.read("height", input.height, 1, kMaxImageSide);
  in.read("width", input.width, 1, kMaxImageSide);
  in.read("channels", input.channels, 1, 3);
  in.read("resize", input.resize, 0, kMaxImageSide);
  read_channels(in, "mean", input.normalisation.mean);
  read_channels(in, "std", input.normalisation.std);
  LIMBER_TRY(in.status());
  return check_preprocess(input);
}

namespace {

// FNV was the only one once.
const char* sum_name(FileRecord::Sum sum) { return sum == FileRecord::Sum::kXxh3 ? "xxh3" : "hash"; }

}  // namespace

ordered_json write_files(const std::map<std::string, FileRecord>& files) {
  ordered_json out = ordered_json::object();
  for (const auto& [name, file] : files)
    out[name] = {{"bytes", file.bytes}, {sum_name(file.sum), format_hex(file.hash)}};
  return out;
}

Status read_files(const json& object, std::map<std::string, FileRecord>& files) {
  if (!object.is_object()) return corrupt("'files' is not an object");
  for (const auto& [name, value] : object.items()) {
    JsonFields in(value, "files/" + name);
    int64_t bytes = 0;
    FileRecord record;
    in.read("bytes", bytes, 0, INT64_MAX);
    LIMBER_TRY(in.status());
    record.sum = value.contains("hash") ? FileRecord::Sum::kFnv : FileRecord::Sum::kXxh3;
    in.read_hex(sum_name(record.sum), record.hash);
    LIMBER_TRY(in.status());
    record.bytes = static_cast<uint64_t>(bytes);
    files[name] = record;
  }
  return {};
}

}  // namespace limber
