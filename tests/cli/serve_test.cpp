// limber serve, as whoever starts it and whoever asks it sees it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/cli/served_program.h"
#include "tests/serve/http/client.h"

namespace limber {
namespace {

using nlohmann::json;

// One image of zeros for builtin:resnet8.
const std::string& zeros() {
  static const std::string body = [] {
    std::string numbers = "0";
    for (int i = 1; i < 3 * 32 * 32; ++i) numbers += ",0";
    return R"({"id":"z","inputs":[{"name":"image","datatype":"FP32","shape":[1,3,32,32],"data":[)" + numbers +
           "]}]}";
  }();
  return body;
}

Reply infer(uint16_t port) { return Client(port).post("/v2/models/resnet8/infer", zeros()); }

TEST(ServeCommand, AnswersUntilASignalEndsItWell) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ServedProgram server("builtin:resnet8");
    ASSERT_GT(server.port(), 0);
    EXPECT_EQ(server.ready()["models"], json({"resnet8"}));
    EXPECT_EQ(server.ready()["url"], "http://127.0.0.1:" + std::to_string(server.port()));
    EXPECT_GT(server.ready()["grpc_port"], 0);
    EXPECT_GT(server.ready()["ready_s"], 0);
    EXPECT_EQ(Client(server.port()).get("/v2/health/ready").status, 200);
    const Reply reply = infer(server.port());
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json answer = json::parse(reply.body);
    EXPECT_EQ(answer["id"], "z");
    EXPECT_EQ(answer["outputs"][0]["data"].size(), 10U);
    const Outcome outcome = server.end(signal);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    const json totals = json::parse(outcome.out, nullptr, false);
    ASSERT_TRUE(totals.is_object()) << outcome.out;
    EXPECT_EQ(totals["models"][0]["model"], "resnet8");
    EXPECT_EQ(totals["models"][0]["requests"], 1);
    EXPECT_EQ(totals["models"][0]["answered"], 1);
  }
}

TEST(ServeCommand, AfterAKillThePortIsFreeAgain) {
  std::string port;
  {
    ServedProgram first("builtin:resnet8 --grpc-port -1");
    ASSERT_GT(first.port(), 0);
    EXPECT_EQ(first.ready()["grpc_port"], 0);
    port = std::to_string(first.port());
    Client open(first.port());  // what is left of it must not be in the way
    EXPECT_EQ(open.post("/v2/models/resnet8/infer", zeros()).status, 200);
    EXPECT_EQ(first.end(SIGKILL).code, 128 + SIGKILL);
  }
  ServedProgram second("builtin:resnet8 --grpc-port -1 --http-port " + port);
  ASSERT_EQ(std::to_string(second.port()), port);
  EXPECT_EQ(infer(second.port()).status, 200);
}

TEST(ServeCommand, ThousandsWhoSayNothingDoNotKeepOthersWaiting) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 1200) GTEST_SKIP() << "only " << limit.rlim_max << " descriptors may be open here";
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, 1200);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ServedProgram server("builtin:resnet8 --grpc-port -1");
  ASSERT_GT(server.port(), 0);
  std::vector<Client> slow;
  for (int i = 0; i < 1000; ++i) {
    slow.emplace_back(server.port());
    ASSERT_TRUE(slow.back().send("P"));
  }
  EXPECT_EQ(infer(server.port()).status, 200);
  // They are still there, and one of them wakes up.
  ASSERT_TRUE(slow[500].send("OST /v2/models/resnet8/infer HTTP/1.1\r\nHost: t\r\nContent-Length: " +
                             std::to_string(zeros().size()) + "\r\n\r\n" + zeros()));
  EXPECT_EQ(slow[500].receive().status, 200);
  const Outcome outcome = server.end();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(ServeCommand, IdleItUsesNextToNothing) {
  ServedProgram server("builtin:resnet8");
  ASSERT_GT(server.port(), 0);
  EXPECT_EQ(infer(server.port()).status, 200);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // what is left to tidy up
  const double before = server.cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  const double used = server.cpu_seconds() - before;
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(used / passed, 0.05) << used << " s of " << passed << " s";
}

TEST(ServeCommand, WhatMakesNoSenseIsRefusedWithAReason) {
  ServedProgram server("builtin:resnet8 --grpc-port -1 --max-request 1M");
  ASSERT_GT(server.port(), 0);
  const std::string post = "POST /v2/models/resnet8/infer HTTP/1.1\r\nHost: t\r\n";
  const auto with_body = [&](const std::string& body) {
    return Client::post_text("/v2/models/resnet8/infer", body);
  };
  const std::vector<std::pair<std::string, int>> cases = {
      {"garbage\r\n\r\n", 400},
      {"GET / HTTP/9.9\r\nHost: t\r\n\r\n", 505},
      {"GET /nowhere HTTP/1.1\r\nHost: t\r\n\r\n", 404},
      {"GET /v2/models/nobody HTTP/1.1\r\nHost: t\r\n\r\n", 404},
      {"GET /v2/models/resnet8/infer HTTP/1.1\r\nHost: t\r\n\r\n", 405},
      {"GET /" + std::string(100000, 'a') + " HTTP/1.1\r\nHost: t\r\n\r\n", 431},
      {post + "\r\n", 400},
      {post + "Content-Length: -1\r\n\r\n", 400},
      {post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
      {post + "Content-Length: 2000000\r\n\r\n", 413},
      {post + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n", 400},
      {with_body("no json"), 400},
      {with_body("{}"), 400},
      {with_body(R"({"inputs":[{"name":"image","datatype":"FP32","shape":[1,3,32,32],"data":[1,2]}]})"), 400},
      {with_body(R"({"inputs":[{"name":"image","datatype":"FP32","shape":[1],"data":[1]}]})"), 400},
      {with_body(R"({"inputs":[{"name":"image","datatype":"NO","shape":[1],"data":[1]}]})"), 400}};
  for (const auto& [text, status] : cases) {
    Client client(server.port());
    client.send(text);
    const Reply reply = client.receive();
    const std::string shown = text.substr(0, 100);
    EXPECT_EQ(reply.status, status) << shown;
    EXPECT_EQ(json::parse(reply.body, nullptr, false).value("error", "").empty(), false)
        << shown << reply.body;
  }
  EXPECT_EQ(infer(server.port()).status, 200);
}

TEST(ServeCommand, WhoHasSaidAllIsStillAnswered) {
  ServedProgram server("builtin:resnet8 --grpc-port -1 --log-format json");
  ASSERT_GT(server.port(), 0);
  for (const std::string& text : {std::string("GET /v2 HTTP/1.1\r\nHost: t\r\n\r\n"),
                                  Client::post_text("/v2/models/resnet8/infer", zeros())}) {
    Client client(server.port());
    client.send(text);
    client.finish_sending();
    EXPECT_EQ(client.receive().status, 200);
    EXPECT_TRUE(client.ended());
  }
  const Outcome outcome = server.end();
  EXPECT_EQ(outcome.code, 0);
  std::istringstream log(outcome.err);
  int lines = 0;
  for (std::string line; std::getline(log, line); ++lines)
    EXPECT_EQ(json::parse(line)["status"], 200) << line;
  EXPECT_EQ(lines, 2);
}

TEST(ServeCommand, WrongUseIsExitCode2) {
  for (const char* arguments :
       {"serve", "serve builtin:resnet8 --latency 15", "serve builtin:resnet8 --latency 0ms",
        "serve builtin:resnet8 --min-accuracy nan", "serve builtin:resnet8 --min-accuracy 2",
        "serve builtin:resnet8 --alpha nan", "serve builtin:resnet8 --http-port 70000",
        "serve builtin:resnet8 --policy lucky", "serve builtin:resnet8 --max-request none"})
    EXPECT_EQ(limber_program(arguments).code, 2) << arguments;
}

TEST(ServeCommand, AFileOfApplicationsIsReadAgainOnAHangup) {
  const Folder folder;
  const std::string file = folder / "apps.toml",
                    gate = "[[app]]\nname = \"gate\"\nmodel = \"builtin:resnet8\"\n",
                    yard = "[[app]]\nname = \"yard\"\nmodel = \"builtin:resnet8\"\n";
  write_text(file, gate);
  const std::string apps = "serve --apps " + file;
  EXPECT_EQ(limber_program(apps + " --latency 20ms").code, 2) << "each has its own";
  EXPECT_EQ(limber_program("serve builtin:resnet8 --apps " + file).code, 2);
  ServedProgram server("--apps " + file);
  ASSERT_GT(server.port(), 0);
  const auto status_of = [&](const char* name) {
    return Client(server.port()).get(std::string("/v2/models/") + name).status;
  };
  EXPECT_EQ(Client(server.port()).post("/v2/models/gate/infer", zeros()).status, 200);
  EXPECT_EQ(status_of("yard"), 404);
  write_text(file, gate + yard);
  ASSERT_EQ(::kill(server.pid(), SIGHUP), 0);
  for (int i = 0; i < 6000 && status_of("yard") != 200; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(status_of("yard"), 200);
  ASSERT_EQ(::kill(server.pid(), SIGHUP), 0);
  EXPECT_EQ(status_of("gate"), 200) << "the second does not end it either";
  EXPECT_EQ(server.end().code, 0);
}

TEST(ServeCommand, WhatCannotBeServedIsExitCode1WithTheReason) {
  const Folder folder;
  write_text(folder / "empty", "");
  const auto said = [](const std::string& arguments) {
    const Outcome outcome = limber_program("serve " + arguments + " --http-port 0 --grpc-port 0");
    EXPECT_EQ(outcome.code, 1) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(contains(outcome.err, "limber: error: ")) << outcome.err;
    return outcome.err;
  };
  EXPECT_TRUE(contains(said(folder / "none.onnx"), "none.onnx"));
  const std::string model = "builtin:resnet8 ";
  EXPECT_TRUE(contains(said(model + "--token-file " + (folder / "empty")), "expected a token"));
  EXPECT_TRUE(contains(said(model + "--token-file " + (folder / "none")), "first line is the token"));
  EXPECT_TRUE(contains(said(model + "--tls-cert " + (folder / "empty")), "TLS needs both"));
  EXPECT_TRUE(contains(said(model + "--host nowhere"), "'nowhere'"));
  EXPECT_TRUE(contains(said(model + "--record " + (folder / "no/folder/x")), "no/folder"));
  EXPECT_TRUE(contains(said(model + "--min-accuracy 0.9"), "accuracy of its variants is not known"));
}

TEST(ServeCommand, APortThatIsTakenIsNamed) {
  ServedProgram first("builtin:resnet8");
  ASSERT_GT(first.port(), 0);
  const std::string port = std::to_string(first.port());
  const Outcome second = limber_program("serve builtin:resnet8 --grpc-port -1 --http-port " + port);
  EXPECT_EQ(second.code, 1);
  EXPECT_TRUE(contains(second.err, "port " + port)) << second.err;
  EXPECT_TRUE(contains(second.err, "choose another port")) << second.err;
}

}  // namespace
}  // namespace limber
