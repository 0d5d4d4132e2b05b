// One HTML page that needs nothing else: no script, no font, no other file. Light or dark as the reader's
// system is, from phones to wide screens.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace limber {

// The rules that plots need, for pictures outside a page.
std::string drawing_style();

struct HtmlTable {
  struct Column {
    std::string title;
    bool right = false;  // numbers
    std::string hint;    // what the title means, shown on hover
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns
};

struct HtmlPicture {
  std::string png;             // base64, from the alphabet of base64 alone; empty: there is none
  std::string caption, small;  // below it; the second in small letters
};

// All texts are plain and escaped here, but for `drawing`, which comes from plot.h.
class HtmlPage {
 public:
  explicit HtmlPage(std::string_view title);

  void section(std::string_view heading);
  void text(std::string_view text);
  void note(std::string_view text);  // set apart: something is missing or odd
  void table(const HtmlTable& table);
  // A table behind a heading that opens it.
  void folded(std::string_view heading, const HtmlTable& table);
  // Figures between these stand side by side where there is room; those of one column stay together.
  void begin_columns();
  void next_column();
  void end_columns();
  // Side by side, as many as there is room for.
  void pictures(const std::vector<HtmlPicture>& pictures);
  void figure(std::string_view heading, std::string_view drawing, std::string_view caption);

  std::string html(std::string_view footer) const;  // REQUIRES: no columns are open

 private:
  std::string title_, body_;
  bool columns_ = false;
};

}  // namespace limber
