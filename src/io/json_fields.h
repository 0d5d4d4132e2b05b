// Parts of manifests: JSON that Limber writes and reads back, as untrusted as any other file.
// Whatever is missing or of another kind ends in kCorrupt naming the field.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/preprocess.h"
#include "io/model_folder.h"

namespace limber {

// Name -> value as text.
using TextMap = std::map<std::string, std::string>;

// One object and no nesting deeper than `max_depth`.
Result<nlohmann::json> parse_json_object(std::string_view text, int max_depth);
std::string format_json(const nlohmann::ordered_json& object);

// Reads fields of one object; the first that is missing or of another kind is remembered.
class JsonFields {
 public:
  // `where` names the object in messages; "" is the file. The object must outlive this.
  JsonFields(const nlohmann::json& object, std::string_view where);

  const nlohmann::json* find(const char* key);  // nullptr: missing, or something failed before
  void read(const char* key, int64_t& to, int64_t low, int64_t high);
  void read(const char* key, int& to, int low, int high);
  void read(const char* key, double& to);
  void read(const char* key, std::string& to);
  void read_hex(const char* key, uint64_t& to);  // 16 hexadecimal digits
  const nlohmann::json* fail(const char* key, std::string_view why);
  const Status& status() const { return status_; }

 private:
  const nlohmann::json& object_;
  const std::string where_;
  Status status_;
};

// kCorrupt unless `format` is there as expected, kUnsupported unless the version is; `remedy` is for an
// older one.
Status check_format(JsonFields& in, std::string_view format, int version, std::string_view remedy);

std::string format_hex(uint64_t value);
bool parse_hex(std::string_view text, uint64_t& value);

Status read_texts(const nlohmann::json& object, std::string_view what, TextMap& texts);
Status read_classes(const nlohmann::json& list, std::vector<std::string>& classes);

nlohmann::ordered_json write_input(const Preprocess& input);
Status read_input(const nlohmann::json& object, Preprocess& input);

nlohmann::ordered_json write_files(const std::map<std::string, FileRecord>& files);
Status read_files(const nlohmann::json& object, std::map<std::string, FileRecord>& files);

}  // namespace limber
