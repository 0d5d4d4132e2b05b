// Who may come in: tokens, certificates, and what others get to see.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "serve/http/gate.h"
#include "serve/http/http_server.h"
#include "tests/serve/http/certificates.h"
#include "tests/serve/http/client.h"
#include "tests/serve/http/fake_service.h"
#include "tests/serve/http/tls_client.h"

namespace limber {
namespace {

constexpr std::string_view kNumber = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}]})";

struct SecurityTest : testing::Test {
  FakeService service;
  HttpOptions options;
  std::unique_ptr<HttpServer> server;
  std::string folder = testing::TempDir() + "limber_security_" + std::to_string(::getpid());
  const std::string get = "GET /v2/health/live HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
  static constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\n",
                                    kRefused = "HTTP/1.1 401 Unauthorized\r\n";

  SecurityTest() {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's sockets know no other way
    std::filesystem::create_directories(folder);
    options.port = 0;
  }
  ~SecurityTest() override {
    server.reset();
    std::filesystem::remove_all(folder);
  }
  uint16_t start() {
    auto made = HttpServer::start(options, service);
    EXPECT_TRUE(made.ok()) << made.status().message();
    server = *std::move(made);
    return server->port();
  }
  std::string start_error() { return HttpServer::start(options, service).status().message(); }
};

TEST_F(SecurityTest, WantsTheTokenForEverything) {
  options.token = "s3cret";
  const uint16_t port = start();
  for (const char* path :
       {"/", "/v2", "/v2/health/live", "/v2/health/ready", "/metrics", "/v2/models/none", "/nothing"}) {
    const Reply reply = Client(port).get(path);
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(reply.header("WWW-Authenticate"), "Bearer");
    EXPECT_EQ(reply.body, R"({"error":"a token is needed, as in 'Authorization: Bearer TOKEN'"})");
    EXPECT_EQ(Client(port).get(path, "Authorization: Bearer s3cre\r\n").status, 401);
    EXPECT_NE(Client(port).get(path, "Authorization: Bearer s3cret\r\n").status, 401);
  }
  // Refused before the body is read.
  Client client(port);
  client.send("POST /v2/models/echo/infer HTTP/1.1\r\nHost: t\r\nContent-Length: 50000000\r\n\r\n");
  EXPECT_EQ(client.receive().status, 401);
  Client good(port);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(good.post("/v2/models/slow/infer", kNumber, "authorization: bearer s3cret\r\n").status, 200);
}

TEST_F(SecurityTest, LeavesHealthOpenWhenTold) {
  options.token = "s3cret";
  options.open_health = true;
  const uint16_t port = start();
  EXPECT_EQ(Client(port).get("/v2/health/live").status, 200);
  EXPECT_EQ(Client(port).get("/v2/health/ready").status, 200);
  EXPECT_EQ(Client(port).get("/v2/health/live/").status, 401);
  EXPECT_EQ(Client(port).get("/v2").status, 401);
}

TEST(Gate, AdmitsTheTokenOnly) {
  const Gate gate("abc");
  EXPECT_TRUE(gate.admits("Bearer abc"));
  EXPECT_TRUE(gate.admits("BEARER abc"));
  for (const char* text :
       {"", "Bearer", "Bearer ", "Bearer ab", "Bearer abcd", "Bearer Abc", "Basic abc", "abc"})
    EXPECT_FALSE(gate.admits(text)) << text;
  EXPECT_TRUE(Gate("").admits(""));
}

TEST_F(SecurityTest, SpeaksTls) {
  const Certificate authority = make_certificate(folder, "authority");
  const Certificate own = make_certificate(folder, "server", &authority);
  const Certificate stranger = make_certificate(folder, "stranger");
  options.tls_certificate = own.certificate_file;
  options.tls_key = own.key_file;
  const uint16_t port = start();
  EXPECT_TRUE(tls_exchange(port, authority, nullptr, get).starts_with(kAnswer));
  // Many records, both ways.
  std::string body = R"({"inputs":[{"name":"x","datatype":"UINT8","shape":[200000],"data":[0)";
  for (int i = 1; i < 200000; ++i) body += ",8";
  const std::string post = Client::post_text("/v2/models/slow/infer", body + "]}]}", "Connection: close\r\n");
  const std::string answer = tls_exchange(port, authority, nullptr, post);
  EXPECT_TRUE(answer.starts_with(kAnswer));
  EXPECT_TRUE(answer.ends_with(",8,8,8]}]}"));
  // A client that does not trust the server's certificate does not talk to it, nor does the server talk
  // plainly.
  EXPECT_EQ(tls_exchange(port, stranger, nullptr, get), "");
  Client plain(port);
  plain.send(get);
  EXPECT_EQ(plain.receive().status, 0);
  EXPECT_TRUE(tls_exchange(port, authority, nullptr, get).starts_with(kAnswer));
}

TEST_F(SecurityTest, GivesUpAHandshakeThatDoesNotCome) {
  const Certificate own = make_certificate(folder, "server");
  options.tls_certificate = own.certificate_file;
  options.tls_key = own.key_file;
  options.head_s = 0.2;
  Client client(start());
  EXPECT_TRUE(client.ended());
}

TEST_F(SecurityTest, WantsCertificatesOfClients) {
  const Certificate authority = make_certificate(folder, "authority");
  const Certificate clients = make_certificate(folder, "clients");
  const Certificate own = make_certificate(folder, "server", &authority);
  const Certificate good = make_certificate(folder, "good", &clients);
  const Certificate wrong = make_certificate(folder, "wrong", &authority);
  options.tls_certificate = own.certificate_file;
  options.tls_key = own.key_file;
  options.tls_client_ca = clients.certificate_file;
  uint16_t port = start();
  EXPECT_TRUE(tls_exchange(port, authority, &good, get).starts_with(kAnswer));
  EXPECT_TRUE(tls_exchange(port, authority, nullptr, get).starts_with(kRefused));
  EXPECT_EQ(tls_exchange(port, authority, &wrong, get), "");

  // With a token as well, both are needed; health is open to those without a certificate when it is.
  options.token = "t";
  options.open_health = true;
  port = start();
  const std::string metadata = "GET /v2 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n";
  EXPECT_TRUE(tls_exchange(port, authority, &good, metadata + "Authorization: Bearer t\r\n\r\n")
                  .starts_with(kAnswer));
  EXPECT_TRUE(tls_exchange(port, authority, &good, metadata + "\r\n").starts_with(kRefused));
  EXPECT_TRUE(tls_exchange(port, authority, nullptr, metadata + "Authorization: Bearer t\r\n\r\n")
                  .starts_with(kRefused));
  EXPECT_TRUE(tls_exchange(port, authority, nullptr, get).starts_with(kAnswer));
}

TEST_F(SecurityTest, NamesTheFileThatIsNoCertificate) {
  const Certificate own = make_certificate(folder, "server"), other = make_certificate(folder, "other");
  options.tls_certificate = folder + "/missing.pem";
  options.tls_key = own.key_file;
  EXPECT_NE(start_error().find("missing.pem: expected a certificate in PEM"), std::string::npos);
  options.tls_certificate = own.certificate_file;
  options.tls_key = own.certificate_file;
  EXPECT_NE(start_error().find("server.pem: expected the certificate's private key in PEM"),
            std::string::npos);
  options.tls_key = other.key_file;
  EXPECT_NE(start_error().find("other.key: expected"), std::string::npos);
  options.tls_key = own.key_file;
  options.tls_client_ca = own.key_file;
  EXPECT_NE(start_error().find("server.key: expected certificates in PEM"), std::string::npos);
}

}  // namespace
}  // namespace limber
