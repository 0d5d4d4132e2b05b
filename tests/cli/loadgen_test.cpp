// limber loadgen: what it prints, and how it fails.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/serve/fake_server.h"

namespace limber {
namespace {

using nlohmann::json;
using test::FakeModel;
using test::FakeServer;

TEST(LoadgenCommand, PrintsATableAndJson) {
  FakeModel model;
  model.variant = "small";
  const FakeServer server{model};
  const std::string call = "loadgen " + server.url() + " --rate 200 --seconds 0.2 --arrivals constant ";
  const Outcome table = limber_program(call + "--deadline 5s --timeline --malformed 0.3");
  ASSERT_EQ(table.code, 0) << table.err;
  for (const char* part : {"m on 127.0.0.1", "answered", "lost", "not within 5", "malformed", "p99.9",
                           "small", "sent after due", "second"})
    EXPECT_TRUE(contains(table.out, part)) << part << "\n" << table.out;
  const json out = json_of(limber_program(call + "--json"));
  EXPECT_EQ(out["requests"], 40);
  EXPECT_EQ(out["good"], 40);
  EXPECT_EQ(out["lost"], 0);
  EXPECT_EQ(out["missed_share"], 0);
  EXPECT_EQ(out["statuses"]["200"], 40);
  EXPECT_EQ(out["variants"]["small"], 40);
  EXPECT_EQ(out["latency_s"]["count"], 40);
  EXPECT_GE(out["latency_s"]["max"], out["latency_s"]["p50"]);
  EXPECT_EQ(out["timeline"].size(), 1U);
  EXPECT_TRUE(out["problems"].empty());
}

TEST(LoadgenCommand, PhasesAndClosedLoop) {
  const FakeServer server{FakeModel()};
  const json phases = json_of(
      limber_program("loadgen " + server.url() + " --phases 100:0.1,0:1,100:0.1 --arrivals constant --json"));
  EXPECT_EQ(phases["requests"], 20);
  EXPECT_EQ(phases["timeline"].size(), 2U);
  const json closed = json_of(limber_program("loadgen " + server.url() + " --closed 2 --seconds 0.1 --json"));
  EXPECT_EQ(closed["connections"], 2);
  EXPECT_GT(closed["throughput"], 0);
}

TEST(LoadgenCommand, WrongUseIsExitCode2) {
  for (const char* arguments :
       {"loadgen", "loadgen a:b", "loadgen a --rate -1", "loadgen a --deadline 15", "loadgen a --phases 3",
        "loadgen a --malformed 2", "loadgen a --closed 2 --phases 1:1"})
    EXPECT_EQ(limber_program(arguments).code, 2) << arguments;
}

TEST(LoadgenCommand, NobodyThereIsExitCode1) {
  const Outcome outcome = limber_program("loadgen 127.0.0.1:1 --seconds 1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "is the server running?")) << outcome.err;
}

}  // namespace
}  // namespace limber
