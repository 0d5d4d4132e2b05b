#include "tests/report/xml.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

namespace limber {
namespace {

constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:";

class XmlChecker {
 public:
  explicit XmlChecker(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size() && problem_.empty()) text_[at_] == '<' ? tag() : character();
    if (problem_.empty() && (!open_.empty() || roots_ != 1))
      complain(open_.empty() ? "not one element" : "never closed: " + open_.back());
    return problem_;
  }

 private:
  void complain(const std::string& what) {
    if (problem_.empty()) problem_ = fmt::format("at {}: {}: {}", at_, what, text_.substr(at_, 60));
  }
  bool skip(std::string_view part) {
    if (text_.substr(at_, part.size()) != part) return false;
    at_ += part.size();
    return true;
  }
  std::string_view name() {
    const size_t end = std::min(text_.find_first_not_of(kNameCharacters, at_), text_.size());
    const std::string_view found = text_.substr(at_, end - at_);
    if (found.empty()) complain("no name");
    at_ = end;
    return found;
  }
  void space() { at_ = std::min(text_.find_first_not_of(" \n", at_), text_.size()); }

  void character() {
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '&') {
      for (const std::string_view entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
        if (skip(entity)) return;
      }
      return complain("no entity");
    }
    if (c < 0x20 && c != '\n' && c != '\t' && c != '\r') return complain("control character");
    if (open_.empty() && c != '\n' && c != ' ') return complain("text outside of the element");
    ++at_;
  }

  void tag() {
    ++at_;
    if (skip("/")) {
      const std::string_view closed = name();
      if (open_.empty() || open_.back() != closed) return complain("closes what is not open");
      open_.pop_back();
      if (!skip(">")) complain("no '>'");
      return;
    }
    if (open_.empty()) ++roots_;
    open_.emplace_back(name());
    std::set<std::string_view> attributes;
    for (space(); problem_.empty() && at_ < text_.size(); space()) {
      if (skip("/>")) return open_.pop_back();
      if (skip(">")) return;
      if (!attributes.insert(name()).second) return complain("attribute twice");
      if (!skip("=\"")) return complain("attribute without a quoted value");
      while (at_ < text_.size() && text_[at_] != '"' && problem_.empty())
        text_[at_] == '<' ? complain("'<' in a value") : character();
      if (!skip("\"")) complain("value without an end");
    }
    complain("tag without an end");
  }

  std::string_view text_;
  size_t at_ = 0;
  int roots_ = 0;
  std::vector<std::string> open_;
  std::string problem_;
};

}  // namespace

std::string xml_problem(std::string_view text) { return XmlChecker(text).run(); }

SvgPart next_svg(std::string_view page, size_t from) {
  const size_t at = page.find("<svg ", from);
  if (at == std::string_view::npos) return {};
  const size_t end = page.find("</svg>", at);
  return {page.substr(at, end == std::string_view::npos ? end : end + 6 - at), at};
}

}  // namespace limber
