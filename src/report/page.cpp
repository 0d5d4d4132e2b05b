#include "report/page.h"

#include <fmt/core.h>

#include "base/assert.h"
#include "report/markup.h"

namespace limber {
namespace {

// The series are Okabe and Ito's colours, which people with any colour vision tell apart; the dark theme has
// them lighter. h1 to h5 grow in strength, h6 stands against all of them in hue and in brightness.
constexpr std::string_view kColours = R"(
:root { --paper: #ffffff; --ink: #1d232b; --soft: #5a6470; --rule: #d9dee4;
  --grid: #e8ebef; --panel: #f6f7f9; --note: #fff6e0; --note-edge: #e0a100;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b5548a; --c4: #b07900; --c5: #3d9bd1; --c6: #5a6470;
  --h0: #e6e9ed; --h1: #fbe9cf; --h2: #f8d5a3; --h3: #f2b96b; --h4: #e79a35; --h5: #cf7a0c; --h6: #0b5c9e; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e4e8ed; --soft: #a0aab5;
  --rule: #37404a; --grid: #262d35; --panel: #1b2027; --note: #33290f; --note-edge: #c08a00;
  --c0: #55b0ee; --c1: #ff8b45; --c2: #2cc79b; --c3: #e597c3; --c4: #efb73e; --c5: #98d4f7; --c6: #b3bcc6;
  --h0: #2a313a; --h1: #3b3020; --h2: #574224; --h3: #7b5926; --h4: #a67324; --h5: #d9932a; --h6: #63b8f5; } }
)";

constexpr std::string_view kDrawings =
    R"(svg text { fill: var(--ink); font-size: 13px; } svg .tick { fill: var(--soft); }
svg .middle { text-anchor: middle; } svg .end { text-anchor: end; }
.grid { stroke: var(--grid); stroke-width: 1; } .axis { stroke: var(--soft); stroke-width: 1; }
.line { fill: none; stroke-width: 2.2; stroke-linejoin: round; } .dashed { stroke-dasharray: 6 4; stroke-width: 1.7; }
.reference { fill: none; stroke: var(--soft) !important; stroke-width: 1.4; stroke-dasharray: 3 4; }
.mark { stroke: var(--panel); stroke-width: 1; } .hit { fill: transparent; } .shade { fill: var(--note); }
.cells { shape-rendering: crispEdges; } .cells g:hover { opacity: 0.75; } .framed { stroke: var(--rule); }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); } .s3 { stroke: var(--c3); }
.s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); } .s6 { stroke: var(--c6); }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); } .f3 { fill: var(--c3); }
.f4 { fill: var(--c4); } .f5 { fill: var(--c5); } .f6 { fill: var(--c6); }
.h0 { fill: var(--h0); } .h1 { fill: var(--h1); } .h2 { fill: var(--h2); } .h3 { fill: var(--h3); }
.h4 { fill: var(--h4); } .h5 { fill: var(--h5); } .h6 { fill: var(--h6); } svg text.on6 { fill: var(--paper); }
)";

constexpr std::string_view kStyle = R"(:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 20px 20px 48px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 8px 0 4px; }
h2 { font-size: 1.25rem; margin: 40px 0 8px; padding-top: 12px; border-top: 1px solid var(--rule); }
p { margin: 8px 0; max-width: 75ch; overflow-wrap: anywhere; }
.note { background: var(--note); border-left: 4px solid var(--note-edge); padding: 6px 12px; border-radius: 3px; }
.scroll { overflow-x: auto; margin: 12px 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.94rem; }
th, td { padding: 6px 12px; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
th[title] { text-decoration: underline dotted; text-underline-offset: 3px; cursor: help; }
th.right, td.right { text-align: right; white-space: nowrap; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--paper); font-weight: 600;
  min-width: 12ch; }
td { max-width: 32ch; overflow-wrap: break-word; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 0 28px;
  align-items: start; }
.columns > div { min-width: 0; }
figure { margin: 16px 0; padding: 14px 14px 10px; background: var(--panel); border: 1px solid var(--rule);
  border-radius: 6px; }
figure h3 { font-size: 1rem; margin: 0 0 6px; overflow-wrap: anywhere; }
figcaption { color: var(--soft); font-size: 0.9rem; margin-top: 6px; }
img.samples { display: block; width: 100%; image-rendering: pixelated; border-radius: 4px; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 14px; margin: 12px 0; }
.gallery figure { margin: 0; padding: 8px; } .gallery small { color: var(--soft); overflow-wrap: anywhere; }
.gallery img, .gallery .none { display: block; width: 100%; aspect-ratio: 1; object-fit: contain;
  background: var(--grid); border-radius: 4px; image-rendering: pixelated; }
details { margin: 16px 0; } summary { cursor: pointer; color: var(--soft); }
footer { margin-top: 40px; color: var(--soft); font-size: 0.88rem; overflow-wrap: anywhere; }
svg.plot { display: block; width: 100%; max-width: 760px; height: auto; margin: 0 auto; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 6px 0 0; padding: 0;
  font-size: 0.9rem; overflow-wrap: anywhere; }
.legend li { display: flex; align-items: center; gap: 6px; } .key { width: 30px; height: 14px; flex: none; }
)";

constexpr std::string_view kNarrow =
    R"(@media (max-width: 520px) { main { padding: 12px 10px 32px; } figure { padding: 10px 6px 8px; }
  h1 { font-size: 1.4rem; } th, td { padding: 5px 8px; } svg text { font-size: 16px; }
  .cells ~ text { font-size: 13px; } }
@media print { figure { break-inside: avoid; } }
)";

std::string table_markup(const HtmlTable& table) {
  std::string out = "<div class=\"scroll\"><table>\n<thead><tr>";
  const auto side = [&](size_t i) { return table.columns[i].right ? " class=\"right\"" : ""; };
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& hint = table.columns[i].hint;
    const std::string title = hint.empty() ? "" : fmt::format(" title=\"{}\"", escape_markup(hint));
    out +=
        fmt::format("<th scope=\"col\"{}{}>{}</th>", side(i), title, escape_markup(table.columns[i].title));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    LIMBER_ASSERT(row.size() == table.columns.size());
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      out += fmt::format("<td{}>{}</td>", side(i), escape_markup(row[i]));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace

std::string drawing_style() { return fmt::format("{}{}", kColours, kDrawings); }

HtmlPage::HtmlPage(std::string_view title) : title_(title) {
  body_ = fmt::format("<h1>{}</h1>\n", escape_markup(title));
}

void HtmlPage::section(std::string_view heading) {
  body_ += fmt::format("<h2>{}</h2>\n", escape_markup(heading));
}

void HtmlPage::text(std::string_view text) { body_ += fmt::format("<p>{}</p>\n", escape_markup(text)); }

void HtmlPage::note(std::string_view text) {
  body_ += fmt::format("<p class=\"note\">{}</p>\n", escape_markup(text));
}

void HtmlPage::table(const HtmlTable& table) { body_ += table_markup(table); }

void HtmlPage::folded(std::string_view heading, const HtmlTable& table) {
  body_ += fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape_markup(heading),
                       table_markup(table));
}

void HtmlPage::begin_columns() {
  LIMBER_ASSERT(!columns_);
  columns_ = true;
  body_ += "<div class=\"columns\"><div>\n";
}

void HtmlPage::next_column() {
  LIMBER_ASSERT(columns_);
  body_ += "</div><div>\n";
}

void HtmlPage::end_columns() {
  LIMBER_ASSERT(columns_);
  columns_ = false;
  body_ += "</div></div>\n";
}

void HtmlPage::figure(std::string_view heading, std::string_view drawing, std::string_view caption) {
  body_ += fmt::format("<figure><h3>{}</h3>\n{}", escape_markup(heading), drawing);
  if (!caption.empty()) body_ += fmt::format("<figcaption>{}</figcaption>", escape_markup(caption));
  body_ += "</figure>\n";
}

void HtmlPage::pictures(const std::vector<HtmlPicture>& pictures) {
  body_ += "<div class=\"gallery\">\n";
  for (const HtmlPicture& picture : pictures) {
    const std::string caption = escape_markup(picture.caption);
    body_ += picture.png.empty() ? "<figure><div class=\"none\"></div>"
                                 : fmt::format("<figure><img alt=\"{}\" src=\"data:image/png;base64,{}\"/>",
                                               caption, escape_markup(picture.png));
    body_ += fmt::format("{}<br/><small>{}</small></figure>\n", caption, escape_markup(picture.small));
  }
  body_ += "</div>\n";
}

std::string HtmlPage::html(std::string_view footer) const {
  LIMBER_ASSERT(!columns_);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{}</title>\n<style>{}{}{}{}</style>\n</head>\n<body>\n<main>\n{}<footer>{}</footer>\n"
      "</main>\n</body>\n</html>\n",
      escape_markup(title_), kColours, kStyle, kDrawings, kNarrow, body_, escape_markup(footer));
}

}  // namespace limber
