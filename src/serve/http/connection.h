// One client: reads a request, has it answered, writes the answer, and only then reads the next.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/http/chunked.h"
#include "serve/http/gate.h"
#include "serve/http/head_parser.h"
#include "serve/http/http_server.h"
#include "serve/http/router.h"
#include "serve/http/wire.h"

namespace limber {

// What all connections of a server share.
struct ConnectionShared {
  ConnectionShared(const HttpOptions& options, InferenceService& service)
      : options(options), gate(options.token), router(service, options.debug) {}

  const HttpOptions options;
  const Gate gate;
  Router router;
  std::atomic<size_t> bytes_in_flight = 0;
  std::atomic<bool> stopping = false;
};

// The thread that a connection lives on. Outlives its connections; kept alive by requests under way.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  // Runs `task` on that thread; drops it when the thread has ended. From any thread.
  virtual void post(std::function<void()> task) = 0;
  // The connection has closed; on that thread.
  virtual void forget(class Connection& connection) = 0;
};

// All calls on the thread of its host.
class Connection final : public WireUser, public std::enable_shared_from_this<Connection> {
 public:
  Connection(ConnectionShared& shared, std::shared_ptr<ConnectionHost> host, std::unique_ptr<Wire> wire,
             bool metrics_only);
  ~Connection() override;

  void start();
  // To be called now and then: gives up when the client took too long.
  void tick(double now);
  // After shared.stopping was set: closes when nothing is under way.
  void drain();
  void close();
  bool closed() const { return state_ == State::kClosed; }

  void on_open(bool ok) override;
  void on_read(size_t bytes, bool ok) override;
  void on_written(bool ok) override;

 private:
  enum class State : uint8_t { kOpening, kHead, kContinue, kBody, kWaiting, kWriting, kLinger, kClosed };

  void next_request();
  void read_more();
  void parse_head();
  void begin_body();
  HttpRefusal refuse(const HttpHead& head) const;
  HttpRefusal reserve(uint64_t bytes);
  void release();
  void take_body();
  void take_chunks();
  void dispatch();
  void refuse_and_close(const HttpRefusal& refusal);
  void write_answer(HttpAnswer answer);
  void linger();
  void log_access();
  void set_deadline(double seconds);
  double transfer_seconds(size_t bytes) const;
  std::string_view buffered() const { return {input_.data() + begin_, end_ - begin_}; }

  ConnectionShared& shared_;
  const std::shared_ptr<ConnectionHost> host_;
  const std::unique_ptr<Wire> wire_;
  const bool metrics_only_;
  State state_ = State::kOpening;
  bool reading_ = false;
  bool begun_ = false;  // bytes of the request at hand have come
  double deadline_;

  std::vector<char> input_;  // [begin_, end_): came and not used yet
  size_t begin_ = 0, end_ = 0;

  HeadParser parser_;
  HttpCall call_;
  std::shared_ptr<Buffer> body_;
  size_t body_offset_ = 0, body_size_ = 0, body_have_ = 0;
  double body_begin_ = 0;
  std::optional<ChunkDecoder> chunks_;
  size_t reserved_ = 0;
  uint64_t exchange_ = 0;  // counts requests: an answer belongs to one of them

  HttpAnswer answer_;
  std::string answer_head_;
  bool close_after_ = false;
};

}  // namespace limber
