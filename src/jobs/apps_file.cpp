#include "jobs/apps_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/units.h"
#include "data/preprocess.h"
#include "jobs/adapt_strategies.h"

// The parser asserts of what a file holds that it is sound, and without assertions lets the compiler assume
// it ("[=" is enough). With neither it comes to its own checks, which say what is wrong.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <toml++/toml.h>

namespace limber {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = 1 << 20;
constexpr std::string_view kNameHelp = "letters, digits, '-', '_' and '.', at most 100";

std::string value_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return fmt::format("\"{}\"", text->get());
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* yes = node.as_boolean()) return yes->get() ? "true" : "false";
  return node.is_array() ? "a list" : node.is_table() ? "a table" : "a date or time";
}

// The keys of a table. The first thing that is wrong is kept, and nothing is read after it.
class AppsTable {
 public:
  AppsTable(const toml::table& table, const std::string& path, std::string who)
      : table_(table), path_(path), who_(std::move(who)) {}

  const Status& status() const { return status_; }
  void call(const std::string& who) { who_ = who; }
  const toml::node* find(const char* key) {
    known_.push_back(key);
    return status_.ok() ? table_.get(key) : nullptr;
  }
  void fail(const toml::node& node, const std::string& key, const std::string& expected) {
    wrong(node, fmt::format("{} is {}; expected {}", key, value_text(node), expected));
  }
  void wrong(const toml::node& node, const std::string& what) {
    if (status_.ok())
      status_ =
          invalid("{}:{}: {}{}", path_, node.source().begin.line, who_.empty() ? "" : who_ + ": ", what);
  }
  // `expected` with an example, for messages.
  std::string text(const char* key, const char* expected) {
    const toml::node* node = find(key);
    if (node == nullptr) return "";
    const auto* text = node->as_string();
    if (text == nullptr || text->get().empty()) fail(*node, key, expected);
    return text == nullptr ? "" : text->get();
  }
  void number(const char* key, double low, double high, double& to) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const auto value = node->value<double>();
    if (!node->is_number() || !value || !(*value >= low && *value <= high))
      fail(*node, key, fmt::format("a number, {} to {}", low, high));
    to = value.value_or(to);
  }
  // As options of commands: `parse` says what is wrong, or nothing.
  void parsed(const char* key, const char* expected, std::string (*parse)(const std::string&, double&),
              double& to) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const auto* text = node->as_string();
    if (text == nullptr || !parse(text->get(), to).empty()) fail(*node, key, expected);
  }
  // Before the table is done with: keys that nobody asked for.
  void refuse_others() {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      std::sort(known_.begin(), known_.end());
      wrong(node, fmt::format("unknown key '{}'; there are: {}", name, fmt::join(known_, ", ")));
    }
  }

 private:
  const toml::table& table_;
  const std::string& path_;
  std::string who_;
  std::vector<std::string> known_;
  Status status_;
};

// One number for all channels, or three.
void read_channels(AppsTable& in, const char* key, double least, ImageOptions& image,
                   std::array<float, 3> Normalisation::*to) {
  const toml::node* node = in.find(key);
  if (node == nullptr) return;
  const toml::array* list = node->as_array();
  const bool right_size = list == nullptr ? node->is_number() : list->size() == 3;
  if (!image.normalisation) image.normalisation.emplace();
  for (size_t c = 0; right_size && c < 3; ++c) {
    const toml::node& one = list == nullptr ? *node : *list->get(c);
    const auto value = one.is_number() ? one.value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value) || !(*value > least)) return in.fail(*node, key, "three numbers");
    ((*image.normalisation).*to)[c] = static_cast<float>(*value);
  }
  if (!right_size) in.fail(*node, key, "a number, or three as in [0.485, 0.456, 0.406]");
}

bool read_side(const toml::node& node, std::vector<int64_t>& to) {
  const auto* side = node.as_integer();
  if (side == nullptr || side->get() < 1 || side->get() > kMaxImageSide) return false;
  to.push_back(side->get());
  return true;
}

void read_image(AppsTable& in, ImageOptions& image) {
  if (const toml::node* node = in.find("preprocess")) {
    const auto* name = node->as_string();
    const auto preset = find_preset(name == nullptr ? "" : name->get());
    std::vector<std::string_view> names;
    for (const Preset& one : presets()) names.push_back(one.name);
    if (!preset.ok()) return in.fail(*node, "preprocess", fmt::format("one of {}", fmt::join(names, ", ")));
    image.preset = *preset;
  }
  read_channels(in, "mean", -1e9, image, &Normalisation::mean);
  read_channels(in, "std", 0, image, &Normalisation::std);
  if (const toml::node* node = in.find("size")) {
    const toml::array* list = node->as_array();
    bool right = list == nullptr ? read_side(*node, image.size) : list->size() == 2;
    for (size_t i = 0; list != nullptr && right && i < 2; ++i) right = read_side(*list->get(i), image.size);
    if (!right)
      in.fail(*node, "size", fmt::format("a side, or [height, width], of 1 to {} pixels", kMaxImageSide));
  }
  double crop = 0;
  in.number("crop", 1, kMaxImageSide, crop);
  image.crop = static_cast<int>(crop);
}

std::string beside(const fs::path& folder, const std::string& path) { return (folder / path).string(); }

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string find_model(AppsTable& in, const fs::path& folder) {
  const std::string model = in.text("model", "a file or folder in quotes, or \"builtin:NAME\"");
  if (model.empty() || model.starts_with("builtin:")) return model;
  const std::string path = beside(folder, model);
  if (!is_there(path))
    in.fail(*in.find("model"), "model", fmt::format("a file or folder that is there; '{}' is not", path));
  return path;
}

// Data as commands take them: what is made up, a file or folder, or IMAGES,LABELS.
std::string find_data(AppsTable& in, const fs::path& folder) {
  const std::string data =
      in.text("adapt_data", "images of the source in quotes, as --adapt-data takes them");
  if (data.empty() || data == "synthetic" || data.starts_with("synthetic:")) return data;
  const std::string path = beside(folder, data);
  if (is_there(path)) return path;
  const size_t comma = data.find(',');
  if (comma != std::string::npos) {
    const std::string images = beside(folder, data.substr(0, comma)),
                      labels = beside(folder, data.substr(comma + 1));
    if (is_there(images) && is_there(labels)) return images + "," + labels;
  }
  in.fail(*in.find("adapt_data"), "adapt_data",
          fmt::format("a file or folder that is there, IMAGES,LABELS, or synthetic:...; '{}' is not", path));
  return data;
}

void read_adapting(AppsTable& in, const toml::table& table, const fs::path& folder, ServeAdaptOptions& to) {
  to.method = in.text("adapt", "a method in quotes, such as \"bn\"");
  to.data = find_data(in, folder);
  in.parsed("adapt_operations", "a share in quotes, such as \"25%\"", parse_share, to.settings.operations);
  if (!in.status().ok()) return;
  const toml::node* about = table.get("adapt");
  for (const char* key : {"adapt_data", "adapt_operations"})
    if (about == nullptr && table.get(key) != nullptr)
      return in.wrong(*table.get(key), fmt::format("{} is for adapting, and 'adapt' names no method", key));
  if (about == nullptr) return;
  if (const Status status = check(to); !status.ok()) in.wrong(*about, "adapt: " + status.message());
}

bool is_app_name(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; };
  return name.size() <= 100 && name != "." && name != ".." && std::all_of(name.begin(), name.end(), plain);
}

std::string written(const toml::node& node) {
  const toml::array* list = node.as_array();
  std::string text = value_text(node);
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) text += " " + value_text(*list->get(i));
  return text;
}

Result<ServedApp> read_app(const toml::table& table, size_t number, const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  AppsTable in(table, path, fmt::format("app {}", number + 1));
  ServedApp app;
  app.name = in.text("name", "what clients call it, in quotes");
  if (table.get("name") == nullptr) in.wrong(table, "has no name; expected name = \"...\"");
  if (!is_app_name(app.name)) in.fail(*table.get("name"), "name", std::string(kNameHelp));
  in.call(fmt::format("app '{}'", app.name));
  if (table.get("model") == nullptr) in.wrong(table, "has no model; expected model = \"FILE\"");
  app.model = find_model(in, folder);
  in.parsed("latency", "a time with its unit in quotes, such as \"20ms\"", parse_seconds, app.latency_s);
  in.number("importance", 1e-6, 1e6, app.importance);
  in.number("minimum_accuracy", 0, 1, app.minimum_accuracy);
  read_adapting(in, table, folder, app.adapt);
  read_image(in, app.image);
  in.refuse_others();
  if (!in.status().ok()) return in.status();
  for (const auto& [key, node] : table)
    if (key.str() != "importance" && key.str() != "minimum_accuracy")
      app.served_as += fmt::format("{} = {}\n", key.str(), written(node));
  return app;
}

// What else characters are the parser does not always know: a letter with an accent in a list is undefined to
// it.
Status check_ascii(std::string_view text, const std::string& path) {
  const auto other =
      std::find_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  if (other == text.end()) return {};
  return invalid("{}:{}: holds a character that is not ASCII; expected letters of English, also in comments",
                 path, 1 + std::count(text.begin(), other, '\n'));
}

}  // namespace

Result<ServedApps> parse_apps(std::string_view text, const std::string& path) {
  LIMBER_TRY(check_ascii(text, path));
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed)
    return invalid("{}:{}: {}", path, parsed.error().source().begin.line, parsed.error().description());
  const toml::table& table = parsed.table();
  ServedApps apps;
  AppsTable in(table, path, "");
  in.parsed("window", "a time with its unit in quotes, such as \"30s\"", parse_seconds, apps.window_s);
  const toml::node* list = in.find("app");
  in.refuse_others();
  if (in.status().ok() && list != nullptr && !list->is_array_of_tables())
    in.fail(*list, "app", "tables, each below a line [[app]]");
  if (!in.status().ok()) return in.status();
  if (list == nullptr) return invalid("{}: names no application; expected [[app]] with name and model", path);
  if (list->as_array()->size() > kMaxServedApps)
    return invalid("{}: names {} applications; expected at most {}", path, list->as_array()->size(),
                   kMaxServedApps);
  std::set<std::string> names;
  for (size_t i = 0; i < list->as_array()->size(); ++i) {
    const toml::table& one = *list->as_array()->get(i)->as_table();
    LIMBER_ASSIGN(ServedApp app, read_app(one, i, path));
    if (!names.insert(app.name).second)
      return invalid("{}:{}: app '{}' is named twice; expected another name", path,
                     one.get("name")->source().begin.line, app.name);
    apps.apps.push_back(std::move(app));
  }
  return apps;
}

Result<ServedApps> read_apps(const std::string& path) {
  LIMBER_ASSIGN(const std::string text, os_files().read(path, kMostBytes));
  return parse_apps(text, path);
}

}  // namespace limber
