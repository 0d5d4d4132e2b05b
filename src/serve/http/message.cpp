#include "serve/http/message.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <iterator>
#include <utility>

#include "serve/protocol/documents.h"
#include "serve/protocol/json_writer.h"

namespace limber {
namespace {

constexpr std::pair<int, std::string_view> kReasons[] = {
    {100, "Continue"},
    {200, "OK"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

// The Date header, made once a second.
std::string_view date_now() {
  thread_local std::time_t last = 0;
  thread_local std::string text;
  if (const std::time_t now = std::time(nullptr); now != last || text.empty()) {
    last = now;
    text = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(now));
  }
  return text;
}

}  // namespace

size_t HttpAnswer::size() const {
  size_t total = body.size();
  for (const Tensor& tensor : tail) total += tensor.bytes();
  return total;
}

HttpAnswer error_answer(int status, std::string_view message) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = error_json(message);
  return answer;
}

std::string_view reason_phrase(int status) {
  for (const auto& [number, reason] : kReasons) {
    if (number == status) return reason;
  }
  return "Unknown";
}

std::string format_head(const HttpAnswer& answer, bool close) {
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nServer: limber\r\nDate: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
      answer.status, reason_phrase(answer.status), date_now(), answer.content_type, answer.size());
  head += answer.headers;
  head += close ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n";
  return head;
}

std::string format_access(const HttpAccess& access) {
  std::string line = "{\"event\":\"http\",\"peer\":";
  append_json_string(line, access.peer);
  line += ",\"method\":";
  append_json_string(line, access.method);
  line += ",\"target\":";
  append_json_string(line, access.target);
  fmt::format_to(std::back_inserter(line),
                 ",\"status\":{},\"request_bytes\":{},\"response_bytes\":{},\"duration_s\":{:.6f}}}",
                 access.status, access.request_bytes, access.response_bytes, access.seconds);
  return line;
}

}  // namespace limber
