#include "serve/loadgen/client.h"

#include <gtest/gtest.h>

#include <set>

#include "serve/loadgen/summary.h"
#include "tests/serve/fake_server.h"

namespace limber {
namespace {

using test::FakeModel;
using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;

LoadTarget target_of(const FakeServer& server) {
  LoadTarget target = *parse_url(server.url());
  target.model = "m";
  return target;
}

// Rows whose largest input is number i, which is the right class of all but the last.
std::vector<LoadRow> labelled_rows() {
  std::vector<LoadRow> rows;
  for (int i = 0; i < 4; ++i) {
    std::vector<float> x(4, 0.0F);
    x[static_cast<size_t>(i)] = 1;
    rows.push_back({{Tensor::from(std::span<const float>(x), {1, 4})}, i < 3 ? i : 0});
  }
  return rows;
}

LoadLog load(const FakeServer& server, const LoadPlan& plan, Encoding encoding = Encoding::kBinary) {
  const LoadTarget target = target_of(server);
  const auto model = fetch_metadata(target, 5);
  EXPECT_TRUE(model.ok()) << model.status().message();
  const RequestWriter writer(target, *model, labelled_rows(), encoding);
  const auto log = run_load(target, writer, plan);
  EXPECT_TRUE(log.ok()) << log.status().message();
  return *log;
}

LoadPlan plan_of(int requests, double rate = 400) {
  LoadPlan plan;
  plan.due = due_times({{rate, requests / rate}}, Arrivals::kConstant, 0);
  return plan;
}

TEST(LoadClient, SendsWhatIsDueAndReadsTheAnswers) {
  for (const Encoding encoding : {Encoding::kBinary, Encoding::kJson}) {
    FakeModel model;
    model.variant = "0.1";
    const FakeServer server(model);
    const LoadPlan plan = plan_of(40);
    const LoadLog log = load(server, plan, encoding);
    ASSERT_EQ(log.records.size(), 40U);
    for (size_t i = 0; i < log.records.size(); ++i) {
      const LoadRecord& record = log.records[i];
      EXPECT_EQ(record.status, 200);
      EXPECT_EQ(record.due, plan.due[i]);
      EXPECT_GE(record.sent, record.due);
      EXPECT_GE(record.done, record.sent);
      EXPECT_EQ(record.predicted, static_cast<int>(i % 4));
      EXPECT_EQ(record.variant, 0);
    }
    EXPECT_EQ(log.variants, std::vector<std::string>{"0.1"});
    const LoadSummary summary = summarize(log, 0);
    EXPECT_EQ(summary.judged, 40);
    EXPECT_EQ(summary.right, 30) << "every fourth label is wrong";
    EXPECT_TRUE(log.problems.empty());
  }
}

TEST(LoadClient, KeepsConnectionsAlive) {
  const FakeServer server{FakeModel()};
  LoadPlan plan = plan_of(60, 200);
  plan.connections = 8;
  const LoadLog log = load(server, plan);
  EXPECT_LE(log.connections, 8) << "one for each would be 60";
  EXPECT_EQ(summarize(log, 0).good, 60);
}

TEST(LoadClient, AConnectionFoundClosedIsReplaced) {
  FakeModel model;
  const FakeServer server([model](const FakeRequest& request) {
    FakeReply reply = model(request);
    reply.close = true;
    return reply;
  });
  LoadPlan plan = plan_of(20, 50);
  plan.connections = 4;
  const LoadLog log = load(server, plan);
  const LoadSummary summary = summarize(log, 0);
  EXPECT_EQ(summary.good + summary.lost, 20);
  EXPECT_GT(summary.good, 4) << "each of the four is good for one answer";
  EXPECT_GE(log.connections, summary.good);
}

// The trap of coordinated omission: all requests wait behind a stall on the only connection, and each must
// say so, not just the one that was in flight.
TEST(LoadClient, WaitingForAConnectionCounts) {
  FakeModel model;
  std::atomic<int> seen{0};
  const FakeServer server([&](const FakeRequest& request) {
    FakeReply reply = model(request);
    if (request.method == "POST" && seen++ == 0) reply.delay = 0.3;
    return reply;
  });
  LoadPlan plan = plan_of(20, 200);  // all due within 0.1 s
  plan.connections = 1;
  const LoadLog log = load(server, plan);
  const LoadSummary summary = summarize(log, 0.15);
  EXPECT_EQ(summary.good, 20);
  for (const LoadRecord& record : log.records) {
    EXPECT_GE(record.done, 0.3);
    EXPECT_GE(record.latency(), 0.3 - record.due);
  }
  EXPECT_EQ(summary.late, 20);
  EXPECT_EQ(summary.missed, 20);
}

TEST(LoadClient, CountsRefusedLostAndUnreadable) {
  FakeModel model;
  std::atomic<int> seen{0};
  const FakeServer server([&](const FakeRequest& request) -> FakeReply {
    if (request.method != "POST") return model(request);
    switch (seen++ % 5) {
      case 0:
        return {.status = 429, .body = R"({"error":"the queue is full"})"};
      case 1:
        return {.silent = true};
      case 2:
        return {.status = 200, .body = "not JSON"};
      case 3:
        return model.reply("another", {1, 0, 0, 0}, true);
      default:
        return model(request);
    }
  });
  LoadPlan plan = plan_of(50);
  plan.connections = 1;
  const LoadLog log = load(server, plan);
  const LoadSummary summary = summarize(log, 0);
  EXPECT_EQ(summary.refused, 10);
  EXPECT_EQ(summary.statuses.at(429), 10);
  EXPECT_EQ(summary.good, 10);
  EXPECT_EQ(summary.lost, 30) << "no answer, one that cannot be read, one to somebody else";
  EXPECT_EQ(log.problems.at("status 429").count, 10);
  EXPECT_NE(log.problems.at("status 429").example.find("queue is full"), std::string::npos);
  EXPECT_EQ(log.problems.at("the answer to another request").count, 10);
  EXPECT_EQ(log.problems.at("an answer that cannot be read").count, 10);
}

TEST(LoadClient, GivesUpOnAServerThatDoesNotAnswer) {
  FakeModel model;
  const FakeServer server([&](const FakeRequest& request) {
    FakeReply reply = model(request);
    if (request.method == "POST") reply.delay = 0.8;
    return reply;
  });
  LoadPlan plan = plan_of(6, 100);
  plan.connections = 2;
  plan.give_up = 0.2;
  const LoadLog log = load(server, plan);
  const LoadSummary summary = summarize(log, 0);
  EXPECT_EQ(summary.good, 0);
  EXPECT_EQ(summary.lost + summary.unsent, 6);
  EXPECT_GE(summary.lost, 2);
  EXPECT_EQ(log.problems.at("timed out").count, summary.lost);
}

TEST(LoadClient, TheDeadlineGoesWithTheRequest) {
  FakeModel model;
  std::mutex mutex;
  std::vector<int64_t> timeouts;
  const FakeServer server([&](const FakeRequest& request) {
    if (request.method == "POST") {
      const size_t bytes = std::stoul(request.fields.at("inference-header-content-length"));
      const auto root = nlohmann::json::parse(request.body.substr(0, bytes));
      const std::lock_guard lock(mutex);
      timeouts.push_back(root.contains("parameters") ? root["parameters"]["timeout"].get<int64_t>() : 0);
    }
    return model(request);
  });
  LoadPlan plan = plan_of(5);
  plan.deadline = 0.5;
  load(server, plan);
  ASSERT_EQ(timeouts.size(), 5U);
  for (const int64_t timeout : timeouts) {
    EXPECT_GT(timeout, 0);
    EXPECT_LE(timeout, 500000) << "microseconds, less what has passed since it was due";
  }
  timeouts.clear();
  plan.send_deadline = false;
  load(server, plan);
  EXPECT_EQ(timeouts, std::vector<int64_t>(5, 0));
}

TEST(LoadClient, ClosedLoopKeepsSoManyUnderWay) {
  FakeModel model;
  std::atomic<int> now{0}, most{0};
  const FakeServer server([&](const FakeRequest& request) {
    const int here = ++now;
    int seen = most;
    while (here > seen && !most.compare_exchange_weak(seen, here)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --now;
    return model(request);
  });
  LoadPlan plan;
  plan.closed = 3;
  plan.seconds = 0.3;
  const LoadLog log = load(server, plan);
  EXPECT_EQ(most, 3);
  EXPECT_EQ(log.connections, 3);
  const LoadSummary summary = summarize(log, 0);
  EXPECT_GE(summary.good, 6);
  EXPECT_EQ(summary.good, summary.requests);
}

// Every kind is refused by a strict server, and a lax one is found out.
TEST(LoadClient, MalformedRequestsAreRefusedOrReported) {
  FakeModel model;
  for (const Encoding encoding : {Encoding::kBinary, Encoding::kJson}) {
    const FakeServer strict(model);
    LoadPlan plan = plan_of(300, 1000);
    plan.malformed = 0.5;
    const LoadLog log = load(strict, plan, encoding);
    const LoadSummary summary = summarize(log, 0);
    EXPECT_GT(summary.malformed, 80);
    EXPECT_EQ(summary.malformed + summary.requests, 300);
    for (const auto& [kind, count] : log.malformed) ADD_FAILURE() << kind << " " << count;
    EXPECT_EQ(summary.malformed_refused, summary.malformed);
    EXPECT_EQ(summary.good, summary.requests);
  }
  const FakeServer lax([&](const FakeRequest& request) {
    const bool infer = request.path.find("infer") != std::string::npos;
    return infer ? model.reply("", {1, 0, 0, 0}, true) : model(request);
  });
  LoadPlan plan = plan_of(50);
  plan.malformed = 1;
  const LoadLog log = load(lax, plan);
  const LoadSummary summary = summarize(log, 0);
  EXPECT_EQ(summary.malformed, 50);
  EXPECT_EQ(summary.requests, 0);
  EXPECT_LT(summary.malformed_refused, 20);
  EXPECT_FALSE(log.malformed.empty());
}

TEST(LoadClient, EveryKindOfMalformedRequestIsDrawn) {
  const LoadTarget target{.model = "m"};
  const auto model = parse_metadata(FakeModel().metadata().body);
  ASSERT_TRUE(model.ok());
  const RequestWriter writer(target, *model, labelled_rows(), Encoding::kBinary);
  std::set<std::string_view> kinds;
  Random random(1);
  std::string head;
  for (int i = 0; i < 1000; ++i) kinds.insert(writer.write_malformed(random, head));
  EXPECT_EQ(kinds.size(), RequestWriter::malformed_kinds().size());
}

TEST(LoadClient, StopsWhenAsked) {
  FakeModel model;
  std::atomic<bool> stop{false};
  const FakeServer server([&](const FakeRequest& request) {
    if (request.method == "POST") stop = true;
    return model(request);
  });
  const LoadTarget target = target_of(server);
  const RequestWriter writer(target, *fetch_metadata(target, 5), labelled_rows(), Encoding::kBinary);
  const auto log = run_load(target, writer, plan_of(100000, 100), {}, &stop);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_TRUE(log->stopped);
  EXPECT_GE(log->records.size(), 1U);
  EXPECT_LT(log->records.size(), 10000U);
  for (const LoadRecord& record : log->records) EXPECT_NE(record.sent, LoadRecord::kNever);
}

TEST(LoadClient, RefusesPlansThatCannotWork) {
  const auto refuses = [](auto change, const std::string& part) {
    LoadPlan plan = plan_of(1);
    change(plan);
    const Status status = check(plan);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << part;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  EXPECT_TRUE(check(plan_of(1)).ok());
  refuses([](LoadPlan& plan) { plan.due.clear(); }, "due");
  refuses([](LoadPlan& plan) { plan.closed = -1; }, "closed");
  refuses([](LoadPlan& plan) { plan.closed = 1; }, "seconds");
  refuses([](LoadPlan& plan) { plan.connections = 0; }, "connections");
  refuses([](LoadPlan& plan) { plan.deadline = -1; }, "deadline");
  refuses([](LoadPlan& plan) { plan.give_up = 0; }, "give_up");
  refuses([](LoadPlan& plan) { plan.malformed = 1.5; }, "malformed");
}

}  // namespace
}  // namespace limber
