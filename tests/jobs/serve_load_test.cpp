// A whole server under load: HTTP, queue, workers, switches, loads and whoever watches, all at once. Run by
// ThreadSanitizer as well.
#include <atomic>

#include "tests/jobs/served.h"

namespace limber {
namespace {

using test::binary_output;
using test::binary_request;
using test::json_body;
using test::serve_options;
using test::served_input;
using test::ServedJob;

// The variant that an answer says it is from.
std::string variant_of(const Reply& reply) {
  const std::string head = reply.header("Inference-Header-Content-Length");
  if (head.empty()) return "";
  return nlohmann::json::parse(reply.body.substr(0, std::stoul(head)))["parameters"]["variant"];
}

class LoadTest : public testing::Test {
 protected:
  LoadTest() {
    job_ = serve_options(test::write_served(folder_ / "models/elastic", &variants_));
    test::write_tiny(folder_, "models/other.onnx");
    job_.model = folder_ / "models";
    job_.http.debug = true;
    job_.http.io_threads = 2;
    job_.record = folder_ / "served.jsonl";
    job_.serving.ready.max_batch = 1;  // the same bits whoever else asks
  }

  static bool switch_to(Client& client, const std::string& variant) {
    const nlohmann::json wish = {{"model", "elastic"}, {"variant", variant}};
    return client.post("/v2/limber/variant", wish.dump()).status == 200;
  }

  Folder folder_;
  std::vector<std::string> variants_;
  ServeJobOptions job_;
};

TEST_F(LoadTest, EveryAnswerIsThatOfTheVariantItNames) {
  ServedJob server(job_);
  ASSERT_TRUE(server.ready());
  Client first(server.port());
  const auto request = binary_request(served_input(first, "elastic"));
  const auto infer = [&](Client& client) {
    return client.post("/v2/models/elastic/infer", request.body, request.header);
  };
  // What each says when nothing else happens. The governor may have its own will in between.
  std::map<std::string, std::string> answers;
  for (const std::string& variant : variants_) {
    for (int i = 0; i < 50 && !answers.contains(variant); ++i) {
      ASSERT_TRUE(switch_to(first, variant));
      const Reply reply = infer(first);
      ASSERT_EQ(reply.status, 200) << reply.body;
      answers.emplace(variant_of(reply), binary_output(reply));
    }
  }
  ASSERT_EQ(answers.size(), variants_.size());

  constexpr int kClients = 4, kRequests = 100;
  std::atomic<int> wrong = 0, running = kClients;
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c)
    threads.emplace_back([&] {
      Client client(server.port());
      for (int i = 0; i < kRequests; ++i) {
        const Reply reply = infer(client);
        const auto answer = answers.find(variant_of(reply));
        if (answer == answers.end() || answer->second != binary_output(reply)) ++wrong;
      }
      --running;
    });
  const auto meanwhile = [&](auto act) {
    threads.emplace_back([&, act] {
      Client client(server.port());
      for (size_t i = 0; running > 0; ++i) {
        act(client, i);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
  };
  meanwhile([&](Client& client, size_t i) { wrong += switch_to(client, variants_[i % 4]) ? 0 : 1; });
  meanwhile([](Client& client, size_t i) {
    EXPECT_EQ(client.get(i % 2 == 0 ? "/metrics" : "/v2/limber/status").status, 200);
  });
  meanwhile([](Client& client, size_t) {
    EXPECT_EQ(client.post("/v2/repository/models/other/unload", "").status, 200);
    EXPECT_EQ(client.post("/v2/repository/models/other/load", "").status, 200);
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const auto outcome = server.stop();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  const auto& totals = outcome->models.at(0).totals;
  EXPECT_GE(totals.answered, static_cast<uint64_t>(kClients * kRequests));
  EXPECT_EQ(totals.answered, totals.requests);
  EXPECT_GE(totals.switches, 3U);
}

TEST_F(LoadTest, AStopInTheMiddleOfItLosesNoAnswer) {
  ServedJob server(job_);
  ASSERT_TRUE(server.ready());
  Client first(server.port());
  const auto request = binary_request(served_input(first, "elastic"));
  first.close();
  std::atomic<int> answered = 0, refused = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&] {
      Client client(server.port());
      while (true) {
        const Reply reply = client.post("/v2/models/elastic/infer", request.body, request.header);
        if (reply.status == 0) return;  // the connection is closed: the last answer said so, or it was idle
        ++(reply.status == 200 ? answered : refused);
        if (reply.header("Connection") == "close") return;
      }
    });
  while (answered < 100) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto outcome = server.stop();
  for (std::thread& client : clients) client.join();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(outcome->models.at(0).totals.answered, static_cast<uint64_t>(answered));
}

}  // namespace
}  // namespace limber
