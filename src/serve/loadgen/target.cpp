#include "serve/loadgen/target.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "serve/loadgen/request.h"

namespace limber {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using nlohmann::json;

// Bytes: of a model's metadata or a list of models, which are some kilobytes; what is larger is neither.
constexpr size_t kMaxDescription = size_t{16} << 20;

// The text of a segment of a path.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

Result<uint16_t> parse_port(std::string_view text, const std::string& url) {
  uint16_t port = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc() || stop != text.data() + text.size() || port == 0)
    return invalid("'{}': the port is '{}'; expected 1 to 65535", url, text);
  return port;
}

// A request and its answer, step by step; whatever fails ends it.
class Asked {
 public:
  Asked(const LoadTarget& target, double seconds) : target_(target), resolver_(context_), stream_(context_) {
    stream_.expires_after(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds)));
    parser_.body_limit(kMaxDescription);
  }

  Status run(const std::string& method, const std::string& path, const std::string& body) {
    request_.method_string(method);
    request_.target(path);
    request_.version(11);
    request_.set(http::field::host, target_.authority());
    request_.set(http::field::connection, "close");
    request_.body() = body;
    request_.prepare_payload();
    beast::error_code failed;
    const auto found = resolver_.resolve(target_.host, std::to_string(target_.port), failed);
    if (failed) return failure("cannot be found", failed);
    stream_.async_connect(found, [&](beast::error_code error, const auto&) {
      if (error) return fail("cannot be reached", error);
      http::async_write(stream_, request_, [&](beast::error_code error2, size_t) {
        if (error2) return fail("takes no request", error2);
        http::async_read(stream_, buffer_, parser_, [&](beast::error_code error3, size_t) {
          if (error3) fail("does not answer", error3);
        });
      });
    });
    context_.run();
    return status_;
  }

  PlainAnswer answer() {
    return {static_cast<int>(parser_.get().result_int()), std::move(parser_.get().body())};
  }

 private:
  Status failure(std::string_view what, const beast::error_code& why) const {
    return error(Code::kIo, "{} {}: {}; is the server running?", target_.authority(), what, why.message());
  }
  void fail(std::string_view what, const beast::error_code& why) { status_ = failure(what, why); }

  const LoadTarget& target_;
  asio::io_context context_;
  asio::ip::tcp::resolver resolver_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response_parser<http::string_body> parser_;
  Status status_;
};

// What an error's body says, or its beginning.
std::string reason_in(const std::string& body) {
  const json root = json::parse(body, nullptr, false);
  if (root.is_object() && root.contains("error") && root["error"].is_string()) return root["error"];
  return body.substr(0, 200);
}

Result<std::vector<TensorSpec>> parse_specs(const json& root, const char* key) {
  const auto list = root.find(key);
  if (list == root.end() || !list->is_array()) return corrupt("metadata have no array '{}'", key);
  std::vector<TensorSpec> specs;
  for (const json& entry : *list) {
    const bool whole = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                       entry.contains("datatype") && entry["datatype"].is_string() &&
                       entry.contains("shape") && entry["shape"].is_array();
    if (!whole) return corrupt("metadata: an entry of '{}' has no name, datatype and shape", key);
    TensorSpec spec;
    spec.name = entry["name"];
    LIMBER_ASSIGN(spec.dtype, parse_protocol_name(entry["datatype"].get<std::string>()));
    for (const json& dim : entry["shape"]) {
      if (!dim.is_number_integer()) return corrupt("metadata: the shape of '{}' holds no numbers", spec.name);
      spec.shape.push_back(dim);
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace

std::string LoadTarget::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string LoadTarget::model_path() const {
  const std::string path = "/v2/models/" + escaped(model);
  return version.empty() ? path : path + "/versions/" + escaped(version);
}

Result<LoadTarget> parse_url(const std::string& url) {
  std::string_view rest = url;
  constexpr std::string_view kScheme = "http://";
  if (rest.starts_with("https://"))
    return unsupported("'{}': only http:// is spoken here; put load on the server's plain port", url);
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  LoadTarget target;
  std::string_view host = rest, port;
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) return invalid("'{}': '[' without ']'", url);
    host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
    if (!port.empty() && port[0] != ':') return invalid("'{}': '{}' behind the address", url, port);
    if (!port.empty()) port.remove_prefix(1);
  } else if (const size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    host = rest.substr(0, colon);
    port = rest.substr(colon + 1);
    if (port.empty()) return invalid("'{}': no port behind ':'", url);
  }
  if (host.empty() || host.find_first_of("/?#@ \r\n") != std::string_view::npos)
    return invalid("'{}' is no address of a server; expected http://HOST:PORT", url);
  target.host = host;
  if (!port.empty()) {
    LIMBER_ASSIGN(target.port, parse_port(port, url));
  }
  return target;
}

Result<PlainAnswer> ask_once(const LoadTarget& target, const std::string& method, const std::string& path,
                             const std::string& body, double seconds) {
  Asked asked(target, seconds);
  LIMBER_TRY(asked.run(method, path, body));
  return asked.answer();
}

Result<std::string> only_model(const LoadTarget& target, double seconds) {
  LIMBER_ASSIGN(const PlainAnswer answer, ask_once(target, "POST", "/v2/repository/index", "{}", seconds));
  const json root = json::parse(answer.body, nullptr, false);
  if (answer.status != 200 || !root.is_array())
    return invalid("{} does not say which models it has (status {}); name one (model)", target.authority(),
                   answer.status);
  std::vector<std::string> names;
  for (const json& entry : root) {
    if (entry.is_object() && entry.contains("name") && entry["name"].is_string())
      names.push_back(entry["name"]);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() == 1) return names[0];
  std::string list;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 5); ++i) list += (i > 0 ? ", " : ": ") + names[i];
  return invalid("{} has {} models{}; name one (model)", target.authority(), names.size(), list);
}

Result<ModelMetadata> parse_metadata(const std::string& text) {
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object()) return corrupt("metadata are no JSON object: '{}'", text.substr(0, 100));
  ModelMetadata model;
  if (root.contains("name") && root["name"].is_string()) model.name = root["name"];
  if (root.contains("platform") && root["platform"].is_string()) model.platform = root["platform"];
  LIMBER_ASSIGN(model.inputs, parse_specs(root, "inputs"));
  LIMBER_ASSIGN(model.outputs, parse_specs(root, "outputs"));
  if (model.inputs.empty()) return corrupt("metadata: the model has no inputs");
  return model;
}

Result<ModelMetadata> fetch_metadata(const LoadTarget& target, double seconds) {
  LIMBER_ASSIGN(const PlainAnswer answer, ask_once(target, "GET", target.model_path(), "", seconds));
  if (answer.status != 200)
    return error(Code::kNotFound, "{} has no model '{}' (status {}): {}", target.authority(), target.model,
                 answer.status, reason_in(answer.body));
  const auto model = parse_metadata(answer.body);
  if (!model.ok()) return model.status().in(target.authority());
  return model;
}

}  // namespace limber
