// Requests that are wrong in ways that no server may take for right.
#include <fmt/format.h>

#include <algorithm>

#include "serve/loadgen/request.h"

namespace limber {
namespace {

constexpr std::array<std::string_view, 16> kKinds = {
    "no JSON",          "cut JSON",         "wrong shape",       "unknown input",
    "unknown datatype", "JSON beyond body", "unknown model",     "unknown path",
    "wrong method",     "wrong size",       "negative shape",    "no inputs",
    "deep nesting",     "no HTTP",          "no Content-Length", "huge shape"};

std::string random_bytes(Random& random, size_t count) {
  std::string bytes(count, '\0');
  for (char& c : bytes) c = static_cast<char>(random.below(256));
  return bytes;
}

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  const size_t at = text.find(from);
  LIMBER_ASSERT(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// The text from `key` to the end of the array behind it.
std::string_view array_at(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  LIMBER_ASSERT(at != std::string_view::npos);
  return text.substr(at, text.find(']', at) + 1 - at);
}

}  // namespace

std::vector<std::string_view> RequestWriter::malformed_kinds() { return {kKinds.begin(), kKinds.end()}; }

std::string_view RequestWriter::write_malformed(Random& random, std::string& head) const {
  const std::string_view kind = kKinds[random.below(kKinds.size())];
  const Rendered& row = rows_[random.below(rows_.size())];
  const auto json_of = [&](const std::string& inputs) {
    return fmt::format("{{\"id\":\"malformed\",\"inputs\":[{}]{}}}", inputs, outputs_);
  };
  const auto put = [&](const std::string& json, std::string_view bytes) {
    head = http_head(path_, json.size() + bytes.size(), bytes.empty() ? 0 : json.size()) + json;
    head += bytes;
  };
  const std::string_view shape = array_at(row.inputs, "\"shape\":");
  if (kind == "no JSON") {
    put("]" + random_bytes(random, 1 + random.below(300)), {});
  } else if (kind == "cut JSON") {
    const std::string text = json_of(row.inputs);
    put(text.substr(0, 1 + random.below(text.size() - 1)), {});
  } else if (kind == "wrong shape") {
    put(json_of(replaced(row.inputs, shape, fmt::format("\"shape\":[{}]", 1 + random.below(2)))), row.bytes);
  } else if (kind == "unknown input") {
    put(json_of(replaced(row.inputs, "\"name\":\"", fmt::format("\"name\":\"x{}", random.below(1000)))),
        row.bytes);
  } else if (kind == "unknown datatype") {
    put(json_of(replaced(row.inputs, "\"datatype\":\"", "\"datatype\":\"Q")), row.bytes);
  } else if (kind == "JSON beyond body") {
    const std::string text = json_of(row.inputs);
    head = http_head(path_, text.size(), text.size() + 1 + random.below(1000)) + text;
  } else if (kind == "unknown model") {
    put(json_of(row.inputs), row.bytes);
    head = replaced(head, "/v2/models/", fmt::format("/v2/models/none-{}-", random.below(1000)));
  } else if (kind == "unknown path") {
    put(json_of(row.inputs), row.bytes);
    head = replaced(head, "/v2/models/", fmt::format("/v{}/modules/", 3 + random.below(1000)));
  } else if (kind == "wrong method") {
    put(json_of(row.inputs), row.bytes);
    head = replaced(head, "POST ", random.below(2) == 0 ? "PUT " : "DELETE ");
  } else if (kind == "wrong size") {
    // As text: a number more than the shape has room for.
    if (row.bytes.empty()) return put(json_of(replaced(row.inputs, "\"data\":[", "\"data\":[1,")), {}), kind;
    put(json_of(row.inputs), std::string_view(row.bytes).substr(1 + random.below(row.bytes.size())));
  } else if (kind == "negative shape") {
    put(json_of(replaced(row.inputs, shape, fmt::format("\"shape\":[-{},3]", 1 + random.below(1000)))),
        row.bytes);
  } else if (kind == "no inputs") {
    put(json_of(""), {});
  } else if (kind == "deep nesting") {
    put(std::string(1000 + random.below(100000), random.below(2) == 0 ? '[' : '{'), {});
  } else if (kind == "no HTTP") {
    head = fmt::format("{} this is no HTTP\r\n\r\n", random.below(1000));
  } else if (kind == "no Content-Length") {
    head = fmt::format("POST {} HTTP/1.1\r\nHost: {}\r\nContent-Length: x{}\r\n\r\n", path_,
                       target_.authority(), random.below(1000));
  } else {
    put(json_of(replaced(row.inputs, shape, "\"shape\":[4611686018427387904,4611686018427387904]")),
        row.bytes);
  }
  return kind;
}

}  // namespace limber
