// How connections behave: many requests, odd clients, ends.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <future>
#include <thread>

#include "serve/http/chunked.h"
#include "serve/http/http_server.h"
#include "tests/serve/http/client.h"
#include "tests/serve/http/fake_service.h"

namespace limber {
namespace {

constexpr std::string_view kOne = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}]})";
constexpr std::string_view kLive = "GET /v2/health/live HTTP/1.1\r\nHost: t\r\n\r\n";

struct ConnectionTest : testing::Test {
  FakeService service;
  HttpOptions options;
  std::unique_ptr<HttpServer> server;

  ConnectionTest() {
    options.port = 0;
    options.io_threads = 2;
  }
  uint16_t start() {
    auto made = HttpServer::start(options, service);
    EXPECT_TRUE(made.ok()) << made.status().message();
    server = *std::move(made);
    return server->port();
  }
  // Until that many are open; false when it takes longer than anybody would wait.
  bool connections_become(size_t count) {
    for (int i = 0; i < 3000 && server->connections() != count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return server->connections() == count;
  }
};

TEST_F(ConnectionTest, KeepsAConnectionForManyRequests) {
  Client client(start());
  for (int i = 0; i < 200; ++i) {
    const Reply reply = i % 2 ? client.get("/v2/health/live") : client.post("/v2/models/slow/infer", kOne);
    ASSERT_EQ(reply.status, 200);
    EXPECT_EQ(reply.header("Connection"), "keep-alive");
  }
  EXPECT_EQ(server->connections(), 1u);
}

TEST_F(ConnectionTest, ClosesWhenAsked) {
  const uint16_t port = start();
  for (const char* request :
       {"GET /v2 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", "GET /v2 HTTP/1.0\r\n\r\n"}) {
    Client client(port);
    client.send(request);
    const Reply reply = client.receive();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.header("Connection"), "close");
    EXPECT_TRUE(client.ended());
  }
  EXPECT_TRUE(connections_become(0));
}

TEST_F(ConnectionTest, AnswersPipelinedRequestsInOrder) {
  Client client(start());
  std::string all;
  for (int i = 0; i < 50; ++i) {
    const std::string body = R"({"id":")" + std::to_string(i) + R"(","inputs":[]})";
    all += Client::post_text(i % 3 ? "/v2/models/slow/infer" : "/v2/models/echo/infer", body);
    if (i % 10 == 0) all += kLive;
  }
  client.send(all);
  for (int i = 0; i < 50; ++i) {
    EXPECT_NE(client.receive().body.find(R"("id":")" + std::to_string(i) + "\""), std::string::npos) << i;
    if (i % 10 == 0) {
      EXPECT_EQ(client.receive().body, R"({"live":true})");
    }
  }
}

TEST_F(ConnectionTest, ReadsNoFurtherRequestBeforeTheAnswer) {
  Client client(start());
  client.send(Client::post_text("/v2/models/held/infer", kOne));
  client.send(Client::post_text("/v2/models/held/infer", kOne));
  service.wait_held(1);
  EXPECT_FALSE(client.readable(0.05));
  service.release();
  EXPECT_EQ(client.receive().status, 200);
  service.wait_held(1);  // only now
  service.release();
  EXPECT_EQ(client.receive().status, 200);
}

TEST_F(ConnectionTest, TakesRequestsByteByByte) {
  Client client(start());
  const std::string text =
      std::string("\r\n") + Client::post_text("/v2/models/echo/infer", kOne) +
      "POST /v2/models/echo/infer HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2;a=b\r\n{\"\r\nC\r\ninputs\" : []\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n";
  for (const char c : text) ASSERT_TRUE(client.send({&c, 1}));
  EXPECT_EQ(client.receive().status, 200);
  const Reply second = client.receive();
  EXPECT_EQ(second.status, 200) << second.body;
  EXPECT_EQ(client.get("/v2/health/live").status, 200);
}

TEST_F(ConnectionTest, TakesLargeBodies) {
  Client client(start());
  std::string body = R"({"inputs":[{"name":"x","datatype":"UINT8","shape":[4000000],"data":[0)";
  for (int i = 1; i < 4000000; ++i) body += ",7";
  const Reply reply = client.post("/v2/models/slow/infer", body + "]}]}");
  EXPECT_EQ(reply.status, 200);
  EXPECT_GT(reply.body.size(), 8000000u);
}

TEST_F(ConnectionTest, SaysContinueToWhoAsks) {
  Client client(start());
  client.send("POST /v2/models/echo/infer HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(kOne.size()) + "\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send(kOne);
  EXPECT_EQ(client.receive().status, 200);
}

TEST_F(ConnectionTest, RefusesWhatIsTooLargeBeforeItComes) {
  options.max_body_bytes = 1000;
  options.max_head_bytes = 2000;
  const uint16_t port = start();
  {
    Client client(port);
    client.send(
        "POST /v2/models/echo/infer HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: "
        "1001\r\n\r\n");
    const Reply reply = client.receive();
    EXPECT_EQ(reply.status, 413);
    EXPECT_EQ(reply.body, R"({"error":"the body has 1001 bytes; at most 1000 are taken"})");
    EXPECT_TRUE(client.ended());
  }
  {
    // A client that sends all the same gets to read the answer.
    Client client(port);
    client.send(Client::post_text("/v2/models/echo/infer", std::string(300000, ' ')));
    EXPECT_EQ(client.receive().status, 413);
  }
  {
    Client client(port);
    client.send(
        "POST /v2/models/echo/infer HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3E9\r\n");
    EXPECT_EQ(client.receive().status, 413);
  }
  {
    Client client(port);
    client.send("GET /v2 HTTP/1.1\r\nHost: t\r\nX: " + std::string(5000, 'x') + "\r\n\r\n");
    EXPECT_EQ(client.receive().status, 431);
  }
  {
    Client client(port);
    client.send("GET /" + std::string(5000, 'x'));
    EXPECT_EQ(client.receive().status, 431);
  }
  EXPECT_EQ(Client(port).get("/v2/health/live").status, 200);
}

TEST_F(ConnectionTest, RefusesWhatIsNoRequest) {
  const uint16_t port = start();
  const std::pair<const char*, int> requests[] = {
      {"nonsense\r\n\r\n", 400},
      {"17 this is no HTTP\r\n\r\n", 400},
      {"GET /v2 HTTP/1.1\r\n\r\n", 400},
      {"GET /v2 HTTP/2.0\r\nHost: t\r\n\r\n", 505},
      {"GET /v2 HTTP/1.1\r\nHost: t\r\nBad header\r\n\r\n", 400},
      {"POST /v2/models/echo/infer HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST /v2/models/echo/infer HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
       400},
      {"POST /v2 HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST /v2 HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST /v2 HTTP/1.1\r\nHost: t\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\n", 415},
      {"POST /v2 HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
      {"GET /v2 HTTP/1.1\r\nHost: t\r\nExpect: tea\r\n\r\n", 400},
      {"GET /v2 HTTP/1.1\r\nHost: t\r\nInference-Header-Content-Length: x\r\n\r\n", 400},
  };
  for (const auto& [text, status] : requests) {
    Client client(port);
    client.send(text);
    const Reply reply = client.receive();
    EXPECT_EQ(reply.status, status) << text;
    EXPECT_EQ(reply.header("Connection"), "close");
    EXPECT_EQ(reply.body.find("{\"error\":"), 0u);
    EXPECT_TRUE(client.ended());
  }
}

TEST_F(ConnectionTest, AnswersAClientThatHasStoppedSending) {
  Client client(start());
  client.send(Client::post_text("/v2/models/held/infer", kOne) + std::string(kLive));
  client.finish_sending();
  service.wait_held(1);
  service.release();
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(client.receive().body, R"({"live":true})");
  EXPECT_TRUE(client.ended());
  EXPECT_TRUE(connections_become(0));
}

TEST_F(ConnectionTest, OutlivesClientsThatGo) {
  const uint16_t port = start();
  const std::string post = Client::post_text("/v2/models/held/infer", kOne);
  for (const size_t part : {size_t{1}, size_t{20}, post.size() - 5}) {
    Client client(port);
    client.send(post.substr(0, part));
    client.close();
  }
  {
    Client waiting(port), reset(port);
    waiting.send(post);
    reset.send(post);
    service.wait_held(2);
    waiting.close();
    reset.reset();
  }
  service.release();
  EXPECT_TRUE(connections_become(0));
  EXPECT_EQ(Client(port).get("/v2/health/live").status, 200);
}

TEST_F(ConnectionTest, GivesUpSlowClientsAndServesOthersMeanwhile) {
  options.head_s = 1.5;
  options.body_s = 1.5;
  options.idle_s = 1.5;
  options.slow_bytes_per_s = 1e9;
  const uint16_t port = start();
  const std::string head = "POST /v2/models/echo/infer HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n";
  std::vector<Client> slow;
  for (size_t i = 0; i < 200; ++i) {
    slow.emplace_back(port);
    // In the head, in the body, before the first byte.
    if (i % 3 < 2) slow.back().send(i % 3 == 0 ? head.substr(0, 10) : head + "{");
  }
  EXPECT_TRUE(connections_become(200));
  Client client(port);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.post("/v2/models/slow/infer", kOne).status, 200);
  for (size_t i = 0; i < slow.size(); ++i) {
    if (i % 3 < 2) {
      EXPECT_EQ(slow[i].receive().status, 408) << i;
    }
    EXPECT_TRUE(slow[i].ended());
  }
  EXPECT_TRUE(connections_become(0));  // also the one that was served, which had nothing more to say
}

TEST_F(ConnectionTest, GivesUpClientsThatTrickle) {
  options.head_s = 0.3;
  Client client(start());
  bool alive = true;
  for (int i = 0; i < 200 && alive; ++i) {
    alive = client.send("X") && !client.readable(0.02);
  }
  EXPECT_EQ(client.receive().status, 408);
}

TEST_F(ConnectionTest, GivesUpClientsThatDoNotRead) {
  options.body_s = 0.3;
  options.slow_bytes_per_s = 1e9;
  Client client(start());
  std::string body = R"({"inputs":[{"name":"x","datatype":"FP64","shape":[1000000],"data":[0)";
  for (int i = 1; i < 1000000; ++i) body += ",7e-300";
  client.send(Client::post_text("/v2/models/echo/infer", body + "]}]}"));
  for (int i = 0; i < 3; ++i) client.send(Client::post_text("/v2/models/echo/infer", body + "]}]}"));
  EXPECT_TRUE(connections_become(0));
}

TEST_F(ConnectionTest, TurnsAwayMoreThanItsLimit) {
  options.max_connections = 3;
  const uint16_t port = start();
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(port);
    EXPECT_EQ(clients.back().get("/v2/health/live").status, 200);
  }
  const Reply reply = Client(port).receive();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.header("Retry-After"), "1");
  clients.pop_back();
  EXPECT_TRUE(connections_become(2));
  EXPECT_EQ(Client(port).get("/v2/health/live").status, 200);
}

TEST_F(ConnectionTest, LimitsTheBytesOfAllBodies) {
  options.max_body_bytes = 1000;
  options.max_bytes_in_flight = 1500;
  const uint16_t port = start();
  const std::string body = std::string(kOne) + std::string(1000 - kOne.size(), ' ');
  Client first(port), second(port);
  first.send(Client::post_text("/v2/models/held/infer", body));
  service.wait_held(1);
  const Reply refused = second.post("/v2/models/echo/infer", body);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  service.release();
  EXPECT_EQ(first.receive().status, 200);
  EXPECT_EQ(Client(port).post("/v2/models/echo/infer", body).status, 200);
}

TEST_F(ConnectionTest, StopsWhenEverythingIsAnswered) {
  const uint16_t port = start();
  std::vector<Client> busy;
  for (int i = 0; i < 20; ++i) {
    busy.emplace_back(port);
    busy.back().send(Client::post_text("/v2/models/held/infer", kOne));
  }
  Client idle(port);
  EXPECT_EQ(idle.get("/v2").status, 200);
  Client half(port);
  half.send("GET /v2 HTTP/1.1\r\nHo");
  service.wait_held(20);
  auto stopped = std::async(std::launch::async, [this] { server->stop(30); });
  EXPECT_TRUE(idle.ended());  // has nothing under way
  EXPECT_TRUE(half.ended());  // nor has this, until its head is whole
  service.release();
  for (Client& client : busy) {
    const Reply reply = client.receive();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.header("Connection"), "close");
    EXPECT_TRUE(client.ended());
    client.close();
  }
  stopped.get();
  EXPECT_EQ(server->connections(), 0u);
}

TEST_F(ConnectionTest, StopsInTimeAndTakesAnswersThatComeTooLate) {
  Client client(start());
  client.send(Client::post_text("/v2/models/held/infer", kOne));
  service.wait_held(1);
  server->stop(0.05);
  EXPECT_TRUE(client.ended());
  server.reset();
  service.release();  // nobody is there any more
}

TEST_F(ConnectionTest, RestsWhenNothingHappens) {
  Client client(start());
  EXPECT_EQ(client.get("/v2").status, 200);
  const auto spent = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;  // times that a thread woke up
  };
  const long before = spent();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LT(spent() - before, 50);
}

TEST_F(ConnectionTest, LogsWhatItAnswered) {
  std::mutex mutex;
  std::vector<HttpAccess> log;
  options.access_log = [&](const HttpAccess& access) {
    std::lock_guard lock(mutex);
    log.push_back(access);
  };
  {
    Client client(start());
    client.get("/v2/nothing\"");
    client.post("/v2/models/slow/infer", kOne);
  }
  server->stop(30);
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0].status, 404);
  EXPECT_EQ(log[1].method, "POST");
  EXPECT_EQ(log[1].request_bytes, kOne.size());
  log[0].peer = "1.2.3.4:5";
  log[0].seconds = 0.25;
  log[0].response_bytes = 3;
  EXPECT_EQ(format_access(log[0]),
            R"({"event":"http","peer":"1.2.3.4:5","method":"GET","target":"/v2/nothing\"","status":404,)"
            R"("request_bytes":0,"response_bytes":3,"duration_s":0.250000})");
}

TEST_F(ConnectionTest, RefusesOptionsThatCannotWork) {
  const auto message = [](auto change) {
    HttpOptions options;
    change(options);
    return check(options).message();
  };
  EXPECT_EQ(message([](HttpOptions&) {}), "");
  EXPECT_EQ(message([](HttpOptions& o) { o.io_threads = 0; }), "io_threads is 0; expected 1 to 64");
  EXPECT_EQ(message([](HttpOptions& o) { o.metrics_port = 8000; }),
            "metrics_port is 8000, as port; expected another");
  EXPECT_EQ(message([](HttpOptions& o) { o.idle_s = -1; }), "idle_s is -1; expected more than 0");
  EXPECT_EQ(message([](HttpOptions& o) { o.tls_key = "k"; }),
            "tls_certificate and tls_key: expected both or none");
  start();
  options.port = server->port();
  const auto again = HttpServer::start(options, service);
  EXPECT_FALSE(again.ok());
  EXPECT_NE(again.status().message().find("cannot listen at 127.0.0.1 port"), std::string::npos);
  options.address = "localhost";
  EXPECT_EQ(HttpServer::start(options, service).status().message(),
            "address is 'localhost'; expected an IP address, as 127.0.0.1, 0.0.0.0 or ::");
}

TEST(ChunkDecoder, GivesTheSameHoweverTheBytesAreCut) {
  const std::string text = "3\r\nabc\r\n0a;x\r\n0123456789\r\n000\r\nA: b\r\n\r\nNEXT";
  for (size_t step = 1; step <= text.size(); ++step) {
    ChunkDecoder decoder(100);
    std::string pending;
    auto outcome = ChunkDecoder::Outcome::kMore;
    for (size_t at = 0; at < text.size() && outcome == ChunkDecoder::Outcome::kMore; at += step) {
      pending += text.substr(at, step);
      std::string_view left = pending;
      outcome = decoder.put(left);
      pending = std::string(left);
    }
    EXPECT_EQ(outcome, ChunkDecoder::Outcome::kDone);
    EXPECT_EQ(decoder.body(), "abc0123456789");
    EXPECT_TRUE(std::string("NEXT").starts_with(pending)) << pending;
  }
}

TEST(ChunkDecoder, RefusesNonsense) {
  using Outcome = ChunkDecoder::Outcome;
  const auto outcome = [](std::string text) {
    ChunkDecoder decoder(100);
    std::string_view left = text;
    return decoder.put(left);
  };
  EXPECT_EQ(outcome("65\r\n"), Outcome::kTooLarge);
  EXPECT_EQ(outcome("ffffffffffffffff\r\n"), Outcome::kTooLarge);
  EXPECT_EQ(outcome("fffffffffffffffff\r\n"), Outcome::kBad);
  EXPECT_EQ(outcome("-1\r\n"), Outcome::kBad);
  EXPECT_EQ(outcome("\r\n"), Outcome::kBad);
  EXPECT_EQ(outcome("1\r\nab"), Outcome::kMore);
  EXPECT_EQ(outcome("1\r\nabc"), Outcome::kBad);
  EXPECT_EQ(outcome(std::string(2000, '1')), Outcome::kBad);
  EXPECT_EQ(outcome("0\r\n" + std::string(2000, 'x')), Outcome::kBad);
}

}  // namespace
}  // namespace limber
