// Whatever a client sends, in whatever pieces: every answer is one of HTTP, the service hears of sound
// requests only, and in the end the connection is closed.
#include <cstdint>
#include <deque>

#include "serve/http/connection.h"

namespace {

using namespace limber;

// Outputs are inputs.
class EchoService final : public InferenceService {
 public:
  ServerMetadata server() const override { return {"limber", "1", {}}; }
  bool live() const override { return true; }
  bool ready() const override { return true; }
  ServeStatus model_ready(std::string_view, std::string_view) const override { return {}; }
  ServeStatus metadata(std::string_view model, std::string_view, ModelMetadata& to) const override {
    to.name = model;
    to.takes_images = true;
    return {};
  }
  void infer(InferRequest request, InferDone done) override {
    InferResponse response;
    response.model = request.model;
    for (InferInput& input : request.inputs) {
      LIMBER_ASSERT(input.tensor.valid() != !input.images.empty() || input.images.empty());
      if (input.tensor.valid()) response.outputs.push_back({input.name, input.tensor});
    }
    done(std::move(response));
  }
  std::vector<RepositoryEntry> index(bool) const override { return {{"a", "1", "READY", ""}}; }
  ServeStatus load(const std::string&) override { return {}; }
  ServeStatus unload(const std::string&) override { return {}; }
  std::string metrics() const override { return "a 1\n"; }
  std::string status_json() const override { return "{}"; }
};

// What the thread of a connection would do, one thing after the other.
class Loop final : public ConnectionHost {
 public:
  void post(std::function<void()> task) override { tasks_.push_back(std::move(task)); }
  void forget(Connection&) override {}
  bool step() {
    if (tasks_.empty()) return false;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
    return true;
  }

 private:
  std::deque<std::function<void()>> tasks_;
};

class MemoryWire final : public Wire {
 public:
  MemoryWire(std::string_view input, size_t piece, Loop& loop) : input_(input), piece_(piece), loop_(loop) {}

  void open(std::shared_ptr<WireUser> user) override {
    loop_.post([user] { user->on_open(true); });
  }
  void read(std::span<char> to, std::shared_ptr<WireUser> user) override {
    LIMBER_ASSERT(!to.empty());
    const size_t count = closed_ ? 0 : std::min({to.size(), piece_, input_.size()});
    std::memcpy(to.data(), input_.data(), count);
    input_.remove_prefix(count);
    loop_.post([user, count] { user->on_read(count, count > 0); });
  }
  void write(std::span<const std::string_view> parts, std::shared_ptr<WireUser> user) override {
    LIMBER_ASSERT(parts[0].starts_with("HTTP/1.1 ") && parts[0].ends_with("\r\n\r\n"));
    loop_.post([user] { user->on_written(true); });
  }
  void finish(bool, std::shared_ptr<WireUser> user) override {
    loop_.post([user] { user->on_written(true); });
  }
  void close() override { closed_ = true; }
  std::string peer() const override { return "memory"; }
  bool has_client_certificate() const override { return false; }

 private:
  std::string_view input_;
  size_t piece_;
  Loop& loop_;
  bool closed_ = false;
};

}  // namespace

// The first byte says in pieces of which size the rest comes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  // Loading is done by a thread, whose answer would come at another place each time.
  if (bytes.find("load") != bytes.npos) return 0;
  HttpOptions options;
  options.max_head_bytes = 2048;
  options.max_body_bytes = 64 << 10;
  EchoService service;
  ConnectionShared shared(options, service);
  const auto loop = std::make_shared<Loop>();
  const auto connection = std::make_shared<Connection>(
      shared, loop, std::make_unique<MemoryWire>(bytes, data[0] == 0 ? size : data[0], *loop), false);
  connection->start();
  // Each step takes bytes or answers those that came.
  for (size_t steps = 0; loop->step(); ++steps) LIMBER_ASSERT(steps < 64 + 16 * size);
  LIMBER_ASSERT(connection->closed() && shared.bytes_in_flight == 0);
  return 0;
}
