#include "serve/http/http_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "base/clock.h"
#include "serve/http/connection.h"
#include "serve/http/tls.h"

namespace limber {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using TlsStream = asio::ssl::stream<tcp::socket>;

std::string peer_of(const tcp::socket::lowest_layer_type& socket) {
  error_code error;
  const auto end = socket.remote_endpoint(error);
  return error ? "unknown" : fmt::format("{}:{}", end.address().to_string(), end.port());
}

// What TCP and TLS have in common.
template <typename Stream>
class StreamWire : public Wire {
 public:
  template <typename... Args>
  explicit StreamWire(tcp::socket socket, Args&... args) : stream_(std::move(socket), args...) {}

  void read(std::span<char> to, std::shared_ptr<WireUser> user) override {
    stream_.async_read_some(asio::buffer(to.data(), to.size()),
                            [user = std::move(user)](error_code error, size_t bytes) {
                              user->on_read(bytes, !error && bytes > 0);
                            });
  }
  void write(std::span<const std::string_view> parts, std::shared_ptr<WireUser> user) override {
    parts_.clear();
    for (const std::string_view part : parts) parts_.emplace_back(part.data(), part.size());
    asio::async_write(stream_, parts_,
                      [user = std::move(user)](error_code error, size_t) { user->on_written(!error); });
  }
  void finish(bool, std::shared_ptr<WireUser> user) override {
    error_code error;
    socket().shutdown(tcp::socket::shutdown_send, error);
    asio::post(socket().get_executor(), [user = std::move(user), error] { user->on_written(!error); });
  }
  void close() override {
    error_code error;
    socket().close(error);
  }
  std::string peer() const override { return peer_of(stream_.lowest_layer()); }

 protected:
  auto& socket() { return stream_.lowest_layer(); }
  Stream stream_;

 private:
  std::vector<asio::const_buffer> parts_;
};

class TcpWire final : public StreamWire<tcp::socket> {
 public:
  using StreamWire::StreamWire;
  void open(std::shared_ptr<WireUser> user) override {
    asio::post(stream_.get_executor(), [user = std::move(user)] { user->on_open(true); });
  }
  bool has_client_certificate() const override { return false; }
};

class TlsWire final : public StreamWire<TlsStream> {
 public:
  using StreamWire::StreamWire;
  void open(std::shared_ptr<WireUser> user) override {
    stream_.async_handshake(TlsStream::server,
                            [user = std::move(user)](error_code error) { user->on_open(!error); });
  }
  // TLS would write each part as a record of its own; small ones go together.
  void write(std::span<const std::string_view> parts, std::shared_ptr<WireUser> user) override {
    constexpr size_t kSmall = 16 << 10;  // bytes: the most that a record of TLS holds
    size_t total = 0;
    for (const std::string_view part : parts) total += part.size();
    if (total > kSmall) return StreamWire::write(parts, std::move(user));
    joined_.clear();
    for (const std::string_view part : parts) joined_ += part;
    const std::string_view all = joined_;
    StreamWire::write({&all, 1}, std::move(user));
  }
  void finish(bool clean, std::shared_ptr<WireUser> user) override {
    if (!clean) return StreamWire::finish(clean, std::move(user));
    stream_.async_shutdown([user = std::move(user)](error_code error) { user->on_written(!error); });
  }
  bool has_client_certificate() const override {
    return SSL_get0_peer_certificate(const_cast<TlsStream&>(stream_).native_handle()) != nullptr;
  }

 private:
  std::string joined_;
};

// How many connections a server has, and a way to wait for none.
class ConnectionCount {
 public:
  void add() { ++count_; }
  void remove() {
    if (--count_ > 0) return;
    std::lock_guard lock(mutex_);
    none_.notify_all();
  }
  size_t get() const { return count_; }
  void wait_for_none(double seconds) {
    std::unique_lock lock(mutex_);
    none_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return count_ == 0; });
  }

 private:
  std::atomic<size_t> count_ = 0;
  std::mutex mutex_;
  std::condition_variable none_;
};

// A thread with its connections. Everything but post() and the life cycle happens on the thread itself.
class IoThread final : public ConnectionHost, public std::enable_shared_from_this<IoThread> {
 public:
  IoThread(double tick_s, ConnectionCount& count) : tick_s_(tick_s), count_(count) {}

  asio::io_context& context() { return context_; }
  void start() {
    thread_ = std::thread([this] { context_.run(); });
  }
  // Ends when the last handler has run. REQUIRES: connections were told to close
  void join() {
    post([this] {
      timer_.cancel();
      work_.reset();
    });
    if (thread_.joinable()) thread_.join();
    std::lock_guard lock(mutex_);
    ended_ = true;
  }

  void post(std::function<void()> task) override {
    std::lock_guard lock(mutex_);
    if (!ended_) asio::post(context_, std::move(task));
  }
  void forget(Connection& connection) override {
    if (connections_.erase(&connection) > 0) count_.remove();
  }

  // The count has it already.
  void adopt(std::shared_ptr<Connection> connection) {
    connections_.emplace(connection.get(), connection);
    connection->start();
    if (!ticking_) tick();
  }
  template <typename Call>
  void for_each(Call call) {
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(connections_.size());
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    for (const auto& connection : all) call(*connection);
  }

 private:
  // One look at all clocks now and then is cheaper than a timer for each operation; none while nobody is
  // here.
  void tick() {
    ticking_ = !connections_.empty();
    if (!ticking_) return;
    timer_.expires_after(
        std::chrono::duration_cast<asio::steady_timer::duration>(std::chrono::duration<double>(tick_s_)));
    timer_.async_wait([this](error_code error) {
      ticking_ = false;
      if (error) return;
      for_each([now = now_seconds()](Connection& connection) { connection.tick(now); });
      tick();
    });
  }

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  asio::steady_timer timer_{context_};
  const double tick_s_;
  bool ticking_ = false;
  ConnectionCount& count_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::mutex mutex_;
  bool ended_ = false;
  std::thread thread_;
};

// Every connection is a descriptor; the usual limit of 1,024 is for programs that serve nobody.
void raise_descriptor_limit(size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

// A port, served by the first thread.
struct Listener {
  Listener(asio::io_context& context, bool metrics_only)
      : acceptor(context), pause(context), metrics_only(metrics_only) {}

  tcp::acceptor acceptor;
  asio::steady_timer pause;  // until asking again makes sense
  const bool metrics_only;

  void close() {
    error_code ignored;
    acceptor.close(ignored);
    pause.cancel();
  }
};

Status listen(tcp::acceptor& acceptor, const std::string& address, int port) {
  error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return invalid("address is '{}'; expected an IP address, as 127.0.0.1, 0.0.0.0 or ::", address);
  const tcp::endpoint end(ip, static_cast<uint16_t>(port));
  acceptor.open(end.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(end, error);
  if (!error) acceptor.listen(1024, error);
  if (!error) return {};
  return limber::error(Code::kIo, "cannot listen at {} port {}: {}; choose another port or address", address,
                       port, error.message());
}

}  // namespace

struct HttpServer::State {
  State(const HttpOptions& given, InferenceService& service) : shared(given, service) {}

  ConnectionShared shared;
  ConnectionCount count;
  std::optional<asio::ssl::context> tls;
  std::vector<std::shared_ptr<IoThread>> threads;
  // On the first thread.
  std::optional<Listener> listener, metrics_listener;
  size_t next_thread = 0;
  uint16_t port = 0, metrics_port = 0;
  bool stopped = false;

  void accept(Listener& from);
  void welcome(tcp::socket socket, IoThread& thread, bool metrics_only);
  void turn_away(tcp::socket socket);
  std::unique_ptr<Wire> make_wire(tcp::socket socket);
};

void HttpServer::State::accept(Listener& from) {
  const std::shared_ptr<IoThread> thread = threads[next_thread++ % threads.size()];
  from.acceptor.async_accept(thread->context(), [this, &from, thread](error_code error, tcp::socket socket) {
    if (shared.stopping || error == asio::error::operation_aborted) return;
    if (!error) {
      // Whoever watches the server gets in when clients do not any more.
      if (count.get() < shared.options.max_connections + (from.metrics_only ? 16 : 0)) {
        welcome(std::move(socket), *thread, from.metrics_only);
      } else {
        turn_away(std::move(socket));
      }
      return accept(from);
    }
    // Out of descriptors or memory: asking at once again would spin.
    from.pause.expires_after(std::chrono::milliseconds(100));
    from.pause.async_wait([this, &from](error_code cancelled) {
      if (!cancelled && !shared.stopping) accept(from);
    });
  });
}

std::unique_ptr<Wire> HttpServer::State::make_wire(tcp::socket socket) {
  if (tls) return std::make_unique<TlsWire>(std::move(socket), *tls);
  return std::make_unique<TcpWire>(std::move(socket));
}

void HttpServer::State::welcome(tcp::socket socket, IoThread& thread, bool metrics_only) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  count.add();
  auto connection = std::make_shared<Connection>(shared, thread.shared_from_this(),
                                                 make_wire(std::move(socket)), metrics_only);
  thread.post([&thread, connection = std::move(connection)] { thread.adopt(connection); });
}

void HttpServer::State::turn_away(tcp::socket socket) {
  error_code ignored;
  if (!tls) {
    HttpAnswer answer = error_answer(503, "too many connections");
    answer.headers = "Retry-After: 1\r\n";
    const std::string text = format_head(answer, true) + answer.body;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(text), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }
  socket.close(ignored);
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::~HttpServer() { stop(0); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpOptions options, InferenceService& service) {
  LIMBER_TRY(check(options));
  auto state = std::make_unique<State>(options, service);
  if (!options.tls_certificate.empty()) {
    LIMBER_ASSIGN(TlsContext context, make_tls_context(options));
    state->tls.emplace(context.release());
  }
  raise_descriptor_limit(options.max_connections + 64);
  const double shortest = std::min({options.idle_s, options.head_s, options.body_s});
  const double tick_s = std::clamp(shortest / 4, 0.02, 1.0);
  for (int i = 0; i < options.io_threads; ++i)
    state->threads.push_back(std::make_shared<IoThread>(tick_s, state->count));
  asio::io_context& context = state->threads[0]->context();
  state->listener.emplace(context, false);
  LIMBER_TRY(listen(state->listener->acceptor, options.address, options.port));
  state->port = state->listener->acceptor.local_endpoint().port();
  if (options.metrics_port >= 0) {
    state->metrics_listener.emplace(context, true);
    LIMBER_TRY(listen(state->metrics_listener->acceptor, options.address, options.metrics_port));
    state->metrics_port = state->metrics_listener->acceptor.local_endpoint().port();
  }
  state->accept(*state->listener);
  if (state->metrics_listener) state->accept(*state->metrics_listener);
  for (const auto& thread : state->threads) thread->start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

uint16_t HttpServer::port() const { return state_->port; }
uint16_t HttpServer::metrics_port() const { return state_->metrics_port; }
size_t HttpServer::connections() const { return state_->count.get(); }

void HttpServer::stop(double seconds) {
  State& state = *state_;
  if (std::exchange(state.stopped, true)) return;
  state.shared.stopping = true;
  state.threads[0]->post([&state] {
    state.listener->close();
    if (state.metrics_listener) state.metrics_listener->close();
  });
  for (const auto& thread : state.threads) {
    thread->post(
        [&thread = *thread] { thread.for_each([](Connection& connection) { connection.drain(); }); });
  }
  state.count.wait_for_none(seconds);
  for (const auto& thread : state.threads) {
    thread->post(
        [&thread = *thread] { thread.for_each([](Connection& connection) { connection.close(); }); });
  }
  for (const auto& thread : state.threads) thread->join();
}

}  // namespace limber
