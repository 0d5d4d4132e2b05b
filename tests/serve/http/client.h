// A client that says exactly what a test wants it to say. Blocking, with a limit on every wait.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace limber {

struct Reply {
  int status = 0;  // 0: none came
  std::string head, body;

  std::string header(std::string_view name) const {
    const size_t at = head.find("\r\n" + std::string(name) + ": ");
    if (at == head.npos) return "";
    const size_t start = at + 4 + name.size();
    return head.substr(start, head.find("\r\n", start) - start);
  }
};

class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0)
        << std::strerror(errno);
  }
  ~Client() { close(); }
  Client(Client&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), input_(std::move(other.input_)) {}

  // False when the other side is gone.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Whether there is a byte, or the end, within `seconds`.
  bool readable(double seconds) {
    if (!input_.empty()) return true;
    pollfd wait{socket_, POLLIN, 0};
    return ::poll(&wait, 1, static_cast<int>(seconds * 1000)) > 0;
  }
  // Status 0: the connection ended or 30 s have passed.
  Reply receive(bool head_only = false) {
    Reply reply;
    size_t end;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return reply;
    }
    reply.head = input_.substr(0, end + 2);
    input_.erase(0, end + 4);
    size_t length = 0;
    const std::string text = reply.header("Content-Length");
    std::from_chars(text.data(), text.data() + text.size(), length);
    if (head_only) length = 0;
    while (input_.size() < length) {
      if (!fill()) return reply;
    }
    reply.body = input_.substr(0, length);
    input_.erase(0, length);
    std::from_chars(reply.head.data() + 9, reply.head.data() + 12, reply.status);
    return reply;
  }
  bool ended() { return input_.empty() && !fill(); }

  Reply get(std::string_view path, std::string_view headers = "") {
    send(std::string("GET ").append(path).append(" HTTP/1.1\r\nHost: t\r\n").append(headers).append("\r\n"));
    return receive();
  }
  Reply post(std::string_view path, std::string_view body, std::string_view headers = "") {
    send(post_text(path, body, headers));
    return receive();
  }
  static std::string post_text(std::string_view path, std::string_view body, std::string_view headers = "") {
    return std::string("POST ").append(path).append(" HTTP/1.1\r\nHost: t\r\n").append(headers) +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }
  void finish_sending() { ::shutdown(socket_, SHUT_WR); }
  // Without a farewell: the other side sees a reset.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

 private:
  bool fill() {
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, 30000) <= 0) return false;
    char bytes[16384];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    input_.append(bytes, static_cast<size_t>(got));
    return true;
  }

  int socket_;
  std::string input_;
};

}  // namespace limber
