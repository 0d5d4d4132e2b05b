#include "serve/ready_variant.h"

#include <cstring>

#include "passes/answers.h"
#include "runtime/compile.h"
#include "runtime/timing.h"
#include "variant/exit_runner.h"

namespace limber {
namespace {

class SessionLane final : public Lane {
 public:
  explicit SessionLane(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  Tensor input(size_t index) const override { return session_->input(index); }
  Status run() override { return session_->run(); }
  Tensor output(size_t index) const override { return session_->output(index); }

 private:
  const std::unique_ptr<Session> session_;
};

// Images leave at the first exit that is sure enough, so one at a time.
class ExitLane final : public Lane {
 public:
  ExitLane(std::unique_ptr<ExitRunner> runner, Tensor image, double confidence)
      : runner_(std::move(runner)), image_(std::move(image)), confidence_(confidence) {}
  Tensor input(size_t /*index*/) const override { return image_; }
  Status run() override {
    LIMBER_ASSIGN(ExitRunner::Answer answer, runner_->run(image_, confidence_));
    answer_ = std::move(answer.output);
    return {};
  }
  Tensor output(size_t /*index*/) const override { return answer_; }

 private:
  const std::unique_ptr<ExitRunner> runner_;
  const Tensor image_;
  const double confidence_;
  Tensor answer_;
};

Result<std::vector<std::unique_ptr<Lane>>> exit_lanes(const ServedSource& source,
                                                      const ServedVariant& variant,
                                                      const std::vector<std::shared_ptr<Backend>>& backends,
                                                      const ReadyOptions& options) {
  std::vector<std::unique_ptr<Lane>> lanes;
  LIMBER_ASSIGN(const ServedSignature signature, signature_of(source.graph));
  for (int worker = 0; worker < options.workers; ++worker) {
    LIMBER_ASSIGN(auto runner, ExitRunner::create(*source.elastic, variant.variant, backends,
                                                  {.batch = 1, .threads = options.threads}));
    LIMBER_ASSIGN(Tensor image, Tensor::zeros(signature.inputs[0].type));
    lanes.push_back(
        std::make_unique<ExitLane>(std::move(runner), std::move(image), variant.variant.confidence));
  }
  return lanes;
}

void clear(Lane& lane, size_t inputs) {
  for (size_t i = 0; i < inputs; ++i) {
    Tensor input = lane.input(i);
    std::memset(input.raw(), 0, input.bytes());
  }
}

}  // namespace

Status ReadyVariant::time(Kind& kind) {
  // Seconds and rounds: enough for a quartile, and little: a server that starts makes several of these ready.
  LIMBER_ASSIGN(kind.seconds,
                time_quick([&] { return kind.lanes[0]->run(); }, {.seconds = 0.04, .max_rounds = 12}));
  for (size_t worker = 1; worker < kind.lanes.size(); ++worker) LIMBER_TRY(kind.lanes[worker]->run());
  return {};
}

Result<std::shared_ptr<const ReadyVariant>> ReadyVariant::make(
    const ServedSource& source, const ServedVariant& variant, int number, const WeightSnapshot& weights,
    const std::vector<std::shared_ptr<Backend>>& backends, const ReadyOptions& options) {
  std::shared_ptr<ReadyVariant> made(new ReadyVariant(number, variant.name, ""));
  if (source.elastic != nullptr && variant.variant.confidence > 0) {
    Kind kind;
    LIMBER_ASSIGN(kind.lanes, exit_lanes(source, variant, backends, options));
    LIMBER_TRY(made->time(kind));
    // How long it takes depends on the image: what was found on many is better than the time of none.
    if (variant.timed) kind.seconds = variant.point.latency_s;
    made->kinds_.push_back(std::move(kind));
    return std::shared_ptr<const ReadyVariant>(std::move(made));
  }
  Graph graph = source.graph;
  if (source.elastic != nullptr) {
    LIMBER_ASSIGN(graph, materialize(*source.elastic, variant.variant));
    graph = split_outputs(graph);
  }
  LIMBER_TRY(made->add_kinds(graph, weights, backends, options));
  return std::shared_ptr<const ReadyVariant>(std::move(made));
}

Result<std::shared_ptr<const ReadyVariant>> ReadyVariant::make(
    const ServedNet& net, const std::string& variant, int number, const ReadyVariant* like,
    const std::vector<std::shared_ptr<Backend>>& backends, const ReadyOptions& options) {
  std::shared_ptr<ReadyVariant> made(new ReadyVariant(number, variant, net.name));
  const bool alike = like != nullptr && like->graph_ == hash(net.graph);
  LIMBER_TRY(alike ? made->add_kinds_of(*like, net.weights, options)
                   : made->add_kinds(net.graph, net.weights, backends, options));
  return std::shared_ptr<const ReadyVariant>(std::move(made));
}

Status ReadyVariant::add_kinds(const Graph& graph, const WeightSnapshot& weights,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const ReadyOptions& options) {
  graph_ = hash(graph);
  // By fours, so that they are few: each size is a plan, and memory for all workers.
  for (int64_t batch = 1; batch <= options.max_batch; batch *= 4) {
    Kind kind{.batch = batch};
    LIMBER_ASSIGN(kind.plan,
                  compile(graph, weights, backends, batch_settings(graph, batch, options.threads)));
    LIMBER_TRY(add_lanes(kind, weights, options));
    LIMBER_TRY(time(kind));
    // A batch makes those wait that came first: it must be worth a tenth.
    const bool pays = kinds_.empty() || kind.seconds < 0.9 * seconds() * static_cast<double>(batch);
    if (!pays) break;
    kinds_.push_back(std::move(kind));
  }
  return {};
}

Status ReadyVariant::add_kinds_of(const ReadyVariant& like, const WeightSnapshot& weights,
                                  const ReadyOptions& options) {
  graph_ = like.graph_;
  for (const Kind& one : like.kinds_) {
    Kind kind{.batch = one.batch, .seconds = one.seconds, .plan = one.plan};
    LIMBER_TRY(add_lanes(kind, weights, options));
    for (const auto& lane : kind.lanes) LIMBER_TRY(lane->run());
    kinds_.push_back(std::move(kind));
  }
  return {};
}

Status ReadyVariant::add_lanes(Kind& kind, const WeightSnapshot& weights, const ReadyOptions& options) {
  for (int worker = 0; worker < options.workers; ++worker) {
    LIMBER_ASSIGN(auto session, Session::create(kind.plan, weights));
    kind.lanes.push_back(std::make_unique<SessionLane>(std::move(session)));
    clear(*kind.lanes.back(), kind.plan->graph.inputs().size());
    memory_bytes_ += kind.plan->arena_bytes;
  }
  return {};
}

const ReadyVariant::Kind& ReadyVariant::kind(int64_t batch) const {
  for (const Kind& one : kinds_)
    if (one.batch == batch) return one;
  return kinds_.front();
}

// The largest that is filled; rows that are left go by smaller ones.
int64_t ReadyVariant::batch_for(int64_t rows) const {
  int64_t best = 1;
  for (const Kind& one : kinds_)
    if (one.batch <= rows) best = one.batch;
  return best;
}

double ReadyVariant::seconds(int64_t batch) const { return kind(batch).seconds; }

double ReadyVariant::seconds_of(int64_t rows) const {
  double sum = 0;
  for (auto one = kinds_.rbegin(); one != kinds_.rend(); rows %= one->batch, ++one)
    sum += static_cast<double>(rows / one->batch) * one->seconds;
  return sum;
}

Lane& ReadyVariant::lane(int worker, int64_t batch) const {
  return *kind(batch).lanes[static_cast<size_t>(worker)];
}

}  // namespace limber
