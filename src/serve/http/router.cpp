#include "serve/http/router.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "serve/http/page.h"
#include "serve/protocol/documents.h"
#include "serve/protocol/infer_response.h"
#include "serve/protocol/json_reader.h"
#include "serve/protocol/json_writer.h"

namespace limber {
namespace {

// Loads take seconds each: more would wait for minutes, and clients give up before.
constexpr size_t kLoadsWaiting = 16;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

HttpAnswer json_answer(std::string body) {
  HttpAnswer answer;
  answer.body = std::move(body);
  return answer;
}

HttpAnswer health_answer(std::string_view name, bool good) {
  HttpAnswer answer = json_answer(fmt::format("{{\"{}\":{}}}", name, good));
  if (!good) answer.status = 503, answer.headers = "Retry-After: 1\r\n";
  return answer;
}

HttpAnswer page_answer() {
  HttpAnswer answer;
  answer.content_type = "text/html; charset=utf-8";
  answer.headers = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";
  answer.body = live_page();
  return answer;
}

HttpAnswer infer_answer(const InferResponse& response, const AnswerForm& form) {
  if (!response.status.ok()) return refusal_answer(response.status);
  EncodedResponse encoded = encode_infer_response(response, form);
  HttpAnswer answer;
  if (encoded.binary) {
    answer.content_type = "application/octet-stream";
    answer.headers = fmt::format("Inference-Header-Content-Length: {}\r\n", encoded.json.size());
  }
  answer.body = std::move(encoded.json);
  answer.tail = std::move(encoded.tail);
  return answer;
}

}  // namespace

std::optional<std::vector<std::string>> split_path(std::string_view target) {
  // As proxies are asked: the whole address.
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.starts_with(scheme))
      target.remove_prefix(std::min(target.size(), target.find('/', scheme.size())));
  }
  target = target.substr(0, std::min(target.find('?'), target.find('#')));
  if (!target.starts_with('/')) return std::nullopt;
  target.remove_prefix(1);
  std::vector<std::string> segments;
  while (!target.empty()) {
    const size_t end = std::min(target.find('/'), target.size());
    auto segment = percent_decoded(target.substr(0, end));
    if (!segment || segment->empty() || segments.size() == 8) return std::nullopt;
    segments.push_back(*std::move(segment));
    target.remove_prefix(std::min(end + 1, target.size()));
  }
  return segments;
}

HttpAnswer refusal_answer(const ServeStatus& status) {
  HttpAnswer answer = error_answer(http_status(status.refusal), status.message);
  if (status.refusal == Refusal::kOverloaded || status.refusal == Refusal::kUnavailable) {
    const double seconds =
        std::isfinite(status.retry_after_s) ? std::clamp(status.retry_after_s, 1.0, 3600.0) : 1;
    answer.headers = fmt::format("Retry-After: {}\r\n", static_cast<int>(std::ceil(seconds)));
  }
  return answer;
}

// What a path means and which method it takes.
struct Router::Match {
  enum class Route {
    kNone,
    kPage,
    kMetrics,
    kServer,
    kLive,
    kReady,
    kModel,
    kIndex,
    kLoad,
    kUnload,
    kStatus,
    kForce
  };
  Route route = Route::kNone;
  bool post = false;
};

Router::Router(InferenceService& service, bool debug)
    : service_(service), debug_(debug), loads_(kLoadsWaiting) {}

Router::Match Router::match(const Segments& path, bool metrics_only) const {
  using enum Match::Route;
  const auto is = [&path](size_t i, std::string_view text) { return i < path.size() && path[i] == text; };
  const size_t count = path.size();
  if (count == 1 && is(0, "metrics")) return {kMetrics};
  if (metrics_only) return {};
  if (count == 0 || (count == 1 && is(0, "index.html"))) return {kPage};
  if (!is(0, "v2")) return {};
  if (count == 1) return {kServer};
  if (count == 3 && is(1, "health") && is(2, "live")) return {kLive};
  if (count == 3 && is(1, "health") && is(2, "ready")) return {kReady};
  if (count == 3 && is(1, "limber") && is(2, "status")) return {kStatus};
  if (debug_ && count == 3 && is(1, "limber") && is(2, "variant")) return {kForce, true};
  if (count == 3 && is(1, "repository") && is(2, "index")) return {kIndex, true};
  if (count == 5 && is(1, "repository") && is(2, "models") && is(4, "load")) return {kLoad, true};
  if (count == 5 && is(1, "repository") && is(2, "models") && is(4, "unload")) return {kUnload, true};
  if (count < 3 || !is(1, "models")) return {};
  const bool versions = count >= 5 && is(3, "versions");
  const size_t verb = versions ? 5 : 3;
  if (count == verb) return {kModel};
  if (count != verb + 1 || !(is(verb, "infer") || is(verb, "ready"))) return {};
  return {kModel, is(verb, "infer")};
}

std::optional<HttpAnswer> Router::handle(const HttpCall& call, AnswerLater later) {
  using enum Match::Route;
  const auto path = split_path(call.head.target);
  const Match found = path ? match(*path, call.metrics_only) : Match();
  if (found.route == kNone) {
    return error_answer(404,
                        fmt::format("nothing is at '{}'; see the routes of the Open Inference Protocol, as "
                                    "/v2/health/ready",
                                    excerpt(call.head.target)));
  }
  const bool get = call.head.method == "GET" || call.head.method == "HEAD";
  if (found.post ? call.head.method != "POST" : !get) {
    HttpAnswer answer =
        error_answer(405, fmt::format("{} is not for '{}'; use {}", excerpt(call.head.method),
                                      excerpt(call.head.target), found.post ? "POST" : "GET"));
    answer.headers = found.post ? "Allow: POST\r\n" : "Allow: GET, HEAD\r\n";
    return answer;
  }
  switch (found.route) {
    case kPage:
      return page_answer();
    case kMetrics: {
      HttpAnswer answer = json_answer(service_.metrics());
      answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
      return answer;
    }
    case kServer:
      return json_answer(server_json(service_.server()));
    case kLive:
      return health_answer("live", service_.live());
    case kReady:
      return health_answer("ready", service_.ready());
    case kStatus:
      return json_answer(service_.status_json());
    case kForce:
      return force(call);
    case kIndex:
      return index(call);
    case kLoad:
    case kUnload:
      return load(call, (*path)[3], found.route == kLoad, later);
    default:
      return model_call(call, *path, later);
  }
}

std::optional<HttpAnswer> Router::model_call(const HttpCall& call, const Segments& path, AnswerLater& later) {
  const bool versions = path.size() >= 5 && path[3] == "versions";
  const std::string version = versions ? path[4] : "";
  const size_t verb = versions ? 5 : 3;
  if (path.size() == verb) return model_document(path[2], version);
  if (path[verb] == "ready") return model_ready(path[2], version);
  return infer(call, path[2], version, later);
}

HttpAnswer Router::model_document(const std::string& model, const std::string& version) const {
  ModelMetadata metadata;
  const ServeStatus status = service_.metadata(model, version, metadata);
  return status.ok() ? json_answer(model_json(metadata)) : refusal_answer(status);
}

HttpAnswer Router::model_ready(const std::string& model, const std::string& version) const {
  const ServeStatus status = service_.model_ready(model, version);
  if (!status.ok()) return refusal_answer(status);
  std::string text = "{\"name\":";
  append_json_string(text, model);
  return json_answer(text + ",\"ready\":true}");
}

std::optional<HttpAnswer> Router::infer(const HttpCall& call, std::string model, std::string version,
                                        AnswerLater& later) {
  InferRequest request;
  request.model = std::move(model);
  request.version = std::move(version);
  request.received = call.received;
  const MetadataOf metadata = [this, &request](ModelMetadata& to) {
    return service_.metadata(request.model, request.version, to);
  };
  AnswerForm form;
  const ServeStatus status =
      call.head.content_type.starts_with("image/")
          ? decode_image_request(call.body, metadata, request)
          : decode_infer_request({call.body, call.head.json_bytes, call.owner}, metadata, request, form);
  if (!status.ok()) return refusal_answer(status);
  service_.infer(std::move(request),
                 [later = std::move(later), form = std::move(form)](InferResponse response) {
                   later([response = std::move(response), form] { return infer_answer(response, form); });
                 });
  return std::nullopt;
}

HttpAnswer Router::index(const HttpCall& call) const {
  bool ready_only = false;
  const ServeStatus status = decode_index_request(call.body, ready_only);
  return status.ok() ? json_answer(index_json(service_.index(ready_only))) : refusal_answer(status);
}

HttpAnswer Router::force(const HttpCall& call) {
  ForceRequest wanted;
  ServeStatus status = decode_force_request(call.body, wanted);
  if (status.ok()) status = service_.force(wanted.model, wanted.variant);
  return status.ok() ? json_answer("{}") : refusal_answer(status);
}

std::optional<HttpAnswer> Router::load(const HttpCall& call, const std::string& model, bool load,
                                       AnswerLater& later) {
  if (const ServeStatus status = decode_load_request(call.body); !status.ok()) return refusal_answer(status);
  // Answers also when it is given up: as long as nobody called it, its end does.
  struct Reply {
    AnswerLater later;
    ServeStatus status{Refusal::kUnavailable, "the server is shutting down"};
    ~Reply() {
      later([status = status] { return status.ok() ? json_answer("{}") : refusal_answer(status); });
    }
  };
  const auto reply = std::make_shared<Reply>();
  reply->later = std::move(later);
  const bool added = loads_.add(
      [this, reply, model, load] { reply->status = load ? service_.load(model) : service_.unload(model); });
  if (!added) {
    reply->status = {Refusal::kOverloaded,
                     fmt::format("{} models are waiting to be loaded or unloaded", kLoadsWaiting), 5};
  }
  return std::nullopt;
}

}  // namespace limber
