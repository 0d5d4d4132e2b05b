#include "serve/protocol/json_writer.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "serve/protocol/utf8.h"

namespace limber {
namespace {

void append_character(std::string& to, char c) {
  switch (c) {
    case '"':
      to += "\\\"";
      break;
    case '\\':
      to += "\\\\";
      break;
    case '\n':
      to += "\\n";
      break;
    case '\r':
      to += "\\r";
      break;
    case '\t':
      to += "\\t";
      break;
    default:
      if (static_cast<unsigned char>(c) < 0x20) {
        fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<unsigned>(c));
      } else {
        to += c;
      }
  }
}

template <typename T>
void append_float(std::string& to, T value) {
  if (!std::isfinite(value)) {
    to += "null";
    return;
  }
  char text[32];
  to.append(text, fmt::format_to(text, FMT_COMPILE("{}"), value));
}

template <typename T, typename Append>
void append_list(std::string& to, std::span<const T> values, Append append) {
  to += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) to += ',';
    append(values[i]);
  }
  to += ']';
}

}  // namespace

void append_json_string(std::string& to, std::string_view text) {
  to += '"';
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 1) {
      append_character(to, text[0]);
    } else if (length == 0) {
      to += "\xef\xbf\xbd";
    } else {
      to += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  to += '"';
}

void append_json_number(std::string& to, float value) { append_float(to, value); }
void append_json_number(std::string& to, double value) { append_float(to, value); }

void append_json_list(std::string& to, std::span<const int64_t> values) {
  append_list(to, values, [&to](int64_t value) { fmt::format_to(std::back_inserter(to), "{}", value); });
}
void append_json_list(std::string& to, std::span<const std::string> values) {
  append_list(to, values, [&to](const std::string& value) { append_json_string(to, value); });
}

}  // namespace limber
