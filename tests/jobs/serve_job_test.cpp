#include "jobs/serve_job.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <csignal>

#include "grpc_service.grpc.pb.h"
#include "record/record_file.h"
#include "record/serve_records.h"
#include "tests/jobs/elastic.h"
#include "tests/jobs/served.h"
#include "tests/serve/http/tls_client.h"

namespace limber {
namespace {

using test::binary_output;
using test::binary_request;
using test::contains;
using test::elastify_in_time;
using test::json_body;
using test::kWithGrpc;
using test::Listener;
using test::serve_options;
using test::served_input;
using test::ServedJob;
using test::small_job;
using test::write_served;
using test::write_tiny;

// --- gRPC, as a client sees it --------------------------------------------------------------------------

class GrpcClient {
 public:
  explicit GrpcClient(int port, const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                                    grpc::InsecureChannelCredentials()) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    stub_ = inference::GRPCInferenceService::NewStub(
        grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), credentials, arguments));
  }
  grpc::Status infer(const inference::ModelInferRequest& request, inference::ModelInferResponse& response) {
    grpc::ClientContext context;
    prepare(context);
    return stub_->ModelInfer(&context, request, &response);
  }
  grpc::StatusCode metadata() {
    grpc::ClientContext context;
    prepare(context);
    inference::ServerMetadataResponse response;
    return stub_->ServerMetadata(&context, {}, &response).error_code();
  }
  grpc::StatusCode live() {
    grpc::ClientContext context;
    prepare(context);
    inference::ServerLiveResponse response;
    return stub_->ServerLive(&context, {}, &response).error_code();
  }
  std::string token;

 private:
  void prepare(grpc::ClientContext& context) const {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  }
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

// The same numbers as `http` sends.
inference::ModelInferRequest grpc_request(const std::string& model, const test::ServedInput& input,
                                          const test::BinaryRequest& http) {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  auto& tensor = *request.add_inputs();
  tensor.set_name(input.name);
  tensor.set_datatype("FP32");
  tensor.mutable_shape()->Add(input.shape.begin(), input.shape.end());
  request.add_raw_input_contents(http.body.substr(http.body.size() - input.elements * sizeof(float)));
  return request;
}

// --- answers --------------------------------------------------------------------------------------------

TEST(ServeJob, AnswersAlikeOverHttpAndGrpc) {
  ServedJob server(serve_options("builtin:resnet8"));
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(server.serving().models, std::vector<std::string>{"resnet8"});
  EXPECT_GT(server.serving().ready_s, 0);
  EXPECT_EQ(server.serving().metrics_port, 0);
  EXPECT_EQ(server.serving().grpc_port > 0, kWithGrpc);
  Client client(server.port());
  EXPECT_EQ(client.get("/v2/health/live").status, 200);
  EXPECT_EQ(client.get("/v2/health/ready").status, 200);
  const auto input = served_input(client, "resnet8");
  const auto request = binary_request(input);
  const Reply reply = client.post("/v2/models/resnet8/infer", request.body, request.header);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const std::string numbers = binary_output(reply);
  EXPECT_EQ(numbers.size(), 10 * sizeof(float));
  if (kWithGrpc) {
    inference::ModelInferResponse response;
    const grpc::Status status =
        GrpcClient(server.serving().grpc_port).infer(grpc_request("resnet8", input, request), response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.raw_output_contents(0), numbers);
  }
  const auto outcome = server.stop();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  ASSERT_EQ(outcome->models.size(), 1U);
  EXPECT_EQ(outcome->models[0].model, "resnet8");
  EXPECT_EQ(outcome->models[0].totals.requests, kWithGrpc ? 2U : 1U);
  EXPECT_EQ(outcome->models[0].totals.answered, outcome->models[0].totals.requests);
  EXPECT_GT(outcome->seconds, 0);
}

TEST(ServeJob, StopAnswersWhatIsUnderWay) {
  ServedJob server(serve_options("builtin:resnet8"));
  ASSERT_TRUE(server.ready());
  Client client(server.port()), watcher(server.port());
  const auto large = binary_request(served_input(client, "resnet8"), 512);
  ASSERT_TRUE(client.send(Client::post_text("/v2/models/resnet8/infer", large.body, large.header)));
  // Until it has come.
  for (int i = 0; i < 3000; ++i) {
    if (json_body(watcher.get("/v2/limber/status"))["models"][0]["requests_total"] == 1) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  server.ask_to_stop();
  const Reply reply = client.receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(binary_output(reply).size(), 512 * 10 * sizeof(float));
  client.close();  // who takes the last answer and stays is waited for a little
  const auto outcome = server.stop();
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->models.at(0).totals.answered, 1U);
  EXPECT_EQ(outcome->models.at(0).totals.rows, 512U);
}

TEST(ServeJob, StopWhileModelsAreLoadedEndsWell) {
  const Folder folder;
  for (const char* name : {"a", "b"}) write_tiny(folder, fmt::format("{}.onnx", name));
  Listener listener;
  listener.stop_after = 1;  // "getting ready", before the first is
  bool told = false;
  const auto outcome =
      run_serve(serve_options(folder.path()), listener.control(), [&](const Serving&) { told = true; });
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_FALSE(told);
  EXPECT_LT(outcome->models.size(), 2U);
}

// --- several models -------------------------------------------------------------------------------------

TEST(ServeJob, OfARepositoryWithABrokenModelTheOthersServe) {
  const Folder folder;
  folder.make("models/plain/1");
  folder.make("models/plain/7");
  folder.make("models/plain/draft");
  write_tiny(folder, "models/plain/1/model.onnx");
  write_tiny(folder, "models/plain/7/model.onnx", 2);
  write_served(folder / "models/elastic");
  folder.write("models/broken.onnx", "this is no model");
  folder.write("models/README", "for people");
  ServedJob server(serve_options(folder / "models"));
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(server.serving().models, (std::vector<std::string>{"elastic", "plain"}));
  EXPECT_TRUE(contains(server.notes(), "broken is not served: ")) << server.notes();
  Client client(server.port());
  // It is ready for what it serves, and says of the other why not.
  EXPECT_EQ(client.get("/v2/health/ready").status, 200);
  EXPECT_EQ(client.get("/v2/models/broken/ready").status, 503);
  EXPECT_EQ(client.get("/v2/models/plain").status, 200);
  EXPECT_EQ(client.get("/v2/models/plain/versions/7/ready").status, 200);
  EXPECT_EQ(client.get("/v2/models/plain/versions/1/ready").status, 404);
  std::map<std::string, std::string> states;
  for (const auto& entry : json_body(client.post("/v2/repository/index", "")))
    states[entry["name"]] = entry["state"];
  EXPECT_EQ(states, (std::map<std::string, std::string>{
                        {"broken", "UNAVAILABLE"}, {"elastic", "READY"}, {"plain", "READY"}}));
}

TEST(ServeJob, LoadsAndUnloadsOnRequest) {
  const Folder folder;
  folder.make("models");
  write_tiny(folder, "models/a.onnx");
  ServedJob server(serve_options(folder / "models"));
  ASSERT_TRUE(server.ready());
  Client client(server.port());
  EXPECT_EQ(client.get("/v2/models/b").status, 404);
  write_tiny(folder, "models/b.onnx", 2);
  ASSERT_EQ(client.post("/v2/repository/models/b/load", "").status, 200);
  const auto request = binary_request(served_input(client, "b"));
  EXPECT_EQ(client.post("/v2/models/b/infer", request.body, request.header).status, 200);
  ASSERT_EQ(client.post("/v2/repository/models/b/unload", "").status, 200);
  EXPECT_EQ(client.post("/v2/models/b/infer", request.body, request.header).status, 404);
  // Nothing of the repository's neighbours.
  for (const char* name : {"..%2Fmodels%2Fa", "..", "nobody"}) {
    const Reply reply = client.post(fmt::format("/v2/repository/models/{}/load", name), "");
    EXPECT_EQ(reply.status, 404) << name;
    EXPECT_TRUE(json_body(reply).contains("error")) << reply.body;
  }
  EXPECT_EQ(client.get("/v2/health/ready").status, 200);
}

// --- what it says of itself -----------------------------------------------------------------------------

TEST(ServeJob, MetricsAndStatusHaveTheNamesThatAreDocumented) {
  const Folder folder;
  ServeJobOptions job = serve_options(write_served(folder / "elastic"));
  job.http.metrics_port = 0;
  job.serving.governor.budget_s = 5;
  ServedJob server(job);
  ASSERT_TRUE(server.ready());
  Client client(server.port());
  const auto request = binary_request(served_input(client, "elastic"));
  ASSERT_EQ(client.post("/v2/models/elastic/infer", request.body, request.header).status, 200);
  ASSERT_EQ(client.post("/v2/models/elastic/infer", "{}").status, 400);
  Client scraper(server.serving().metrics_port);
  const std::string metrics = scraper.get("/metrics").body;
  for (const char* part :
       {"limber_build_info{version=\"",
        "limber_inference_requests_total{model=\"elastic\",version=\"1\",code=\"ok\"} 1\n",
        "limber_inference_duration_seconds_bucket{model=\"elastic\",version=\"1\",le=\"+Inf\"} 1\n",
        "# TYPE limber_inference_duration_seconds histogram\n", "limber_model_switch_duration_seconds_sum",
        "limber_active_subnet{model=\"elastic\",version=\"1\",variant=\"original\"} 1\n",
        "process_resident_memory_bytes "})
    EXPECT_TRUE(contains(metrics, part)) << part << "\n" << metrics;
  EXPECT_EQ(scraper.get("/v2").status, 404) << "the metrics' port shows metrics alone";
  const auto status = json_body(client.get("/v2/limber/status"));
  EXPECT_EQ(status["policy"], "forecast");
  ASSERT_EQ(status["models"].size(), 1U);
  const auto& model = status["models"][0];
  EXPECT_EQ(model["name"], "elastic");
  EXPECT_EQ(model["budget_s"], 5);
  EXPECT_EQ(model["variant"], "original");
  EXPECT_EQ(model["pool"].size(), 4U);
  EXPECT_EQ(client.get("/").header("Content-Type"), "text/html; charset=utf-8");
}

TEST(ServeJob, SwitchesAreRecorded) {
  const Folder folder;
  std::vector<std::string> variants;
  ServeJobOptions job = serve_options(write_served(folder / "elastic", &variants));
  job.http.debug = true;
  job.record = folder / "served.jsonl";
  ServedJob server(job);
  ASSERT_TRUE(server.ready());
  Client client(server.port());
  const nlohmann::json wish = {{"model", "elastic"}, {"variant", variants[1]}};
  ASSERT_EQ(client.post("/v2/limber/variant", wish.dump()).status, 200);
  const auto request = binary_request(served_input(client, "elastic"));
  ASSERT_EQ(client.post("/v2/models/elastic/infer", request.body, request.header).status, 200);
  const auto outcome = server.stop();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  const auto& totals = outcome->models.at(0).totals;
  EXPECT_GE(totals.switches, 1U);

  const auto records = read_records(job.record);
  ASSERT_TRUE(records.ok()) << records.status().message();
  EXPECT_TRUE(records->damaged.empty());
  std::vector<SwitchRecord> switches;
  std::optional<ServedRecord> end;
  for (const RecordLine& line : records->lines) {
    if (line.is<SwitchRecord>()) switches.push_back(*line.as<SwitchRecord>());
    if (line.is<ServedRecord>()) end = *line.as<ServedRecord>();
  }
  ASSERT_EQ(switches.size(), totals.switches);
  EXPECT_EQ(switches[0].model, "elastic");
  EXPECT_EQ(switches[0].from, "original");
  EXPECT_EQ(switches[0].to, variants[1]);
  EXPECT_EQ(switches[0].reason, "asked for");
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->requests, 1);
  EXPECT_EQ(end->answered, 1);
  EXPECT_EQ(end->switches, static_cast<int64_t>(totals.switches));
}

// In time and wrong is worth less than late.
TEST(ServeJob, PoorVariantsAreLeftOutUnlessAskedFor) {
  const Folder folder;
  ServeJobOptions job = serve_options(write_served(folder / "elastic"));
  job.serving.least_share = ServeJobOptions().serving.least_share;
  ServedJob server(job);
  ASSERT_TRUE(server.ready());
  Client client(server.port());
  const auto status = json_body(client.get("/v2/limber/status"));
  const auto& pool = status["models"][0]["pool"];
  EXPECT_LT(pool.size(), 4U);
  double best = 0;
  for (const auto& entry : pool) best = std::max(best, entry["accuracy"].get<double>());
  for (const auto& entry : pool) EXPECT_GE(entry["accuracy"].get<double>(), 0.75 * best);
}

// AN8: with a budget that nothing keeps, variants are looked for beside the requests, and are chosen from.
TEST(ServeJob, SearchesInTheBackgroundWhenNothingFits) {
  const Folder folder;
  ElastifyJobOptions making = small_job(folder / "shapes");
  ASSERT_TRUE(elastify_in_time(making).ok());
  ServeJobOptions job = serve_options(folder / "shapes");
  job.serving.governor.budget_s = 1e-6;
  job.search.data = making.data;
  job.search.images = 16;
  ServedJob server(job);
  ASSERT_TRUE(server.ready());
  Client client(server.port());
  const auto pool = [&] { return json_body(client.get("/v2/limber/status"))["models"][0]["pool"].size(); };
  EXPECT_EQ(pool(), 1U) << "nothing was judged yet";
  const auto request = binary_request(served_input(client, "shapes"));
  // It runs when a core is idle, so it may take its time beside other tests.
  const double end = now_seconds() + 240;
  while (pool() == 1 && now_seconds() < end) {
    EXPECT_EQ(client.post("/v2/models/shapes/infer", request.body, request.header).status, 200);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_GT(pool(), 1U);
}

TEST(ServeJob, NotesWhatABudgetCannotDo) {
  const Folder folder;
  ServeJobOptions job = serve_options(write_tiny(folder));
  job.serving.governor.budget_s = 1e-9;
  ServedJob server(job);
  ASSERT_TRUE(server.ready());
  EXPECT_TRUE(contains(server.notes(), "tiny: there is one variant")) << server.notes();
  EXPECT_TRUE(contains(server.notes(), "every answer will be late")) << server.notes();
  EXPECT_FALSE(contains(server.notes(), "may ask")) << "this machine only: " << server.notes();
}

// --- who may ask ----------------------------------------------------------------------------------------

TEST(ServeJob, TheTokenIsAskedForOnBothTransports) {
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

TEST(ServeJob, CertificatesAreAskedForOnBothTransports) {
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

// What run_serve() says to options that it must refuse before anything is loaded.
std::string refusal(const ServeJobOptions& job) {
  Listener listener;
  const auto outcome = run_serve(job, listener.control(), [](const Serving&) { ADD_FAILURE() << "serves"; });
  EXPECT_FALSE(outcome.ok());
  EXPECT_TRUE(listener.shares.empty()) << listener.stage;
  return outcome.status().message();
}

TEST(ServeJob, FilesOfAccessThatAreNoneAreRefusedBeforeAnythingListens) {
  const Folder folder;
  const Certificate own = make_certificate(folder.path(), "server");
  const auto with = [&](auto change) {
    ServeJobOptions job = serve_options("builtin:resnet8");
    job.access.certificate = own.certificate_file;
    job.access.key = own.key_file;
    change(job.access);
    return refusal(job);
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

TEST(ServeJob, WarnsOfAServerThatIsOpenToTheNetwork) {
  ServeAccess access;
  EXPECT_EQ(access_warning(access), "");
  access.address = "0.0.0.0";
  EXPECT_TRUE(contains(access_warning(access), "everybody who reaches 0.0.0.0"));
  access.token_file = "token";
  EXPECT_TRUE(contains(access_warning(access), "can be read by whoever sees the traffic"));
  access.certificate = "c.pem";
  EXPECT_EQ(access_warning(access), "");
}

// --- what cannot work -----------------------------------------------------------------------------------

TEST(ServeJob, OptionsThatCannotWorkAreRefused) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto message = [](auto change) {
    ServeJobOptions job;
    job.model = "m";
    change(job);
    return check(job).message();
  };
  EXPECT_EQ(message([](ServeJobOptions&) {}), "");
  EXPECT_EQ(message([](ServeJobOptions& j) { j.model = ""; }), "which model? None is named");
  for (const double wrong : {kNaN, 0.0, -1.0})
    EXPECT_TRUE(contains(message([&](ServeJobOptions& j) { j.serving.governor.budget_s = wrong; }),
                         "expected more than 0"));
  for (const double wrong : {kNaN, -1.0}) {
    const auto set = [&](auto field) { return message([&](ServeJobOptions& j) { field(j) = wrong; }); };
    EXPECT_TRUE(contains(set([](auto& j) -> double& { return j.serving.governor.dwell_s; }), "dwell_s is "));
    EXPECT_TRUE(contains(set([](auto& j) -> double& { return j.serving.governor.limits.accuracy; }),
                         "expected a share, 0 to 1"));
    EXPECT_TRUE(contains(set([](auto& j) -> double& { return j.serving.governor.limits.energy_j; }),
                         "the most energy"));
    EXPECT_TRUE(contains(set([](auto& j) -> double& { return j.serving.weights.latency; }), "a weight is "));
    EXPECT_TRUE(contains(set([](auto& j) -> double& { return j.grace_s; }), "grace_s is "));
    EXPECT_TRUE(contains(set([](auto& j) -> double& { return j.http.idle_s; }), "idle_s is "));
  }
  EXPECT_EQ(message([](ServeJobOptions& j) { j.workers = 257; }), "workers is 257; expected 0 to 256");
  EXPECT_EQ(message([](ServeJobOptions& j) { j.threads = -1; }), "threads is -1; expected 0 or more");
  EXPECT_EQ(message([](ServeJobOptions& j) { j.serving.queue_limit = 0; }),
            "queue_limit is 0; expected 1 or more");
  EXPECT_EQ(message([](ServeJobOptions& j) { j.serving.warm_limit = 0; }),
            "warm_limit is 0; expected 1 or more");
  EXPECT_EQ(message([](ServeJobOptions& j) { j.serving.ready.max_batch = 0; }),
            "max_batch is 0; expected 1 to 256");
  EXPECT_EQ(message([](ServeJobOptions& j) { j.grpc.port = j.http.port; }),
            "port 8000 is both for gRPC and for HTTP; expected two ports");
  EXPECT_EQ(message([](ServeJobOptions& j) { j.http.metrics_port = 8001; }),
            "port 8001 is both for gRPC and for HTTP; expected two ports");
  EXPECT_EQ(message([](ServeJobOptions& j) { j.access.address = ""; }),
            "address is empty; expected an IP address, as 127.0.0.1");
  // What one transport alone is told would leave the other open.
  for (const std::string& said : {message([](ServeJobOptions& j) { j.http.token = "t"; }),
                                  message([](ServeJobOptions& j) { j.grpc.token = "t"; }),
                                  message([](ServeJobOptions& j) { j.http.address = "0.0.0.0"; }),
                                  message([](ServeJobOptions& j) { j.http.tls_certificate = "c"; }),
                                  message([](ServeJobOptions& j) { j.grpc.client_authority = "c"; })})
    EXPECT_TRUE(contains(said, "expected that in access")) << said;
}

TEST(ServeJob, SaysWhatIsWrongWithModelsAndFiles) {
  const Folder folder;
  const std::string model = write_tiny(folder);
  folder.make("empty");
  const auto said = [&](auto change) {
    ServeJobOptions job = serve_options(model);
    change(job);
    const auto outcome = run_serve(job, {});
    EXPECT_FALSE(outcome.ok());
    return outcome.status();
  };
  const Status missing = said([&](auto& j) { j.model = folder / "none.onnx"; });
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_TRUE(contains(missing.message(), "none.onnx")) << missing.message();
  const Status nothing = said([&](auto& j) { j.model = folder / "empty"; });
  EXPECT_TRUE(contains(nothing.message(), "NAME/VERSION/model.onnx")) << nothing.message();
  const Status named = said([&](auto& j) {
    j.model = folder.path();
    j.name = "mine";
  });
  EXPECT_TRUE(contains(named.message(), "name 'mine' is for one model")) << named.message();
  const Status record = said([&](auto& j) { j.record = folder / "no/such/folder/r.jsonl"; });
  EXPECT_TRUE(contains(record.message(), "no/such/folder")) << record.message();
  const Status itself = said([&](auto& j) { j.record = model; });
  EXPECT_TRUE(contains(itself.message(), "tiny.onnx")) << itself.message();
  const Status unknown = said([&](auto& j) { j.serving.governor.limits.accuracy = 0.5; });
  EXPECT_TRUE(contains(unknown.message(), "accuracy of its variants is not known")) << unknown.message();
  const Status poor = said([&](auto& j) {
    j.model = write_served(folder / "elastic");
    j.serving.governor.limits.accuracy = 0.99;
  });
  EXPECT_TRUE(contains(poor.message(), "best variant has accuracy 0.95, and at least 0.99"))
      << poor.message();
}

TEST(ServeJob, APortThatIsTakenIsNamed) {
  const Folder folder;
  ServedJob first(serve_options(write_tiny(folder)));
  ASSERT_TRUE(first.ready());
  ServeJobOptions second = serve_options(folder / "tiny.onnx");
  second.http.port = first.port();
  const std::string http = refusal(second);
  EXPECT_TRUE(contains(http, fmt::format("port {}", first.port()))) << http;
  EXPECT_TRUE(contains(http, "choose another port")) << http;
  if (!kWithGrpc) return;
  second.http.port = 0;
  second.grpc.port = static_cast<uint16_t>(first.serving().grpc_port);
  const std::string grpc = refusal(second);
  EXPECT_TRUE(contains(grpc, fmt::format(":{}", first.serving().grpc_port))) << grpc;
  EXPECT_TRUE(contains(grpc, "choose another port")) << grpc;
}

}  // namespace
}  // namespace limber
