// A server that speaks just enough of HTTP and of the Open Inference Protocol to be put under load, and that
// does what a test tells it. One thread for each connection.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace limber::test {

struct FakeRequest {
  std::string method, path, body;
  std::map<std::string, std::string> fields;  // names in lower case
  bool http = false;                          // false: what came is none
};

struct FakeReply {
  int status = 200;
  std::string body;
  size_t json_bytes = 0;  // above 0: as Inference-Header-Content-Length
  double delay = 0;       // seconds before it is sent
  bool silent = false;    // the connection is closed instead
  bool close = false;     // after the answer, which does not say so
  bool last = false;      // the same, and it says so
};

class FakeServer {
 public:
  using Handler = std::function<FakeReply(const FakeRequest&)>;

  explicit FakeServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 128), 0);
    socklen_t size = sizeof(address);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~FakeServer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int socket : sockets_) ::close(socket);
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  uint16_t port() const { return port_; }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  int requests() const { return requests_; }
  int connections() const { return connections_; }

 private:
  void accept_all() {
    while (!stopping_) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) return;
      ++connections_;
      const std::lock_guard lock(mutex_);
      sockets_.push_back(socket);
      threads_.emplace_back([this, socket] { serve(socket); });
    }
  }

  // Reads until `text` has `bytes` more bytes behind `from`, or the head's end when bytes is 0.
  static bool fill(int socket, std::string& text, size_t bytes) {
    std::array<char, 65536> chunk;
    while (bytes == 0 ? text.find("\r\n\r\n") == std::string::npos : text.size() < bytes) {
      const auto got = ::recv(socket, chunk.data(), chunk.size(), 0);
      if (got <= 0) return false;
      text.append(chunk.data(), static_cast<size_t>(got));
    }
    return true;
  }

  static FakeRequest parse_head(const std::string& head) {
    FakeRequest request;
    const size_t line = head.find("\r\n");
    const size_t first = head.find(' '), second = head.find(' ', first + 1);
    request.http = second < line && head.compare(second + 1, 5, "HTTP/") == 0;
    if (!request.http) return request;
    request.method = head.substr(0, first);
    request.path = head.substr(first + 1, second - first - 1);
    for (size_t at = line + 2; at + 2 < head.size();) {
      const size_t end = head.find("\r\n", at), colon = head.find(':', at);
      if (end == at || colon > end) break;
      std::string name = head.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      const size_t value = head.find_first_not_of(' ', colon + 1);
      request.fields[name] = head.substr(value, end - value);
      at = end + 2;
    }
    return request;
  }

  void serve(int socket) {
    std::string text;
    bool open = true;
    while (open && fill(socket, text, 0)) {
      const size_t end = text.find("\r\n\r\n") + 4;
      FakeRequest request = parse_head(text.substr(0, end));
      const std::string& length = request.fields["content-length"];
      if (!std::all_of(length.begin(), length.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
        request.http = false;
      const size_t size = request.http && !length.empty() ? std::stoul(length) : 0;
      if (size > 0 && !fill(socket, text, end + size)) break;
      request.body = text.substr(end, size);
      text.erase(0, end + size);
      ++requests_;
      open = answer(socket, request.http ? handler_(request) : FakeReply{.status = 400, .last = true});
    }
    ::shutdown(socket, SHUT_RDWR);
  }

  static bool answer(int socket, const FakeReply& reply) {
    std::this_thread::sleep_for(std::chrono::duration<double>(reply.delay));
    if (reply.silent) return false;
    std::string text =
        fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n", reply.status, reply.body.size());
    if (reply.json_bytes > 0)
      text += fmt::format("Inference-Header-Content-Length: {}\r\n", reply.json_bytes);
    if (reply.last) text += "Connection: close\r\n";
    text += "\r\n" + reply.body;
    return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()) &&
           !reply.close && !reply.last;
  }

  Handler handler_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread acceptor_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> requests_{0}, connections_{0};
  std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::vector<int> sockets_;
};

// A model "m" with input x f32[-1,dims...] and output y f32[-1,classes], strict about what it is sent.
struct FakeModel {
  std::vector<int64_t> dims = {4};
  int64_t classes = 4;
  std::string variant;
  // Gives the outputs of one row; default: the first inputs.
  std::function<std::vector<float>(const std::vector<float>& x)> compute;

  size_t elements() const {
    size_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
    return count;
  }

  FakeReply metadata() const {
    nlohmann::json shape = {-1};
    for (const int64_t dim : dims) shape.push_back(dim);
    const nlohmann::json root = {
        {"name", "m"},
        {"versions", {"1"}},
        {"platform", "fake"},
        {"inputs", {{{"name", "x"}, {"datatype", "FP32"}, {"shape", shape}}}},
        {"outputs", {{{"name", "y"}, {"datatype", "FP32"}, {"shape", {-1, classes}}}}}};
    return {.body = root.dump()};
  }

  FakeReply refuse(int status, const std::string& why) const {
    return {.status = status, .body = nlohmann::json{{"error", why}}.dump()};
  }

  // What every handler may end with.
  FakeReply operator()(const FakeRequest& request) const {
    if (request.path == "/v2/repository/index") return {.body = R"([{"name":"m","state":"READY"}])"};
    if (request.path == "/v2/models/m" && request.method == "GET") return metadata();
    if (request.path != "/v2/models/m/infer") return refuse(404, "no such path");
    if (request.method != "POST") return refuse(405, "infer wants POST");
    return infer(request);
  }

  FakeReply infer(const FakeRequest& request) const {
    const auto field = request.fields.find("inference-header-content-length");
    const size_t json_bytes = field == request.fields.end() ? request.body.size() : std::stoul(field->second);
    if (json_bytes > request.body.size()) return refuse(400, "the JSON is cut");
    const auto root = nlohmann::json::parse(request.body.substr(0, json_bytes), nullptr, false);
    if (!root.is_object() || !root.contains("inputs") || root["inputs"].size() != 1)
      return refuse(400, "no JSON with one input");
    const auto& input = root["inputs"][0];
    nlohmann::json shape = {1};
    for (const int64_t dim : dims) shape.push_back(dim);
    if (input.value("name", "") != "x" || input.value("datatype", "") != "FP32" || input["shape"] != shape)
      return refuse(400, "x should be FP32 of the right shape");
    std::vector<float> x(elements());
    if (input.contains("data")) {
      if (input["data"].size() != x.size()) return refuse(400, "wrong number of values");
      x = input["data"].get<std::vector<float>>();
    } else {
      if (request.body.size() - json_bytes != x.size() * sizeof(float)) return refuse(400, "wrong bytes");
      std::memcpy(x.data(), request.body.data() + json_bytes, x.size() * sizeof(float));
    }
    const bool binary = root.contains("outputs");
    return reply(root.value("id", ""), compute ? compute(x) : x, binary);
  }

  FakeReply reply(const std::string& id, std::vector<float> y, bool binary) const {
    y.resize(static_cast<size_t>(classes));
    nlohmann::json output = {{"name", "y"}, {"datatype", "FP32"}, {"shape", {1, classes}}};
    if (binary) {
      output["parameters"] = {{"binary_data_size", y.size() * sizeof(float)}};
    } else {
      output["data"] = y;
    }
    nlohmann::json root = {{"model_name", "m"}, {"id", id}, {"outputs", {output}}};
    if (!variant.empty()) root["parameters"] = {{"variant", variant}};
    FakeReply answer{.body = root.dump()};
    if (!binary) return answer;
    answer.json_bytes = answer.body.size();
    answer.body.append(reinterpret_cast<const char*>(y.data()), y.size() * sizeof(float));
    return answer;
  }
};

}  // namespace limber::test
