#include "serve/http/head_parser.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

namespace limber {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string text_of(beast::string_view text) { return {text.data(), text.size()}; }

std::optional<size_t> number_of(beast::string_view text) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  return error == std::errc() && end == text.end() ? std::optional(value) : std::nullopt;
}

// What this server does not understand of a head that is otherwise sound.
HttpRefusal refuse_head(const http::request_header<>& head) {
  if (head.version() != 11 && head.version() != 10) return {505, "HTTP/1.1 or HTTP/1.0 is needed"};
  if (head.version() == 11 && head.find(http::field::host) == head.end())
    return {400, "the header Host is missing"};
  const auto coding = head[http::field::transfer_encoding];
  if (!coding.empty() && !beast::iequals(coding, "chunked"))
    return {501, "Transfer-Encoding '" + text_of(coding) + "'; 'chunked' is understood"};
  const auto content = head[http::field::content_encoding];
  if (!content.empty() && !beast::iequals(content, "identity"))
    return {415, "Content-Encoding '" + text_of(content) + "'; send the body as it is"};
  const auto expect = head[http::field::expect];
  if (!expect.empty() && !beast::iequals(expect, "100-continue"))
    return {400, "Expect '" + text_of(expect) + "'; '100-continue' is understood"};
  const auto json = head["Inference-Header-Content-Length"];
  if (!json.empty() && !number_of(json))
    return {400, "Inference-Header-Content-Length is '" + text_of(json) + "'; expected a number of bytes"};
  return {};
}

HttpRefusal refuse_bytes(const beast::error_code& error, std::string_view bytes) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return {431, "the head of the request is too large"};
  // Another version of HTTP is ours to learn; a line that ends in anything else is no request.
  if (error == http::error::bad_version && bytes.substr(0, bytes.find('\n')).find(" HTTP/") != bytes.npos)
    return {505, "HTTP/1.1 or HTTP/1.0 is needed"};
  return {400, "no HTTP request: " + error.message()};
}

}  // namespace

struct HeadParser::State {
  size_t limit;
  std::optional<http::request_parser<http::empty_body>> parser;
};

HeadParser::HeadParser(size_t limit) : state_(std::make_unique<State>()) {
  state_->limit = limit;
  reset();
}
HeadParser::~HeadParser() = default;

void HeadParser::reset() {
  refusal_ = {};
  auto& parser = state_->parser.emplace();
  parser.header_limit(static_cast<std::uint32_t>(state_->limit));
  // Bodies are read and limited by others.
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  parser.eager(false);
}

bool HeadParser::done() const { return state_->parser->is_header_done() && refusal_.status == 0; }

size_t HeadParser::put(std::string_view bytes) {
  size_t blank = 0;
  if (!state_->parser->got_some()) {
    // Some clients send an empty line after a body.
    blank = std::min(bytes.find_first_not_of("\r\n"), bytes.size());
    bytes.remove_prefix(blank);
    if (bytes.empty()) return blank;
  }
  return blank + parse(bytes);
}

size_t HeadParser::parse(std::string_view bytes) {
  beast::error_code error;
  const size_t used = state_->parser->put({bytes.data(), bytes.size()}, error);
  if (error == http::error::need_more) {
    if (bytes.size() - used >= state_->limit) refusal_ = refuse_bytes(http::error::header_limit, {});
    return used;
  }
  if (error) {
    refusal_ = refuse_bytes(error, bytes);
  } else if (state_->parser->is_header_done()) {
    refusal_ = refuse_head(state_->parser->get());
  }
  return used;
}

HttpHead HeadParser::take_head() {
  const auto& parser = *state_->parser;
  const auto& message = parser.get();
  HttpHead head;
  head.method = text_of(message.method_string());
  head.target = text_of(message.target());
  head.keep_alive = parser.keep_alive();
  head.chunked = parser.chunked();
  if (const auto length = parser.content_length()) head.content_length = *length;
  head.expects_continue = message.version() == 11 && !message[http::field::expect].empty();
  head.authorization = text_of(message[http::field::authorization]);
  head.content_type = text_of(message[http::field::content_type]);
  // Names of media types know no case.
  for (char& c : head.content_type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  head.json_bytes = number_of(message["Inference-Header-Content-Length"]);
  return head;
}

}  // namespace limber
