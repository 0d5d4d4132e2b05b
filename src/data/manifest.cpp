#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_map>

#include "base/file.h"
#include "data/classes.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/text.h"

namespace limber {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;  // some ten million lines
constexpr size_t kMaxFields = 64;                  // of a line: no table that people label by has more
constexpr std::string_view kPathTitles[] = {"path", "file", "filename", "file_name", "image"};
constexpr std::string_view kLabelTitles[] = {"label", "class", "target", "category"};

struct Row {
  std::string path;
  std::string label;
  size_t line;  // from 1
};

struct Columns {
  size_t path = 0;
  size_t label = 1;
  size_t fields = 2;  // in every line; 1: the class is the path's folder
};

// What is between the fields of a line. kSpaces: the last of them, as paths may hold spaces too.
enum class Separator : char { kComma = ',', kTab = '\t', kSpaces = ' ' };

class Manifest : public Dataset {
 public:
  struct Image {
    std::string path;
    int32_t label;
  };

  Manifest(ClassNames classes, std::vector<Image> images)
      : Dataset(std::move(classes)), images_(std::move(images)) {}

  size_t size() const override { return images_.size(); }
  int64_t label(size_t index) const override { return images_[index].label; }
  std::string name(size_t index) const override { return images_[index].path; }
  Result<Sample> get(size_t index) const override {
    LIMBER_ASSIGN(Tensor image, load_image(images_[index].path));
    return Sample{std::move(image), label(index)};
  }

 private:
  std::vector<Image> images_;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

void skip_blanks(std::string_view& line, char separator) {
  const size_t first = line.find_first_not_of(separator == '\t' ? " " : " \t");
  line.remove_prefix(std::min(first, line.size()));
}

// Takes one field off the front of `line`, up to the separator behind it. Quotes inside a quoted field are
// doubled.
Result<std::string> take_field(std::string_view& line, char separator) {
  skip_blanks(line, separator);
  if (line.empty() || line[0] != '"') {
    const size_t end = std::min(line.find(separator), line.size());
    std::string field(trimmed(line.substr(0, end)));
    line.remove_prefix(end);
    return field;
  }
  std::string field;
  size_t at = 1;
  for (;; ++at) {
    if (at >= line.size()) return corrupt("a quoted field without its closing quote");
    if (line[at] != '"') {
      field += line[at];
    } else if (at + 1 < line.size() && line[at + 1] == '"') {
      field += line[++at];
    } else {
      break;
    }
  }
  line.remove_prefix(at + 1);
  skip_blanks(line, separator);
  if (!line.empty() && line[0] != separator) return corrupt("text after the closing quote of a field");
  return field;
}

// By its name, or else by its first line that is not empty.
Separator find_separator(std::string_view text, const std::string& list) {
  if (list.ends_with(".csv")) return Separator::kComma;
  const size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const std::string_view line = text.substr(first, text.find('\n', first) - first);
  if (trimmed(line).find('\t') != std::string_view::npos) return Separator::kTab;
  return line.find(',') != std::string_view::npos ? Separator::kComma : Separator::kSpaces;
}

Result<std::vector<std::string>> split_fields(std::string_view line, Separator separator) {
  if (line.find('\0') != std::string_view::npos) return corrupt("a zero byte; this is not a text file");
  std::vector<std::string> fields;
  if (separator == Separator::kSpaces) {
    const size_t last = line.find_last_of(" \t");
    if (last == std::string_view::npos) return std::vector{std::string(line)};
    return std::vector{std::string(trimmed(line.substr(0, last))), std::string(line.substr(last + 1))};
  }
  for (;;) {
    LIMBER_ASSIGN(std::string field, take_field(line, static_cast<char>(separator)));
    fields.push_back(std::move(field));
    if (line.empty()) return fields;
    line.remove_prefix(1);  // the separator
    if (fields.size() == kMaxFields) return corrupt("more than {} fields", kMaxFields);
  }
}

size_t find_title(const std::vector<std::string>& fields, std::span<const std::string_view> titles) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (std::find(titles.begin(), titles.end(), lower_case(fields[i])) != titles.end()) return i;
  }
  return fields.size();
}

// A header is a line that has both titles.
bool is_header(const std::vector<std::string>& fields, Columns& columns) {
  const size_t path = find_title(fields, kPathTitles);
  const size_t label = find_title(fields, kLabelTitles);
  if (path == fields.size() || label == fields.size()) return false;
  columns = {path, label, fields.size()};
  return true;
}

Result<Row> row_of_path(std::string path, size_t line) {
  std::string folder = std::filesystem::path(path).parent_path().filename().string();
  if (!folder.empty()) return Row{std::move(path), std::move(folder), line};
  return corrupt("no label for '{}', and no folder in its path that could be the class", path);
}

Result<Row> make_row(std::vector<std::string> fields, const Columns& columns, size_t line) {
  if (fields.size() != columns.fields) {
    return corrupt(
        "{} fields where {} are expected; a line is path,label, and a path with a comma needs quotes",
        fields.size(), columns.fields);
  }
  if (fields[columns.path].empty()) return corrupt("the path is empty");
  if (columns.fields == 1) return row_of_path(std::move(fields[0]), line);
  if (fields[columns.label].empty()) return corrupt("the label of '{}' is empty", fields[columns.path]);
  return Row{std::move(fields[columns.path]), std::move(fields[columns.label]), line};
}

Result<std::vector<Row>> parse_rows(std::string_view text, const std::string& list) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const Separator separator = find_separator(text, list);
  std::vector<Row> rows;
  Columns columns;
  bool first = true;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    auto fields = split_fields(line, separator);
    if (!fields.ok()) return fields.status().in(fmt::format("{}:{}", list, number));
    if (std::exchange(first, false)) {
      if (is_header(*fields, columns)) continue;
      columns.fields = fields->size() == 1 ? 1 : columns.fields;
    }
    auto row = make_row(*std::move(fields), columns, number);
    if (!row.ok()) return row.status().in(fmt::format("{}:{}", list, number));
    rows.push_back(*std::move(row));
  }
  if (rows.empty()) return corrupt("{}: no images; expected lines of path,label", list);
  return rows;
}

using Index = std::unordered_map<std::string, int32_t>;

Index index_of(const ClassNames& names) {
  Index index;
  for (size_t i = 0; i < names.size(); ++i) index.emplace(names[i], static_cast<int32_t>(i));
  return index;
}

Result<ClassNames> classes_of(const std::vector<Row>& rows, bool numbers) {
  if (numbers) {
    int64_t highest = 0;
    for (const Row& row : rows) highest = std::max(highest, *parse_number(row.label));
    return numbered_classes(std::min(highest, kMaxClasses - 1) + 1);
  }
  ClassNames names;
  for (const Row& row : rows) names.push_back(row.label);
  sort_names(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (static_cast<int64_t>(names.size()) <= kMaxClasses) return names;
  return error(Code::kResourceExhausted, "{} different labels, at most {} are read", names.size(),
               kMaxClasses);
}

Result<int32_t> label_of(const Row& row, bool numbers, const Index& index, const ClassNames& classes) {
  if (numbers) {
    const int64_t label = *parse_number(row.label);
    if (label >= 0 && label < static_cast<int64_t>(classes.size())) return static_cast<int32_t>(label);
    return invalid("label {} of '{}'; labels must be in 0..{}", label, row.path, classes.size() - 1);
  }
  const auto found = index.find(row.label);
  if (found != index.end()) return found->second;
  return invalid("label '{}' of '{}' is not one of the {} classes ({})", row.label, row.path, classes.size(),
                 quote_some(classes));
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_manifest(const std::string& list, const ClassNames& expected) {
  LIMBER_ASSIGN(const std::string text, os_files().read(list, kMaxFileBytes));
  return parse_list(text, list, expected);
}

Result<std::unique_ptr<Dataset>> parse_list(std::string_view text, const std::string& list,
                                            const ClassNames& expected) {
  LIMBER_ASSIGN(std::vector<Row> rows, parse_rows(text, list));
  const auto all = [&rows](const auto& test) { return std::all_of(rows.begin(), rows.end(), test); };
  // Expected classes may be called "1", "2" ...: then a label that is such a name means it.
  Index index = index_of(expected);
  const bool names = !expected.empty() && all([&](const Row& row) { return index.contains(row.label); });
  const bool numbers = !names && all([](const Row& row) { return parse_number(row.label).has_value(); });
  ClassNames classes = expected;
  if (expected.empty()) {
    auto own = classes_of(rows, numbers);
    if (!own.ok()) return own.status().in(list);
    classes = *std::move(own);
    index = index_of(classes);
  }
  const std::filesystem::path folder = std::filesystem::path(list).parent_path();
  std::vector<Manifest::Image> images;
  images.reserve(rows.size());
  for (const Row& row : rows) {
    auto label = label_of(row, numbers, index, classes);
    if (!label.ok()) return label.status().in(fmt::format("{}:{}", list, row.line));
    images.push_back({(folder / row.path).string(), *label});
  }
  return std::unique_ptr<Dataset>(std::make_unique<Manifest>(std::move(classes), std::move(images)));
}

}  // namespace limber
