#include <gtest/gtest.h>

#include "serve/http/http_server.h"
#include "serve/http/router.h"
#include "tests/serve/http/client.h"
#include "tests/serve/http/fake_service.h"

namespace limber {
namespace {

constexpr std::string_view kFloats =
    R"({"id":"7","inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2.5,-3,0.1]}]})";

struct RoutesTest : testing::Test {
  FakeService service;
  std::unique_ptr<HttpServer> server = start();

  std::unique_ptr<HttpServer> start() {
    HttpOptions options;
    options.port = 0;
    options.metrics_port = 0;
    auto made = HttpServer::start(options, service);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *std::move(made);
  }
};

TEST_F(RoutesTest, SaysThatItIsAliveAndReady) {
  Client client(server->port());
  const Reply live = client.get("/v2/health/live");
  EXPECT_EQ(live.status, 200);
  EXPECT_EQ(live.body, R"({"live":true})");
  EXPECT_EQ(live.header("Content-Type"), "application/json");
  EXPECT_EQ(client.get("/v2/health/ready").body, R"({"ready":true})");
  service.set_ready(false);
  EXPECT_EQ(client.get("/v2/health/ready").status, 503);
}

TEST_F(RoutesTest, AnswersAnInferenceInJson) {
  Client client(server->port());
  for (const char* model : {"echo", "slow"}) {
    const Reply reply = client.post(std::string("/v2/models/") + model + "/infer", kFloats);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(
        reply.body,
        std::string(R"({"model_name":")") + model +
            R"(","model_version":"2","id":"7","parameters":{"variant":"original","queue_s":0,"compute_s":0},)"
            R"("outputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2.5,-3,0.1]}]})");
  }
}

TEST_F(RoutesTest, AnswersAnInferenceInBinary) {
  Client client(server->port());
  const float values[] = {1, 2, 3, 4};
  const std::string bytes(reinterpret_cast<const char*>(values), sizeof values);
  const std::string json =
      R"({"inputs":[{"name":"x","datatype":"FP32","shape":[4],"parameters":{"binary_data_size":16}}],)"
      R"("parameters":{"binary_data_output":true}})";
  const Reply reply = client.post("/v2/models/echo/infer", json + bytes,
                                  "Inference-Header-Content-Length: " + std::to_string(json.size()) + "\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("Content-Type"), "application/octet-stream");
  const size_t head = std::stoul(reply.header("Inference-Header-Content-Length"));
  EXPECT_EQ(reply.body.substr(head), bytes);
  EXPECT_NE(reply.body.find(R"("parameters":{"binary_data_size":16}}]})"), std::string::npos);
}

TEST_F(RoutesTest, AlignsBinaryBodiesForTheTensors) {
  Client client(server->port());
  for (size_t padding = 0; padding < 130; padding += 13) {
    const std::vector<double> values(1000, static_cast<double>(padding));
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
    const std::string json =
        R"({"id":")" + std::string(padding, 'i') +
        R"(","inputs":[{"name":"x","datatype":"FP64","shape":[1000],"parameters":{"binary_data_size":8000}}],)"
        R"("outputs":[{"name":"x","parameters":{"binary_data":true}}]})";
    const Reply reply =
        client.post("/v2/models/slow/infer", json + bytes,
                    "Inference-Header-Content-Length: " + std::to_string(json.size()) + "\r\n");
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body.substr(std::stoul(reply.header("Inference-Header-Content-Length"))), bytes);
  }
}

TEST_F(RoutesTest, TakesAnImageAsTheBody) {
  Client client(server->port());
  const Reply reply = client.post("/v2/models/echo/infer", "GIF89a", "Content-Type: image/gif\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.body.find(R"("name":"sizes","datatype":"INT64","shape":[1],"data":[6])"),
            std::string::npos);
  EXPECT_EQ(client.post("/v2/models/numbers/infer", "GIF89a", "Content-Type: IMAGE/gif\r\n").status, 400);
}

TEST_F(RoutesTest, DescribesServerAndModels) {
  Client client(server->port());
  EXPECT_EQ(client.get("/v2").body,
            R"({"name":"limber","version":"1.2.3","extensions":["binary_tensor_data"]})");
  EXPECT_EQ(client.get("/v2/models/echo").status, 200);
  EXPECT_NE(client.get("/v2/models/my%20net%2F1/versions/2").body.find(R"({"name":"my net/1",)"),
            std::string::npos);
  EXPECT_EQ(client.get("/v2/models/echo/versions/9").status, 404);
  EXPECT_EQ(client.get("/v2/models/none").body, R"({"error":"no model 'none'; there is 'echo'"})");
  EXPECT_EQ(client.get("/v2/models/echo/ready").body, R"({"name":"echo","ready":true})");
  EXPECT_EQ(client.get("/v2/models/echo/versions/9/ready").status, 404);
  EXPECT_EQ(client.get("/v2/limber/status").body, R"({"models":[]})");
  EXPECT_NE(client.get("/").body.find("<!DOCTYPE html>"), std::string::npos);
  EXPECT_EQ(client.get("/index.html?x=1").header("Content-Type"), "text/html; charset=utf-8");
}

TEST_F(RoutesTest, RefusesAsTheServiceSays) {
  Client client(server->port());
  const Reply busy = client.post("/v2/models/busy/infer", kFloats);
  EXPECT_EQ(busy.status, 429);
  EXPECT_EQ(busy.header("Retry-After"), "3");
  EXPECT_EQ(busy.body, R"({"error":"8 requests are waiting"})");
  EXPECT_EQ(client.post("/v2/models/none/infer", kFloats).status, 404);
  const Reply bad = client.post("/v2/models/echo/infer", "{}");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.body, R"({"error":"request: 'inputs' is missing; expected an array of tensors"})");
}

TEST_F(RoutesTest, KnowsNoOtherPathsAndMethods) {
  Client client(server->port());
  for (const char* path :
       {"/v1", "/v2/models", "/v2/models/a/b", "/v2/models/a/versions", "/v2/models/a/infer/x",
        "/v2/models//infer", "/v2/models/%zz", "/v2/models/%2", "/metrics/x", "/../etc/passwd", "*", "/V2"}) {
    const Reply reply = client.get(path);
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_EQ(reply.body.find(R"({"error":"nothing is at ')"), 0u) << path;
  }
  const Reply get = client.get("/v2/models/echo/infer");
  EXPECT_EQ(get.status, 405);
  EXPECT_EQ(get.header("Allow"), "POST");
  const Reply post = client.post("/v2/health/live", "");
  EXPECT_EQ(post.status, 405);
  EXPECT_EQ(post.header("Allow"), "GET, HEAD");
}

TEST_F(RoutesTest, AnswersHeadWithoutABody) {
  Client client(server->port());
  client.send("HEAD /v2/health/live HTTP/1.1\r\nHost: t\r\n\r\n");
  const Reply head = client.receive(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Length"), "13");
  EXPECT_EQ(client.get("/v2/health/live").body, R"({"live":true})");  // nothing came between
}

TEST_F(RoutesTest, LoadsAndUnloadsModels) {
  Client client(server->port());
  EXPECT_EQ(client.post("/v2/repository/models/a%2Fb/load", "").status, 200);
  EXPECT_EQ(client.post("/v2/repository/models/a%2Fb/unload", "{}").body, "{}");
  const Reply broken = client.post("/v2/repository/models/broken/load", "");
  EXPECT_EQ(broken.status, 400);
  EXPECT_EQ(broken.body, R"({"error":"broken: no such file"})");
  EXPECT_EQ(service.loads(), (std::vector<std::string>{"load a/b", "unload a/b", "load broken"}));
  EXPECT_EQ(client.post("/v2/repository/index", R"({"ready":true})").body,
            R"([{"name":"echo","version":"1","state":"READY","reason":""}])");
  EXPECT_NE(client.post("/v2/repository/index", "").body.find("UNAVAILABLE"), std::string::npos);
}

TEST_F(RoutesTest, ShowsMetricsAlsoAtAPortOfTheirOwn) {
  Client client(server->port());
  EXPECT_EQ(client.get("/metrics").body, "limber_build_info 1\n");
  ASSERT_NE(server->metrics_port(), 0);
  Client metrics(server->metrics_port());
  const Reply reply = metrics.get("/metrics");
  EXPECT_EQ(reply.body, "limber_build_info 1\n");
  EXPECT_EQ(reply.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(metrics.get("/v2/health/live").status, 404);
}

TEST(SplitPath, DecodesSegments) {
  using Segments = std::vector<std::string>;
  EXPECT_EQ(split_path("/"), Segments());
  EXPECT_EQ(split_path("/a/b?c=/d"), (Segments{"a", "b"}));
  EXPECT_EQ(split_path("/a/b/"), (Segments{"a", "b"}));
  EXPECT_EQ(split_path("/a%2fb%20"), Segments{"a/b "});
  EXPECT_EQ(split_path("http://host:80/v2"), Segments{"v2"});
  for (const char* path : {"", "a", "//", "/a//b", "/%", "/%4", "/%g0", "/1/2/3/4/5/6/7/8/9"})
    EXPECT_EQ(split_path(path), std::nullopt) << path;
}

}  // namespace
}  // namespace limber
