#include "jobs/serve_access.h"

#include <csignal>

#include "tests/jobs/served_grpc.h"
#include "tests/serve/http/tls_client.h"

namespace limber {
namespace {

using test::contains;
using test::GrpcClient;
using test::kWithGrpc;
using test::refused_options;
using test::serve_options;
using test::ServedJob;
using test::write_tiny;

TEST(ServeAccess, TheTokenIsAskedForOnBothTransports) {
  const Folder folder;
  ServeJobOptions job = serve_options(write_tiny(folder));
  job.access.token_file = folder.write("token", "s3cret\nsecond line\n");
  for (const bool open_health : {false, true}) {
    job.access.open_health = open_health;
    ServedJob server(job);
    ASSERT_TRUE(server.ready());
    EXPECT_EQ(Client(server.port()).get("/v2").status, 401);
    EXPECT_EQ(Client(server.port()).get("/v2", "Authorization: Bearer second line\r\n").status, 401);
    EXPECT_EQ(Client(server.port()).get("/v2", "Authorization: Bearer s3cret\r\n").status, 200);
    EXPECT_EQ(Client(server.port()).get("/v2/health/live").status, open_health ? 200 : 401);
    if (!kWithGrpc) continue;
    GrpcClient client(server.serving().grpc_port);
    EXPECT_EQ(client.metadata(), grpc::StatusCode::UNAUTHENTICATED);
    inference::ModelInferResponse response;
    EXPECT_EQ(client.infer({}, response).error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(client.live(), open_health ? grpc::StatusCode::OK : grpc::StatusCode::UNAUTHENTICATED);
    client.token = "s3cret";
    EXPECT_EQ(client.metadata(), grpc::StatusCode::OK);
    client.token = "s3cre";
    EXPECT_EQ(client.metadata(), grpc::StatusCode::UNAUTHENTICATED);
  }
}

std::shared_ptr<grpc::ChannelCredentials> tls_credentials(const Certificate& authority,
                                                          const Certificate* own) {
  const auto text = [](const std::string& file) { return *os_files().read(file, 1 << 20); };
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = text(authority.certificate_file);
  if (own != nullptr) {
    options.pem_cert_chain = text(own->certificate_file);
    options.pem_private_key = text(own->key_file);
  }
  return grpc::SslCredentials(options);
}

TEST(ServeAccess, CertificatesAreAskedForOnBothTransports) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's sockets know no other way
  const Folder folder;
  const Certificate authority = make_certificate(folder.path(), "authority");
  const Certificate own = make_certificate(folder.path(), "server", &authority);
  const Certificate client = make_certificate(folder.path(), "client", &authority);
  ServeJobOptions job = serve_options(write_tiny(folder));
  job.access.certificate = own.certificate_file;
  job.access.key = own.key_file;
  job.access.client_authority = authority.certificate_file;
  ServedJob server(job);
  ASSERT_TRUE(server.ready());
  const std::string get = "GET /v2 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
  EXPECT_TRUE(tls_exchange(server.port(), authority, &client, get).starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(tls_exchange(server.port(), authority, nullptr, get).starts_with("HTTP/1.1 401 "));
  Client plain(server.port());
  plain.send(get);
  EXPECT_EQ(plain.receive().status, 0);
  if (!kWithGrpc) return;
  const int port = server.serving().grpc_port;
  EXPECT_EQ(GrpcClient(port, tls_credentials(authority, &client)).metadata(), grpc::StatusCode::OK);
  EXPECT_EQ(GrpcClient(port, tls_credentials(authority, nullptr)).metadata(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(GrpcClient(port).metadata(), grpc::StatusCode::UNAVAILABLE);
}

TEST(ServeAccess, FilesOfAccessThatAreNoneAreRefusedBeforeAnythingListens) {
  const Folder folder;
  const Certificate own = make_certificate(folder.path(), "server");
  const auto with = [&](auto change) {
    ServeJobOptions job = serve_options("builtin:resnet8");
    job.access.certificate = own.certificate_file;
    job.access.key = own.key_file;
    change(job.access);
    return refused_options(job);
  };
  const std::string nothing = folder / "nothing", junk = folder.write("junk", "no PEM");
  const std::string empty = folder.write("empty", "\n"), spaces = folder.write("spaces", "two words\n");
  for (const auto& [message, parts] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {with([&](ServeAccess& a) { a.token_file = nothing; }), {nothing, "first line is the token"}},
           {with([&](ServeAccess& a) { a.token_file = empty; }), {empty, "openssl rand"}},
           {with([&](ServeAccess& a) { a.token_file = spaces; }), {spaces, "no client can send it"}},
           {with([&](ServeAccess& a) { a.certificate = nothing; }), {nothing}},
           {with([&](ServeAccess& a) { a.certificate = junk; }), {junk, "expected a certificate in PEM"}},
           {with([&](ServeAccess& a) { a.key = junk; }), {junk, "private key in PEM"}},
           {with([&](ServeAccess& a) { a.client_authority = nothing; }), {nothing}},
           {with([&](ServeAccess& a) { a.client_authority = junk; }), {junk, "expected certificates in PEM"}},
           {with([&](ServeAccess& a) { a.key = ""; }), {own.certificate_file, "TLS needs both"}},
           {with([&](ServeAccess& a) {
              a.certificate = a.key = "";
              a.client_authority = own.certificate_file;
            }),
            {own.certificate_file, "give certificate and key as well"}}}) {
    for (const std::string& part : parts) EXPECT_TRUE(contains(message, part)) << part << " in: " << message;
  }
}

TEST(ServeAccess, WarnsOfAServerThatIsOpenToTheNetwork) {
  ServeAccess access;
  EXPECT_EQ(access_warning(access), "");
  access.address = "0.0.0.0";
  EXPECT_TRUE(contains(access_warning(access), "everybody who reaches 0.0.0.0"));
  access.token_file = "token";
  EXPECT_TRUE(contains(access_warning(access), "can be read by whoever sees the traffic"));
  access.certificate = "c.pem";
  EXPECT_EQ(access_warning(access), "");
}

}  // namespace
}  // namespace limber
