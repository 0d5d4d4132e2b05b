#include "serve/http/connection.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/clock.h"

namespace limber {
namespace {

constexpr size_t kFirstInput = 4 << 10;  // bytes that an idle connection keeps: 4,096 of them have 16 MiB
constexpr size_t kMaxInput = 64 << 10;   // bytes; chunks and pipelined requests are read in pieces of this
constexpr double kLingerSeconds = 2;     // for a client to read its answer and close, see linger()
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::string_view kContinueHead = "HTTP/1.1 100 Continue\r\n\r\n";

bool is_health(std::string_view target) {
  return target == "/v2/health/live" || target == "/v2/health/ready";
}

}  // namespace

Connection::Connection(ConnectionShared& shared, std::shared_ptr<ConnectionHost> host,
                       std::unique_ptr<Wire> wire, bool metrics_only)
    : shared_(shared),
      host_(std::move(host)),
      wire_(std::move(wire)),
      metrics_only_(metrics_only),
      deadline_(now_seconds() + shared.options.head_s),
      parser_(shared.options.max_head_bytes) {}

Connection::~Connection() { release(); }

void Connection::start() { wire_->open(shared_from_this()); }

void Connection::on_open(bool ok) {
  if (!ok || closed() || shared_.stopping) return close();
  state_ = State::kHead;
  read_more();
}

void Connection::close() {
  if (closed()) return;
  state_ = State::kClosed;
  wire_->close();
  release();
  host_->forget(*this);
}

// Half a head is no request yet: a client that never sends the other half must not keep the server from
// ending.
void Connection::drain() {
  if (state_ == State::kOpening || state_ == State::kHead) close();
}

void Connection::tick(double now) {
  if (now < deadline_ || closed()) return;
  const bool receiving = (state_ == State::kHead && begun_) || state_ == State::kBody;
  if (!receiving) return close();
  refuse_and_close({408, "the request took too long to come"});
}

void Connection::set_deadline(double seconds) { deadline_ = now_seconds() + seconds; }

double Connection::transfer_seconds(size_t bytes) const {
  return shared_.options.body_s + static_cast<double>(bytes) / shared_.options.slow_bytes_per_s;
}

// --- requests ------------------------------------------------------------------------------------------

void Connection::next_request() {
  if (shared_.stopping && buffered().empty()) return linger();
  parser_.reset();
  call_ = {};
  chunks_.reset();
  body_.reset();
  state_ = State::kHead;
  begun_ = !buffered().empty();
  set_deadline(begun_ ? shared_.options.head_s : shared_.options.idle_s);
  if (begun_) return parse_head();
  // Thousands may rest like this.
  if (input_.size() > kFirstInput) std::vector<char>().swap(input_);
  read_more();
}

void Connection::read_more() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > 0 && end_ == input_.size()) {
    std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == input_.size()) {
    const size_t limit = std::max(kMaxInput, shared_.options.max_head_bytes + kFirstInput);
    input_.resize(std::min(limit, std::max(kFirstInput, 2 * input_.size())));
  }
  // The parsers give up before they leave so much unused.
  LIMBER_ASSERT(end_ < input_.size());
  reading_ = true;
  wire_->read({input_.data() + end_, input_.size() - end_}, shared_from_this());
}

void Connection::on_read(size_t bytes, bool ok) {
  reading_ = false;
  if (closed()) return;
  if (!ok) {
    // A client that is gone in the middle of a request gets no answer; one whose answer is being written may
    // have closed only its own direction.
    if (state_ != State::kWriting) close();
    return;
  }
  if (state_ == State::kHead) {
    if (!begun_) set_deadline(shared_.options.head_s);
    begun_ = true;
    end_ += bytes;
    parse_head();
  } else if (state_ == State::kBody && chunks_) {
    end_ += bytes;
    take_chunks();
  } else if (state_ == State::kBody) {
    body_have_ += bytes;
    take_body();
  } else if (state_ == State::kLinger) {
    reading_ = true;
    wire_->read(input_, shared_from_this());
  }
}

void Connection::parse_head() {
  begin_ += parser_.put(buffered());
  if (parser_.refusal().status != 0) return refuse_and_close(parser_.refusal());
  if (!parser_.done()) return read_more();
  call_.head = parser_.take_head();
  call_.metrics_only = metrics_only_;
  close_after_ = !call_.head.keep_alive;
  if (const HttpRefusal refusal = refuse(call_.head); refusal.status != 0) return refuse_and_close(refusal);
  begin_body();
}

HttpRefusal Connection::refuse(const HttpHead& head) const {
  const HttpOptions& options = shared_.options;
  const bool open = options.open_health && is_health(head.target);
  if (!open && !options.tls_client_ca.empty() && !wire_->has_client_certificate())
    return {401, "a client certificate is needed"};
  if (!open && !shared_.gate.admits(head.authorization))
    return {401, "a token is needed, as in 'Authorization: Bearer TOKEN'"};
  if (head.content_length.value_or(0) > options.max_body_bytes) {
    return {413, fmt::format("the body has {} bytes; at most {} are taken", *head.content_length,
                             options.max_body_bytes)};
  }
  if (head.method == "POST" && !head.content_length && !head.chunked)
    return {411, "Content-Length is missing"};
  return {};
}

HttpRefusal Connection::reserve(uint64_t bytes) {
  if (bytes <= reserved_) return {};
  const size_t more = bytes - reserved_;
  if (shared_.bytes_in_flight.fetch_add(more) + more > shared_.options.max_bytes_in_flight) {
    shared_.bytes_in_flight.fetch_sub(more);
    return {503, "too many bytes of other requests are being worked on"};
  }
  reserved_ += more;
  return {};
}

void Connection::release() {
  shared_.bytes_in_flight.fetch_sub(reserved_);
  reserved_ = 0;
}

void Connection::begin_body() {
  body_size_ = call_.head.content_length.value_or(0);
  body_have_ = 0;
  if (call_.head.chunked) {
    chunks_.emplace(shared_.options.max_body_bytes);
  } else if (body_size_ > 0) {
    if (const HttpRefusal refusal = reserve(body_size_); refusal.status != 0)
      return refuse_and_close(refusal);
    // The first tensor behind the JSON then lies aligned and need not be copied.
    const size_t json = std::min(call_.head.json_bytes.value_or(0), body_size_);
    body_offset_ = (Buffer::kAlignment - json % Buffer::kAlignment) % Buffer::kAlignment;
    auto buffer = Buffer::allocate(body_offset_ + body_size_);
    if (!buffer.ok()) return refuse_and_close({503, buffer.status().message()});
    body_ = *std::move(buffer);
  } else {
    return dispatch();
  }
  body_begin_ = now_seconds();
  set_deadline(transfer_seconds(body_size_));
  if (call_.head.expects_continue && buffered().empty()) {
    state_ = State::kContinue;
    return wire_->write({&kContinueHead, 1}, shared_from_this());
  }
  state_ = State::kBody;
  chunks_ ? take_chunks() : take_body();
}

void Connection::take_body() {
  char* to = reinterpret_cast<char*>(body_->data()) + body_offset_;
  const size_t count = std::min(body_size_ - body_have_, end_ - begin_);
  std::memcpy(to + body_have_, input_.data() + begin_, count);
  begin_ += count;
  body_have_ += count;
  if (body_have_ == body_size_) {
    call_.body = {to, body_size_};
    call_.owner = body_;
    return dispatch();
  }
  reading_ = true;
  wire_->read({to + body_have_, body_size_ - body_have_}, shared_from_this());
}

void Connection::take_chunks() {
  std::string_view left = buffered();
  const auto outcome = chunks_->put(left);
  begin_ = end_ - left.size();
  if (outcome == ChunkDecoder::Outcome::kBad) return refuse_and_close({400, "a malformed chunk in the body"});
  if (outcome == ChunkDecoder::Outcome::kTooLarge) {
    return refuse_and_close({413, fmt::format("the body has more than the {} bytes that are taken",
                                              shared_.options.max_body_bytes)});
  }
  if (const HttpRefusal refusal = reserve(chunks_->body().size()); refusal.status != 0)
    return refuse_and_close(refusal);
  if (outcome == ChunkDecoder::Outcome::kMore) {
    deadline_ = body_begin_ + transfer_seconds(chunks_->body().size());
    return read_more();
  }
  const auto body = std::make_shared<std::string>(std::move(chunks_->body()));
  call_.body = *body;
  call_.owner = body;
  dispatch();
}

void Connection::dispatch() {
  state_ = State::kWaiting;
  deadline_ = kNever;
  call_.received = now_seconds();
  const uint64_t exchange = ++exchange_;
  // Holds the thread and not the connection: when the client is gone, nobody is there to be told.
  AnswerLater later = [weak = weak_from_this(), host = host_, exchange](MakeAnswer make) {
    host->post([weak, exchange, make = std::move(make)] {
      const auto self = weak.lock();
      if (self && self->state_ == State::kWaiting && self->exchange_ == exchange) self->write_answer(make());
    });
  };
  std::optional<HttpAnswer> answer = shared_.router.handle(call_, std::move(later));
  body_size_ = call_.body.size();
  call_.body = {};
  call_.owner.reset();
  body_.reset();
  if (answer) write_answer(*std::move(answer));
}

// --- answers -------------------------------------------------------------------------------------------

void Connection::refuse_and_close(const HttpRefusal& refusal) {
  HttpAnswer answer = error_answer(refusal.status, refusal.message);
  answer.close = true;
  if (refusal.status == 401)
    answer.headers =
        "WWW-Authenticate: Bearer\r\nWWW-Authenticate: Basic realm=\"the token is the password\"\r\n";
  if (refusal.status == 503) answer.headers = "Retry-After: 1\r\n";
  call_.received = now_seconds();
  write_answer(std::move(answer));
}

void Connection::write_answer(HttpAnswer answer) {
  state_ = State::kWriting;
  answer_ = std::move(answer);
  close_after_ = close_after_ || answer_.close || shared_.stopping;
  answer_head_ = format_head(answer_, close_after_);
  std::vector<std::string_view> parts{answer_head_};
  if (call_.head.method != "HEAD") {
    if (!answer_.body.empty()) parts.push_back(answer_.body);
    for (const Tensor& tensor : answer_.tail)
      parts.emplace_back(static_cast<const char*>(tensor.raw()), tensor.bytes());
  }
  set_deadline(transfer_seconds(answer_.size()));
  wire_->write(parts, shared_from_this());
}

void Connection::on_written(bool ok) {
  if (closed()) return;
  if (!ok) return close();
  if (state_ == State::kContinue) {
    state_ = State::kBody;
    return chunks_ ? read_more() : take_body();
  }
  if (state_ == State::kLinger) {
    if (reading_) return;
    begin_ = end_ = 0;
    return read_more();
  }
  log_access();
  release();
  answer_ = {};
  close_after_ ? linger() : next_request();
}

void Connection::log_access() {
  if (!shared_.options.access_log) return;
  HttpAccess access;
  access.peer = wire_->peer();
  access.method = call_.head.method;
  access.target = call_.head.target;
  access.status = answer_.status;
  access.request_bytes = body_size_;
  access.response_bytes = call_.head.method == "HEAD" ? 0 : answer_.size();
  access.seconds = now_seconds() - call_.received;
  shared_.options.access_log(access);
}

// A socket that is closed with bytes unread is reset, and a reset may overtake the answer. So what still
// comes is read and thrown away until the client has closed, for a short while.
void Connection::linger() {
  const bool clean = !reading_ && !answer_.close && buffered().empty();
  state_ = State::kLinger;
  set_deadline(kLingerSeconds);
  wire_->finish(clean, shared_from_this());
}

}  // namespace limber
