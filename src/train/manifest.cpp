#include "train/manifest.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "data/dataset.h"

namespace limber {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "limber checkpoint";
constexpr int kMaxDepth = 8;

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }

// Reads fields of one object; the first that is missing or of another kind is remembered.
class Reader {
 public:
  Reader(const json& object, std::string_view where) : object_(object), where_(where) {
    if (!object.is_object()) status_ = corrupt("{} is not an object", where);
  }

  const json* find(const char* key) {
    if (!status_.ok()) return nullptr;
    const auto it = object_.find(key);
    if (it == object_.end()) return fail(key, "is missing");
    return &*it;
  }
  void read(const char* key, int64_t& to, int64_t low, int64_t high) {
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
  void read(const char* key, int& to, int low, int high) {
    int64_t value = to;
    read(key, value, int64_t{low}, int64_t{high});
    to = static_cast<int>(value);
  }
  void read(const char* key, double& to) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (value->is_number()) {
      to = value->get<double>();
    } else {
      fail(key, "should be a number");
    }
  }
  void read(const char* key, std::string& to) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (value->is_string()) {
      to = value->get<std::string>();
    } else {
      fail(key, "should be text");
    }
  }
  // 16 hexadecimal digits
  void read_hex(const char* key, uint64_t& to) {
    std::string text;
    read(key, text);
    if (!status_.ok()) return;
    if (text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos) {
      to = std::stoull(text, nullptr, 16);
    } else {
      fail(key, "should be 16 hexadecimal digits");
    }
  }
  const json* fail(const char* key, std::string_view why) {
    if (status_.ok()) status_ = corrupt("{}'{}' {}", where_.empty() ? "" : where_ + "/", key, why);
    return nullptr;
  }
  const Status& status() const { return status_; }

 private:
  const json& object_;
  const std::string where_;
  Status status_;
};

ordered_json write_state(const TrainingState& s) {
  return {{"step", s.step},          {"epoch", s.epoch},           {"batch", s.batch},
          {"loss_sum", s.loss_sum},  {"correct", s.correct},       {"images", s.images},
          {"seconds", s.seconds},    {"best_epoch", s.best_epoch}, {"best_accuracy", s.best_accuracy},
          {"best_loss", s.best_loss}};
}

Status read_state(const json& object, TrainingState& s) {
  Reader in(object, "state");
  in.read("step", s.step, 0, INT64_MAX);
  in.read("epoch", s.epoch, 0, INT64_MAX);
  in.read("batch", s.batch, 0, INT64_MAX);
  in.read("loss_sum", s.loss_sum);
  in.read("correct", s.correct, 0, INT64_MAX);
  in.read("images", s.images, 0, INT64_MAX);
  in.read("seconds", s.seconds);
  in.read("best_epoch", s.best_epoch, -1, INT64_MAX);
  in.read("best_accuracy", s.best_accuracy);
  in.read("best_loss", s.best_loss);
  return in.status();
}

ordered_json write_input(const AugmentOptions& input) {
  return {{"height", input.height},           {"width", input.width},
          {"channels", input.channels},       {"resize", input.resize},
          {"mean", input.normalisation.mean}, {"std", input.normalisation.std}};
}

void read_channels(Reader& in, const char* key, std::array<float, 3>& to) {
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

Status read_input(const json& object, AugmentOptions& input) {
  Reader in(object, "input");
  in.read("height", input.height, 1, kMaxImageSide);
  in.read("width", input.width, 1, kMaxImageSide);
  in.read("channels", input.channels, 1, 3);
  in.read("resize", input.resize, 0, kMaxImageSide);
  read_channels(in, "mean", input.normalisation.mean);
  read_channels(in, "std", input.normalisation.std);
  LIMBER_TRY(in.status());
  return Augmenter::make(input).status();
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

Status read_texts(const json& object, std::string_view what, OptionTexts& texts) {
  if (!object.is_object()) return corrupt("'{}' is not an object", what);
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) return corrupt("'{}' in '{}' is not text", key, what);
    texts[key] = value.get<std::string>();
  }
  return {};
}

Status read_files(const json& object, std::map<std::string, FileRecord>& files) {
  if (!object.is_object()) return corrupt("'files' is not an object");
  for (const auto& [name, value] : object.items()) {
    Reader in(value, "files/" + name);
    int64_t bytes = 0;
    FileRecord record;
    in.read("bytes", bytes, 0, INT64_MAX);
    in.read_hex("hash", record.hash);
    LIMBER_TRY(in.status());
    record.bytes = static_cast<uint64_t>(bytes);
    files[name] = record;
  }
  return {};
}

Status read_version(Reader& in) {
  std::string format;
  int version = 0;
  in.read("format", format);
  in.read("version", version, 1, INT32_MAX);
  LIMBER_TRY(in.status());
  if (format != kFormat) return corrupt("'format' is '{}', expected '{}'", format, kFormat);
  if (version > kCheckpointVersion) {
    return unsupported("version {} is newer than this program reads ({}); update Limber", version,
                       kCheckpointVersion);
  }
  if (version < kCheckpointVersion) {
    return unsupported("version {} is older than this program reads ({}); begin the training anew", version,
                       kCheckpointVersion);
  }
  return {};
}

Status read_parts(Reader& in, Manifest& manifest) {
  CheckpointInfo& info = manifest.info;
  const json *state = in.find("state"), *input = in.find("input"), *options = in.find("options"),
             *classes = in.find("classes"), *notes = in.find("notes"), *files = in.find("files");
  uint64_t recorded = 0;
  in.read_hex("seed", info.seed);
  in.read_hex("fingerprint", recorded);
  LIMBER_TRY(in.status());
  LIMBER_TRY(read_state(*state, info.state));
  LIMBER_TRY(read_input(*input, info.input));
  LIMBER_TRY(read_texts(*options, "options", info.options));
  LIMBER_TRY(read_texts(*notes, "notes", info.notes));
  LIMBER_TRY(read_classes(*classes, info.classes));
  if (recorded != fingerprint(info.options)) return corrupt("'options' do not match 'fingerprint'");
  return read_files(*files, manifest.files);
}

}  // namespace

uint64_t fingerprint(const OptionTexts& options) {
  Hasher hasher;
  for (const auto& [name, value] : options) hasher.add(name).add(value);
  return hasher.digest();
}

std::string format_manifest(const Manifest& manifest) {
  const CheckpointInfo& info = manifest.info;
  ordered_json out = {{"format", kFormat}, {"version", kCheckpointVersion}};
  out["state"] = write_state(info.state);
  out["seed"] = hex(info.seed);
  out["fingerprint"] = hex(fingerprint(info.options));
  out["options"] = info.options;
  out["input"] = write_input(info.input);
  out["classes"] = info.classes;
  out["notes"] = info.notes;
  out["files"] = ordered_json::object();
  for (const auto& [name, file] : manifest.files)
    out["files"][name] = {{"bytes", file.bytes}, {"hash", hex(file.hash)}};
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<Manifest> parse_manifest(std::string_view text) {
  bool too_deep = false;
  const auto guard = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  const json object = json::parse(text, guard, /*allow_exceptions=*/false);
  if (too_deep || !object.is_object()) return corrupt("not a JSON object");
  Reader in(object, "");
  LIMBER_TRY(read_version(in));
  Manifest manifest;
  LIMBER_TRY(read_parts(in, manifest));
  return manifest;
}

}  // namespace limber
