#include "data/stream_spec.h"

#include <algorithm>
#include <set>

#include "data/classes.h"
#include "data/synthetic.h"

namespace limber {
namespace {

constexpr std::string_view kSynthetic = "synthetic:";
constexpr std::string_view kShiftFamilies[] = {"night", "rain", "invert", "texture", "viewpoint"};
constexpr std::string_view kKeys =
    "data=DATA, data.NAME=DATA, frames=N, rounds=N, order=given|shuffled, classes=mixed|sorted, "
    "split=test|train, seed=N";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

bool is_family(std::string_view name) {
  return find_corruption(name) ||
         std::find(std::begin(kShiftFamilies), std::end(kShiftFamilies), name) != std::end(kShiftFamilies);
}

// Names that mean something without being a family.
bool is_reserved(std::string_view name) {
  return is_family(name) || name == "clean" || name == "noise" || name == "all" || name == "extra";
}

std::string families() {
  std::string names;
  for (int i = 0; i < kCorruptions; ++i)
    names += fmt::format("{}, ", corruption_name(static_cast<Corruption>(i)));
  for (const std::string_view name : kShiftFamilies) names += fmt::format("{}, ", name);
  return names +
         "clean, noise, all (the 15 of the benchmarks), extra (the other 4), or a source named by "
         "data.NAME=DATA";
}

class StreamParser {
 public:
  explicit StreamParser(std::string_view text) : text_(text) {}

  Result<StreamSpec> parse() {
    if (text_.size() > kMaxStreamText)
      return invalid("a stream of {} characters; expected at most {}", text_.size(), kMaxStreamText);
    skip_spaces();
    if (text_.substr(at_).starts_with(kSynthetic)) {
      spec_.data = "synthetic";
      at_ += kSynthetic.size();
      if (is_path()) return unexpected("domains after 'synthetic:', or a path without it");
    }
    if (is_path()) {
      LIMBER_ASSIGN(spec_.path, value("a folder or file"));
    } else {
      LIMBER_TRY(segments());
    }
    while (take(';')) LIMBER_TRY(setting());
    if (at_ < text_.size()) return unexpected("',', ';' or the end of the stream");
    LIMBER_TRY(check_sources());
    return std::move(spec_);
  }

 private:
  struct Word {
    std::string text;
    size_t place = 0;
  };
  // A segment as far as it is read.
  struct Draft {
    StreamDomain domain;
    std::string group;  // "all" or "extra"
    int group_strength = 0;
    bool begun = false;
  };

  bool is_path() const {
    const std::string_view rest = text_.substr(at_);
    return rest.starts_with('/') || rest.starts_with("./") || rest.starts_with("../");
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Status wrong(size_t place, std::string_view token, std::string_view expected) const {
    return invalid("stream, at {}: '{}'; expected {}", place + 1, token, expected);
  }
  Status unexpected(std::string_view expected) const {
    if (at_ >= text_.size()) return invalid("stream, at {}: ends here; expected {}", at_ + 1, expected);
    return wrong(at_, text_.substr(at_, 1), expected);
  }

  Result<Word> word(std::string_view expected) {
    skip_spaces();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) return unexpected(expected);
    return Word{std::string(text_.substr(begin, at_ - begin)), begin};
  }
  Result<int64_t> number(int64_t low, int64_t high, std::string_view what) {
    const std::string expected = fmt::format("{}, {}..{}", what, low, high);
    LIMBER_ASSIGN(const Word found, word(expected));
    const auto parsed = parse_number(found.text);
    if (!parsed || *parsed < low || *parsed > high) return wrong(found.place, found.text, expected);
    return *parsed;
  }
  // Up to the next ';', or what stands between quotes.
  Result<std::string> value(std::string_view expected) {
    skip_spaces();
    const bool quoted = at_ < text_.size() && text_[at_] == '"';
    const size_t begin = quoted ? at_ + 1 : at_;
    const size_t end = std::min(text_.find(quoted ? '"' : ';', begin), text_.size());
    if (quoted && end == text_.size()) return wrong(at_, text_.substr(at_), "a second '\"' at its end");
    std::string_view found = text_.substr(begin, end - begin);
    while (!quoted && found.ends_with(' ')) found.remove_suffix(1);
    at_ = quoted ? end + 1 : end;
    if (found.empty()) return wrong(begin, "", expected);
    return std::string(found);
  }

  Status segments() {
    do {
      LIMBER_TRY(segment());
      if (spec_.segments.size() > kMaxSegments)
        return invalid("stream, at {}: more than {} segments; say rounds=N to repeat fewer", at_ + 1,
                       kMaxSegments);
    } while (take(','));
    return {};
  }
  Status segment() {
    Draft draft;
    do {
      LIMBER_TRY(part(draft));
    } while (take('+'));
    int64_t frames = 0;
    if (take('*')) {
      LIMBER_ASSIGN(frames, number(1, kMaxSamples, "a number of frames"));
    }
    if (draft.group.empty()) {
      spec_.segments.push_back({std::move(draft.domain), frames});
      return {};
    }
    const int first = draft.group == "all" ? 0 : kBenchmarkCorruptions,
              last = draft.group == "all" ? kBenchmarkCorruptions : kCorruptions;
    for (int i = first; i < last; ++i) {
      StreamDomain one = draft.domain;
      one.looks.push_back({corruption_name(static_cast<Corruption>(i)), draft.group_strength});
      spec_.segments.push_back({std::move(one), frames});
    }
    return {};
  }
  Status part(Draft& draft) {
    LIMBER_ASSIGN(const Word name, word("a domain, such as clean or fog@2"));
    const bool noise = name.text == "noise";
    if (draft.begun && (draft.domain.noise || noise))
      return wrong(name.place, name.text, "nothing beside noise: it has no picture to change");
    draft.begun = true;
    const bool is_group = name.text == "all" || name.text == "extra";
    int strength = Look().strength;
    if (take('@')) {
      if (!is_group && !is_family(name.text))
        return wrong(name.place, name.text, "a family of corruptions before '@': " + families());
      LIMBER_ASSIGN(const int64_t given, number(1, kStrengths, "a strength"));
      strength = static_cast<int>(given);
    }
    return add_part(draft, name, strength);
  }
  Status add_part(Draft& draft, const Word& name, int strength) {
    StreamDomain& domain = draft.domain;
    if (name.text == "noise") {
      domain.noise = true;
    } else if (name.text == "all" || name.text == "extra") {
      if (!draft.group.empty()) return wrong(name.place, name.text, "one 'all' or 'extra' in a domain");
      draft.group = name.text;
      draft.group_strength = strength;
    } else if (is_family(name.text)) {
      if (!draft.group.empty())
        return wrong(name.place, name.text, "'all' and 'extra' at the end of a domain");
      domain.looks.push_back({name.text, strength});
    } else if (name.text != "clean") {
      if (!domain.source.empty())
        return wrong(name.place, name.text, "one source in a domain; it has '" + domain.source + "'");
      domain.source = name.text;
      used_.push_back(name);
    }
    return {};
  }

  Status setting() {
    LIMBER_ASSIGN(const Word key, word(kKeys));
    if (!take('=')) return unexpected(fmt::format("'=' after '{}'", key.text));
    if (!seen_.insert(key.text).second) return wrong(key.place, key.text, "each setting once");
    if (key.text == "data") return take_data();
    if (key.text.starts_with("data.")) return take_source(key);
    if (key.text == "frames") return take_number(spec_.frames, 1, kMaxSamples, "a number of frames");
    if (key.text == "rounds") return take_number(spec_.rounds, 1, kMaxSamples, "a number of rounds");
    if (key.text == "seed") {
      int64_t seed = 0;
      LIMBER_TRY(take_number(seed, 0, INT64_MAX, "a number"));
      spec_.seed = static_cast<uint64_t>(seed);
      return {};
    }
    if (key.text == "order")
      return take_choice(spec_.order,
                         {{"given", SegmentOrder::kGiven}, {"shuffled", SegmentOrder::kShuffled}});
    if (key.text == "classes")
      return take_choice(spec_.classes, {{"mixed", ClassOrder::kMixed}, {"sorted", ClassOrder::kSorted}});
    if (key.text == "split")
      return take_choice(spec_.split, {{"test", Split::kTest}, {"train", Split::kTrain}});
    return wrong(key.place, key.text, kKeys);
  }
  Status take_data() {
    if (!spec_.data.empty()) return unexpected("no data= in a stream that begins with 'synthetic:'");
    LIMBER_ASSIGN(spec_.data, value("a data set"));
    return {};
  }
  Status take_source(const Word& key) {
    const std::string name = key.text.substr(5);
    if (name.empty() || is_reserved(name))
      return wrong(key.place, key.text, "a name after 'data.' that no family of corruptions has");
    LIMBER_ASSIGN(std::string data, value("a data set"));
    spec_.sources.emplace_back(name, std::move(data));
    named_.push_back({name, key.place});
    return {};
  }
  Status take_number(int64_t& to, int64_t low, int64_t high, std::string_view what) {
    LIMBER_ASSIGN(to, number(low, high, what));
    return {};
  }
  template <typename T>
  Status take_choice(T& to, std::initializer_list<std::pair<std::string_view, T>> values) {
    std::string expected;
    for (const auto& [name, meaning] : values)
      expected += fmt::format("{}{}", expected.empty() ? "" : " or ", name);
    LIMBER_ASSIGN(const Word found, word(expected));
    for (const auto& [name, meaning] : values) {
      if (found.text == name) return to = meaning, Status();
    }
    return wrong(found.place, found.text, expected);
  }
  // What is shown must be named, and what is named must be shown.
  Status check_sources() const {
    std::set<std::string_view> named, used;
    for (const Word& name : named_) named.insert(name.text);
    for (const Word& name : used_) used.insert(name.text);
    for (const Word& name : used_) {
      if (!named.contains(name.text)) return wrong(name.place, name.text, families());
    }
    for (const Word& name : named_) {
      if (used.contains(name.text)) continue;
      return wrong(name.place, "data." + name.text, "a domain that shows it: '" + name.text + "'");
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  StreamSpec spec_;
  std::vector<Word> used_, named_;  // sources, by domains and by settings
  std::set<std::string> seen_;
};

// A value with a quote inside was not quoted, so it needs none.
std::string quoted(const std::string& value) {
  const bool plain =
      value.find(';') == std::string::npos && value.find_first_of(" \t\n") != 0 && !value.ends_with(' ');
  return plain ? value : fmt::format("\"{}\"", value);
}

}  // namespace

std::string StreamDomain::text() const {
  if (noise) return "noise";
  std::string text = source;
  for (const Look& look : looks)
    text += fmt::format("{}{}@{}", text.empty() ? "" : "+", look.family, look.strength);
  return text.empty() ? "clean" : text;
}

Result<StreamSpec> parse_stream(std::string_view text) { return StreamParser(text).parse(); }

std::string format_stream(const StreamSpec& spec) {
  std::string text = spec.path;
  for (const StreamSegment& segment : spec.segments) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", segment.domain.text());
    if (segment.frames > 0) text += fmt::format("*{}", segment.frames);
  }
  if (!spec.data.empty()) text += ";data=" + quoted(spec.data);
  for (const auto& [name, data] : spec.sources) text += fmt::format(";data.{}={}", name, quoted(data));
  if (spec.frames > 0) text += fmt::format(";frames={}", spec.frames);
  if (spec.rounds != 1) text += fmt::format(";rounds={}", spec.rounds);
  if (spec.order == SegmentOrder::kShuffled) text += ";order=shuffled";
  if (spec.classes == ClassOrder::kSorted) text += ";classes=sorted";
  if (spec.split == Split::kTrain) text += ";split=train";
  if (spec.seed != 0) text += fmt::format(";seed={}", spec.seed);
  return text;
}

}  // namespace limber
