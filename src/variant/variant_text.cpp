// Variants as text: by names, since positions shift when alternatives come and go.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "variant/elastic_model.h"

namespace limber {
namespace {

constexpr std::string_view kOriginal = "original", kPlain = "_./:+-";
constexpr size_t kMaxShown = 80;  // characters of a text in a message

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kPlain.find(c) != std::string_view::npos;
}

// Names may hold anything: what has a meaning here, blanks and all that is not ASCII become %XX.
void add_name(std::string& text, std::string_view name) {
  for (const char c : name) {
    if (is_plain(c)) {
      text += c;
    } else {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
}

Result<std::string> read_name(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_plain(text[i])) {
      name += text[i];
      continue;
    }
    unsigned char byte = 0;
    const auto hex = text.substr(i + 1, 2);
    if (text[i] != '%' || hex.size() != 2 ||
        std::from_chars(hex.data(), hex.data() + 2, byte, 16).ptr != hex.data() + 2)
      return invalid("'{}' is no name; other characters than letters, digits and {} are %XX",
                     text.substr(0, kMaxShown), kPlain);
    name += static_cast<char>(byte);
    i += 2;
  }
  if (name.empty()) return invalid("a name is missing");
  return name;
}

// Cuts `mark` and what follows off `text`; an empty tail when the mark is not there.
std::string_view cut_tail(std::string_view& text, char mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view tail = text.substr(at);
  text = text.substr(0, at);
  return tail;
}

// The first few names, for messages.
template <typename Named>
std::string names_in(const std::vector<Named>& all) {
  constexpr size_t kFew = 8;
  std::string text;
  for (size_t i = 0; i < std::min(kFew, all.size()); ++i) {
    if (i > 0) text += ", ";
    add_name(text, all[i].name);
  }
  return all.empty() ? "none" : all.size() > kFew ? text + " ..." : text;
}

template <typename Named>
Result<size_t> find_named(const std::vector<Named>& all, std::string_view text, std::string_view what) {
  LIMBER_ASSIGN(const std::string name, read_name(text));
  const auto at = std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  if (at == all.end()) return invalid("there is no {} '{}'; there are: {}", what, name, names_in(all));
  return static_cast<size_t>(at - all.begin());
}

// Puts named alternatives into the original.
class VariantReader {
 public:
  explicit VariantReader(const ElasticModel& model)
      : model_(model), variant_(original_variant(model)), named_(model.blocks.size(), false) {
    for (size_t b = 0; b < model.blocks.size(); ++b) blocks_.emplace(model.blocks[b].name, b);
  }

  Status place(std::string_view entry) {
    const std::string_view alternative = cut_tail(entry, '=');
    if (alternative.empty()) return invalid("'{}' is not BLOCK=ALTERNATIVE", entry.substr(0, kMaxShown));
    LIMBER_ASSIGN(const std::string name, read_name(entry));
    const auto found = blocks_.find(name);
    if (found == blocks_.end())
      return invalid("there is no block '{}'; there are: {}", name, names_in(model_.blocks));
    const size_t b = found->second;
    const auto& alternatives = model_.blocks[b].alternatives;
    auto choice = find_named(alternatives, alternative.substr(1), "alternative");
    if (!choice.ok()) return choice.status().in(fmt::format("block '{}'", name));
    const size_t end = b + static_cast<size_t>(alternatives[*choice].span);
    for (size_t k = b; k < end; ++k) {
      if (named_[k]) return invalid("block '{}' is named or covered twice", model_.blocks[k].name);
      named_[k] = true;
      variant_.choices[k] = k == b ? static_cast<int>(*choice) : Variant::kCovered;
    }
    return {};
  }
  Status end_with(std::string_view exit) {
    LIMBER_ASSIGN(const size_t found, find_named(model_.exits, exit, "exit"));
    variant_.exit = static_cast<int>(found);
    return {};
  }
  Status ask_for(std::string_view confidence) {
    const char* end = confidence.data() + confidence.size();
    const auto [at, failed] = std::from_chars(confidence.data(), end, variant_.confidence);
    if (failed != std::errc() || at != end || !(variant_.confidence > 0 && variant_.confidence <= 1))
      return invalid("confidence '{}' is no number above 0 and up to 1", confidence.substr(0, kMaxShown));
    return {};
  }
  Result<Variant> finish() {
    LIMBER_TRY(check_variant(model_, variant_));
    return std::move(variant_);
  }

 private:
  const ElasticModel& model_;
  Variant variant_;
  std::vector<bool> named_;  // by block: an entry speaks of it
  std::unordered_map<std::string_view, size_t> blocks_;
};

Result<Variant> read_variant(const ElasticModel& model, std::string_view text) {
  if (text.size() > kMaxVariantText)
    return invalid("{} characters, at most {}", text.size(), kMaxVariantText);
  VariantReader reader(model);
  const std::string_view confidence = cut_tail(text, '?'), exit = cut_tail(text, '@');
  if (text != kOriginal) {
    for (bool last = false; !last;) {
      const size_t comma = text.find(',');
      last = comma == std::string_view::npos;
      LIMBER_TRY(reader.place(text.substr(0, comma)));
      if (!last) text.remove_prefix(comma + 1);
    }
  }
  if (!exit.empty()) LIMBER_TRY(reader.end_with(exit.substr(1)));
  if (!confidence.empty()) LIMBER_TRY(reader.ask_for(confidence.substr(1)));
  return reader.finish();
}

}  // namespace

std::string print(const ElasticModel& model, const Variant& variant) {
  std::string text;
  for (size_t b = 0; b < std::min(variant.choices.size(), model.blocks.size()); ++b) {
    const int choice = variant.choices[b];
    if (choice == 0 || choice == Variant::kCovered) continue;
    if (!text.empty()) text += ',';
    add_name(text, model.blocks[b].name);
    text += '=';
    const auto& alternatives = model.blocks[b].alternatives;
    const auto c = static_cast<size_t>(choice);
    add_name(text, c < alternatives.size() ? alternatives[c].name : fmt::format("<{}>", choice));
  }
  if (text.empty()) text = kOriginal;
  if (const auto e = static_cast<size_t>(variant.exit); variant.exit >= 0) {
    text += '@';
    add_name(text, e < model.exits.size() ? model.exits[e].name : fmt::format("<{}>", variant.exit));
  }
  if (variant.confidence != 0) text += fmt::format("?{}", variant.confidence);
  return text;
}

Result<Variant> parse_variant(const ElasticModel& model, std::string_view text) {
  auto variant = read_variant(model, text);
  if (variant.ok()) return variant;
  return invalid(
      "variant '{}': {}; expected 'original' or BLOCK=ALTERNATIVE,..., then @EXIT, then ?CONFIDENCE",
      text.substr(0, kMaxShown), variant.status().message());
}

std::optional<Variant> parse_positions(const ElasticModel& model, std::string_view text) {
  Variant variant;
  const std::string_view confidence = cut_tail(text, '?'), exit = cut_tail(text, '@');
  const auto read = [](std::string_view digits, auto& number) {
    const char* end = digits.data() + digits.size();
    const auto [at, failed] = std::from_chars(digits.data(), end, number);
    return failed == std::errc() && at == end;
  };
  while (variant.choices.size() < kMaxBlocks) {
    const size_t dot = text.find('.');
    const std::string_view word = text.substr(0, dot);
    int choice = Variant::kCovered;
    if (word != "-" && !read(word, choice)) return std::nullopt;
    variant.choices.push_back(choice);
    if (dot == std::string_view::npos) break;
    text.remove_prefix(dot + 1);
  }
  if (!exit.empty() && !read(exit.substr(1), variant.exit)) return std::nullopt;
  if (!confidence.empty() && !read(confidence.substr(1), variant.confidence)) return std::nullopt;
  if (!check_variant(model, variant).ok()) return std::nullopt;
  return variant;
}

}  // namespace limber
