#include "serve/loadgen/client.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/clock.h"

namespace limber {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxAnswer = size_t{64} << 20;  // bytes; as large as what our own server takes
constexpr double kTick = 0.1;           // seconds between two looks at `stop`: Ctrl-C feels immediate
constexpr double kReport = 0.5;         // seconds between two reports, which a person reads
constexpr size_t kMaxProblems = 50;     // kinds that are told apart: a list that can still be read
constexpr size_t kMaxVariants = 30000;  // names that are told apart: LoadRecord has 16 bits for one

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

struct Connection {
  explicit Connection(asio::io_context& context) : stream(context) {}

  // An idle one that the other side closed meanwhile, or talked on without being asked, is of no use.
  bool usable() {
    char byte = 0;
    const auto got = ::recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  std::optional<http::response_parser<http::string_body>> parser;
  bool open = false;
  // The request under way.
  size_t record = 0;
  std::string head;
  std::string_view tail;
  std::string_view malformed;  // kind; empty: well-formed
};

class LoadRun {
 public:
  LoadRun(const RequestWriter& writer, const LoadPlan& plan, const LoadWatcher& watcher,
          const std::atomic<bool>* stop)
      : writer_(writer),
        plan_(plan),
        watcher_(watcher),
        stop_(stop),
        due_timer_(context_),
        tick_timer_(context_),
        random_(plan.seed ^ 0x6d616c666f726d65ULL),
        limit_(static_cast<size_t>(plan.closed > 0 ? plan.closed : plan.connections)) {}

  Status prepare(const LoadTarget& target);
  LoadLog run();

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool more(double now) const;
  void pump();
  void arm();
  void tick();
  void finish();

  Connection* take_connection();
  void drop(Connection* connection);
  void release(Connection* connection, bool keep);

  void begin(Connection* connection, size_t record);
  void compose(Connection* connection);
  void send(Connection* connection);
  void receive(Connection* connection);
  void answered(Connection* connection);
  void judge_answer(Connection* connection, LoadRecord& record);
  void failed(Connection* connection, const beast::error_code& why);
  void problem(const std::string& what, std::string_view example);
  int16_t variant_index(const std::string& name);

  const RequestWriter& writer_;
  const LoadPlan& plan_;
  const LoadWatcher& watcher_;
  const std::atomic<bool>* stop_;

  asio::io_context context_{1};
  asio::steady_timer due_timer_, tick_timer_;
  tcp::resolver::results_type endpoints_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;
  Random random_;
  const size_t limit_;

  Clock::time_point start_;
  LoadLog log_;
  size_t next_ = 0;  // the first record that is not sent
  size_t busy_ = 0;
  bool armed_ = false, finished_ = false;
  std::unordered_map<std::string, int16_t> variants_;

  LoadProgress progress_;
  double reported_ = 0, latencies_ = 0;
  int64_t good_ = 0;
};

Status LoadRun::prepare(const LoadTarget& target) {
  beast::error_code why;
  endpoints_ = tcp::resolver(context_).resolve(target.host, std::to_string(target.port), why);
  if (!why) {
    tcp::socket probe(context_);
    for (const auto& endpoint : endpoints_) {
      why = {};
      probe.close(why);
      probe.connect(endpoint, why);
      if (!why) break;
    }
  }
  if (why)
    return error(Code::kIo, "{} cannot be reached: {}; is the server running?", target.authority(),
                 why.message());
  return {};
}

LoadLog LoadRun::run() {
  for (size_t row = 0; row < writer_.rows(); ++row) log_.labels.push_back(writer_.label(row));
  if (plan_.closed == 0) {
    log_.records.resize(plan_.due.size());
    for (size_t i = 0; i < plan_.due.size(); ++i) log_.records[i].due = plan_.due[i];
  }
  start_ = Clock::now();
  log_.started_unix = unix_seconds();
  tick();
  pump();
  context_.run();
  log_.records.resize(std::min(log_.records.size(), next_));
  return std::move(log_);
}

// Is there anything left to send, now or later?
bool LoadRun::more(double now) const {
  if (log_.stopped) return false;
  if (plan_.closed > 0) return now < plan_.seconds && next_ < static_cast<size_t>(kMaxRequests);
  return next_ < log_.records.size();
}

void LoadRun::pump() {
  double now = elapsed();
  while (more(now)) {
    if (plan_.closed > 0) {
      Connection* connection = take_connection();
      if (connection == nullptr) return;
      log_.records.emplace_back().due = now;
      begin(connection, next_++);
      continue;
    }
    const double due = log_.records[next_].due;
    if (due > now) return arm();
    if (now - due > plan_.give_up) {
      ++next_;
      problem("no connection was free", {});
      continue;
    }
    Connection* connection = take_connection();
    if (connection == nullptr) return;
    begin(connection, next_++);
    now = elapsed();
  }
  if (busy_ == 0) finish();
}

void LoadRun::arm() {
  if (armed_) return;
  armed_ = true;
  due_timer_.expires_at(start_ + duration_of(log_.records[next_].due));
  due_timer_.async_wait([this](const beast::error_code& why) {
    armed_ = false;
    if (!why) pump();
  });
}

void LoadRun::tick() {
  tick_timer_.expires_after(duration_of(kTick));
  tick_timer_.async_wait([this](const beast::error_code& why) {
    if (why || finished_) return;
    const double now = elapsed();
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed) && more(now)) {
      log_.stopped = true;
      due_timer_.cancel();
      if (busy_ == 0) return finish();
    }
    if (watcher_ && now - reported_ >= kReport) {
      progress_.seconds = now;
      const double total = plan_.closed > 0 ? plan_.seconds : plan_.due.back();
      progress_.share = std::min(1.0, now / std::max(1e-9, total));
      progress_.latency = good_ > 0 ? latencies_ / static_cast<double>(good_) : 0;
      watcher_(progress_);
      latencies_ = 0;
      good_ = 0;
      reported_ = now;
    }
    tick();
    pump();  // what waits for a connection in vain is given up, and a closed loop ends
  });
}

void LoadRun::finish() {
  if (finished_) return;
  finished_ = true;
  log_.seconds = elapsed();
  tick_timer_.cancel();
  due_timer_.cancel();
  idle_.clear();
  connections_.clear();
}

Connection* LoadRun::take_connection() {
  while (!idle_.empty()) {
    Connection* connection = idle_.back();
    idle_.pop_back();
    if (connection->usable()) return connection;
    drop(connection);
  }
  if (connections_.size() >= limit_) return nullptr;
  auto made = std::make_unique<Connection>(context_);
  Connection* connection = made.get();
  connections_.emplace(connection, std::move(made));
  ++log_.connections;
  return connection;
}

void LoadRun::drop(Connection* connection) { connections_.erase(connection); }

void LoadRun::release(Connection* connection, bool keep) {
  --busy_;
  if (keep) {
    idle_.push_back(connection);
  } else {
    drop(connection);
  }
  pump();
}

void LoadRun::begin(Connection* connection, size_t record) {
  ++busy_;
  ++progress_.sent;
  connection->record = record;
  log_.records[record].sent = elapsed();
  compose(connection);
  connection->stream.expires_after(duration_of(plan_.give_up));
  if (connection->open) return send(connection);
  connection->stream.async_connect(endpoints_, [this, connection](const beast::error_code& why, const auto&) {
    if (why) return failed(connection, why);
    connection->open = true;
    beast::error_code ignored;
    connection->stream.socket().set_option(tcp::no_delay(true), ignored);
    send(connection);
  });
}

void LoadRun::compose(Connection* connection) {
  LoadRecord& record = log_.records[connection->record];
  connection->malformed = {};
  connection->tail = {};
  if (plan_.malformed > 0 && random_.uniform() < plan_.malformed) {
    record.malformed = true;
    connection->malformed = writer_.write_malformed(random_, connection->head);
    return;
  }
  record.row = static_cast<int32_t>(connection->record % writer_.rows());
  int64_t timeout_us = 0;
  if (plan_.deadline > 0 && plan_.send_deadline) {
    const double left = plan_.deadline - (record.sent - record.due);
    timeout_us = std::max<int64_t>(1, std::llround(left * 1e6));
  }
  writer_.write(static_cast<size_t>(record.row), connection->record, timeout_us, connection->head,
                connection->tail);
}

void LoadRun::send(Connection* connection) {
  const std::array<asio::const_buffer, 2> parts = {
      asio::buffer(connection->head), asio::buffer(connection->tail.data(), connection->tail.size())};
  // A server that refuses early may answer and close before it has read everything: the answer counts.
  asio::async_write(connection->stream, parts, [this, connection](const beast::error_code& why, size_t) {
    if (why == beast::error::timeout) return failed(connection, why);
    receive(connection);
  });
}

void LoadRun::receive(Connection* connection) {
  connection->parser.emplace();
  connection->parser->body_limit(kMaxAnswer);
  http::async_read(connection->stream, connection->buffer, *connection->parser,
                   [this, connection](const beast::error_code& why, size_t) {
                     if (why) return failed(connection, why);
                     answered(connection);
                   });
}

void LoadRun::answered(Connection* connection) {
  LoadRecord& record = log_.records[connection->record];
  record.done = elapsed();
  record.status = static_cast<int16_t>(connection->parser->get().result_int());
  judge_answer(connection, record);
  ++progress_.answered;
  if (record.good()) {
    latencies_ += record.latency();
    ++good_;
  } else {
    ++progress_.refused;
  }
  release(connection, connection->parser->get().keep_alive());
}

void LoadRun::judge_answer(Connection* connection, LoadRecord& record) {
  const auto& answer = connection->parser->get();
  if (record.malformed) {
    if (record.status < 400 || record.status >= 500)
      ++log_.malformed[fmt::format("{}: status {}", connection->malformed, record.status)];
    return;
  }
  if (record.status != 200) return problem(fmt::format("status {}", record.status), answer.body());
  size_t json_bytes = 0;
  if (const auto field = answer.find("Inference-Header-Content-Length"); field != answer.end())
    json_bytes = static_cast<size_t>(std::strtoull(std::string(field->value()).c_str(), nullptr, 10));
  const ParsedAnswer parsed = parse_answer(answer.body(), json_bytes);
  const bool ours = parsed.id.empty() || parsed.id == std::to_string(connection->record);
  if (!parsed.readable || !ours) {
    record.status = 0;
    record.done = LoadRecord::kNever;
    return problem(ours ? "an answer that cannot be read" : "the answer to another request", answer.body());
  }
  record.predicted = static_cast<int32_t>(parsed.predicted);
  record.variant = parsed.variant.empty() ? int16_t{-1} : variant_index(parsed.variant);
}

void LoadRun::failed(Connection* connection, const beast::error_code& why) {
  ++progress_.lost;
  const std::string text = why == beast::error::timeout ? "timed out" : why.message();
  if (connection->malformed.empty()) {
    problem(text, {});
  } else {
    ++log_.malformed[fmt::format("{}: {}", connection->malformed, text)];
  }
  release(connection, false);
}

void LoadRun::problem(const std::string& what, std::string_view example) {
  const bool room = log_.problems.size() < kMaxProblems || log_.problems.contains(what);
  LoadProblem& entry = log_.problems[room ? what : "others"];
  if (entry.count++ == 0) entry.example = example.substr(0, 200);
}

int16_t LoadRun::variant_index(const std::string& name) {
  if (const auto known = variants_.find(name); known != variants_.end()) return known->second;
  if (log_.variants.size() >= kMaxVariants) return -1;
  const auto index = static_cast<int16_t>(log_.variants.size());
  log_.variants.push_back(name);
  variants_.emplace(name, index);
  return index;
}

}  // namespace

Status check(const LoadPlan& plan) {
  if (plan.closed < 0 || plan.closed > 10000)
    return invalid("closed is {}; expected 0 to 10000", plan.closed);
  if (plan.closed == 0 && plan.due.empty()) return invalid("no request is due");
  if (plan.closed > 0 && !(plan.seconds > 0 && plan.seconds <= 1e6))
    return invalid("seconds is {}; expected more than 0, at most 1e6", plan.seconds);
  if (plan.connections < 1 || plan.connections > 10000)
    return invalid("connections is {}; expected 1 to 10000", plan.connections);
  if (!(plan.deadline >= 0 && plan.deadline <= 3600))
    return invalid("deadline is {} s; expected 0 to 3600", plan.deadline);
  if (!(plan.give_up > 0 && plan.give_up <= 3600))
    return invalid("give_up is {} s; expected more than 0, at most 3600", plan.give_up);
  if (!(plan.malformed >= 0 && plan.malformed <= 1))
    return invalid("malformed is {}; expected 0 to 1", plan.malformed);
  return {};
}

Result<LoadLog> run_load(const LoadTarget& target, const RequestWriter& writer, const LoadPlan& plan,
                         const LoadWatcher& watcher, const std::atomic<bool>* stop) {
  LIMBER_TRY(check(plan));
  LoadRun run(writer, plan, watcher, stop);
  LIMBER_TRY(run.prepare(target));
  return run.run();
}

}  // namespace limber
