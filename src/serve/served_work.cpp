// The half of ServedModel that requests go through: from the queue to the answer.
#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/parallel.h"
#include "serve/served_model.h"

namespace limber {
namespace {

// More rows in one request keep everybody else waiting; a client that has more sends several.
constexpr int64_t kMaxRows = 1024;

}  // namespace

InferResponse ServedModel::refusal_of(const InferRequest& request, ServeStatus status) const {
  return {.status = std::move(status), .model = source_.name, .version = source_.version, .id = request.id};
}

void ServedModel::infer(InferRequest request, InferDone done) {
  const double now = now_seconds();
  if (request.received == 0) request.received = now;
  stats_->arrived(now);
  Ticket ticket{std::move(request), std::move(done)};
  ServeStatus status =
      check_request(signature_, ticket.request, preprocessor_.has_value(), kMaxRows, ticket.rows);
  if (status.ok()) {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      status = {Refusal::kUnavailable, "the server is shutting down", 1};
    } else if (queue_.size() >= options_.queue_limit) {
      // When half of what waits is done there is room again.
      const double each = warm_->active->seconds() * slowdown_.slowdown / options_.ready.workers;
      status = {Refusal::kOverloaded,
                fmt::format("{} requests wait already; that is the limit", queue_.size()),
                std::max(0.001, each * static_cast<double>(queue_.size()) / 2)};
    } else {
      queue_.push_back(std::move(ticket));
      waits_.store(queue_.size(), std::memory_order_relaxed);
    }
  }
  if (status.ok()) return waiting_.notify_one();
  stats_->refused(status.refusal);
  ticket.done(refusal_of(ticket.request, std::move(status)));
}

void ServedModel::work(int worker) {
  const ThreadScope threads(options_.ready.threads);
  std::vector<Ticket> late;
  while (true) {
    std::optional<Work> next = take(late);
    for (Ticket& ticket : late) {
      stats_->refused(Refusal::kTooLate);
      ticket.done(
          refusal_of(ticket.request, {Refusal::kTooLate, "its deadline passed before it was its turn"}));
    }
    late.clear();
    if (!next) return;
    if (!next->tickets.empty()) serve(worker, *std::move(next));
  }
}

// Nothing when all is over.
std::optional<ServedModel::Work> ServedModel::take(std::vector<Ticket>& late) {
  std::unique_lock lock(mutex_);
  waiting_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
  const double now = now_seconds();
  drop_late(now, late);
  waits_.store(queue_.size(), std::memory_order_relaxed);
  if (queue_.empty()) return stopping_ && late.empty() ? std::nullopt : std::optional(Work{});
  Work work;
  work.with = variant_for_head(now, work.rescued);
  work.tap = tap_;
  const size_t count = rows_at_once(*work.with, queue_.front(), now);
  for (size_t i = 0; i < count; ++i) {
    work.tickets.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  waits_.store(queue_.size(), std::memory_order_relaxed);
  return work;
}

// Those that even the quickest variant cannot answer in time. Looked at in the order they came: a deadline
// further back is looked at when it is its turn.
void ServedModel::drop_late(double now, std::vector<Ticket>& late) {
  const ReadyVariant& quickest = *warm_->variants.front();
  const auto least = [&](const Ticket& one) {
    return quickest.seconds_of(one.rows) * std::min(1.0, slowdown_.slowdown);
  };
  while (!queue_.empty() && now + least(queue_.front()) > queue_.front().request.deadline) {
    late.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
}

double ServedModel::time_left(const Ticket& ticket, double now) const {
  const double due = std::min(ticket.request.deadline, ticket.request.received + options_.governor.budget_s);
  return due - now - overhead_s_;
}

std::shared_ptr<const ReadyVariant> ServedModel::variant_for_head(double now, bool& rescued) const {
  const Policy policy = options_.governor.policy;
  const auto& variants = warm_->variants;
  const auto& active = warm_->active;
  if (policy == Policy::kFixed || policy == Policy::kReactive) return active;
  LongestTurn turn(options_.ready.workers, slowdown_.stall_s,
                   slowdown_.slowdown * variants.front()->seconds());
  for (const Ticket& ticket : queue_) turn.add({time_left(ticket, now), ticket.rows});
  const int64_t rows = queue_.front().rows;
  const auto times = [rows](const ReadyVariant& one) {
    return VariantTimes{one.seconds(), one.seconds_of(rows)};
  };
  const QueueHead head{{time_left(queue_.front(), now), rows}, turn.seconds(), queue_.size() > 1, slowdown_};
  const auto other = limber::variant_for_head(head, times(*active), variants.size(),
                                              [&](size_t i) { return times(*variants[i]); });
  rescued = other && variants[*other] != active;
  return other ? variants[*other] : active;
}

// Tickets from the head of the queue that are computed together. What waits is shared with the other workers,
// and the first ticket must not get late by it.
size_t ServedModel::rows_at_once(const ReadyVariant& with, const Ticket& first, double now) const {
  if (first.rows > 1 || with.largest_batch() == 1) return 1;
  size_t singles = 0;
  while (singles < queue_.size() && queue_[singles].rows == 1) ++singles;
  const auto workers = static_cast<size_t>(options_.ready.workers);
  int64_t batch = with.batch_for(static_cast<int64_t>((singles + workers - 1) / workers));
  // Unless it is late in any case: then those behind it count.
  const double left = time_left(first, now), slowdown = slowdown_.slowdown;
  if (slowdown * with.seconds(batch) > left && slowdown * with.seconds() <= left) batch = 1;
  return static_cast<size_t>(batch);
}

void ServedModel::serve(int worker, Work work) {
  work.began = now_seconds();
  std::vector<InferResponse> responses;
  for (const Ticket& ticket : work.tickets) responses.push_back(refusal_of(ticket.request, {}));
  if (work.tickets.size() > 1) {
    compute_several(worker, work, responses);
  } else if (const Status status = compute_one(worker, work, responses[0]); !status.ok()) {
    responses[0].status = {status.code() == Code::kInternal ? Refusal::kInternal : Refusal::kBadRequest,
                           status.message()};
  }
  finish(work, responses);
}

Status ServedModel::run_lane(Lane& lane, int64_t batch, Work& work) {
  const double start = now_seconds();
  const Status status = lane.run();
  work.run_s += now_seconds() - start;
  work.estimated_s += work.with->seconds(batch);
  return status.ok() ? status : Status(Code::kInternal, status.message());
}

void ServedModel::show_rows(const Work& work, const Lane& lane, int64_t at, int64_t count) const {
  if (work.tap == nullptr) return;
  const size_t row = work.tap->row_floats();
  const Tensor input = lane.input(0);
  work.tap->offer(
      input.data<float>().subspan(static_cast<size_t>(at) * row, static_cast<size_t>(count) * row),
      work.began);
}

Status ServedModel::compute_one(int worker, Work& work, InferResponse& response) {
  const Ticket& ticket = work.tickets[0];
  LIMBER_ASSIGN(response.outputs, make_outputs(signature_, ticket.request, ticket.rows));
  const Preprocessor* preprocessor = preprocessor_ ? &*preprocessor_ : nullptr;
  for (int64_t first = 0; first < ticket.rows;) {
    const int64_t batch = work.with->batch_for(ticket.rows - first);
    Lane& lane = work.with->lane(worker, batch);
    LIMBER_TRY(fill_rows(signature_, preprocessor, ticket.request, first, batch, lane, 0));
    LIMBER_TRY(run_lane(lane, batch, work));
    take_rows(signature_, lane, 0, first, batch, response.outputs);
    show_rows(work, lane, 0, batch);
    first += batch;
  }
  return {};
}

// A row that cannot be filled is computed with what lies there, and only its own request is refused.
void ServedModel::compute_several(int worker, Work& work, std::vector<InferResponse>& responses) {
  const auto batch = static_cast<int64_t>(work.tickets.size());
  Lane& lane = work.with->lane(worker, batch);
  const Preprocessor* preprocessor = preprocessor_ ? &*preprocessor_ : nullptr;
  for (size_t i = 0; i < work.tickets.size(); ++i) {
    const Status status =
        fill_rows(signature_, preprocessor, work.tickets[i].request, 0, 1, lane, static_cast<int64_t>(i));
    if (!status.ok()) responses[i].status = {Refusal::kBadRequest, status.message()};
  }
  const Status status = run_lane(lane, batch, work);
  for (size_t i = 0; i < work.tickets.size(); ++i) {
    if (!responses[i].status.ok()) continue;
    auto outputs = make_outputs(signature_, work.tickets[i].request, 1);
    if (!status.ok() || !outputs.ok()) {
      responses[i].status = {Refusal::kInternal, status.ok() ? outputs.status().message() : status.message()};
      continue;
    }
    responses[i].outputs = *std::move(outputs);
    take_rows(signature_, lane, static_cast<int64_t>(i), 0, 1, responses[i].outputs);
    show_rows(work, lane, static_cast<int64_t>(i), 1);
  }
}

void ServedModel::finish(Work& work, std::vector<InferResponse>& responses) {
  const double ended = now_seconds();
  if (work.estimated_s > 0) meter_.add(ended, work.estimated_s, work.run_s);
  {
    // A mean over some twenty requests: decoding differs from image to image.
    const std::lock_guard lock(mutex_);
    overhead_s_ += 0.05 * ((ended - work.began - work.run_s) - overhead_s_);
    const double size =
        work.tickets.size() > 1 ? 1 : work.with->seconds_of(work.tickets[0].rows) / work.with->seconds();
    size_ += 0.05 * (size - size_);
  }
  for (size_t i = 0; i < responses.size(); ++i) {
    const InferRequest& request = work.tickets[i].request;
    InferResponse& response = responses[i];
    const double latency = ended - request.received;
    response.variant = work.with->name();
    if (!work.with->net().empty()) response.variant += fmt::format(" ({})", work.with->net());
    response.queue_s = work.began - request.received;
    response.compute_s = work.run_s;
    if (response.status.ok()) {
      const bool late = latency > options_.governor.budget_s || ended > request.deadline;
      stats_->done({latency, response.queue_s, response.compute_s, work.tickets[i].rows, late, work.rescued,
                    work.run_s / static_cast<double>(responses.size())});
    } else {
      response.outputs.clear();
      stats_->refused(response.status.refusal);
    }
  }
  // The variant goes before answers do: who is told that a request is over finds nothing of it left.
  work.with.reset();
  for (size_t i = 0; i < responses.size(); ++i) work.tickets[i].done(std::move(responses[i]));
}

}  // namespace limber
