#include "jobs/serve_job.h"

#include "record/record_file.h"
#include "record/serve_records.h"
#include "tests/jobs/elastic.h"
#include "tests/jobs/served_grpc.h"

namespace limber {
namespace {

using test::binary_output;
using test::binary_request;
using test::contains;
using test::elastify_in_time;
using test::grpc_request;
using test::GrpcClient;
using test::json_body;
using test::kWithGrpc;
using test::Listener;
using test::refused_options;
using test::serve_options;
using test::served_input;
using test::ServedJob;
using test::small_job;
using test::write_served;
using test::write_tiny;

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
  // In the end it tells what both did.
  const auto outcome = server.stop();
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome->models.size(), 2U);
  EXPECT_EQ(outcome->models[1].model, "b");
  EXPECT_EQ(outcome->models[1].totals.answered, 1U);
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
  EXPECT_EQ(status["policy"], "feedback");
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
  job.serving.least_share = ServeOptions().least_share;
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
  const double end = now_seconds() + 500;
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
  const std::string http = refused_options(second);
  EXPECT_TRUE(contains(http, fmt::format("port {}", first.port()))) << http;
  EXPECT_TRUE(contains(http, "choose another port")) << http;
  if (!kWithGrpc) return;
  second.http.port = 0;
  second.grpc.port = static_cast<uint16_t>(first.serving().grpc_port);
  const std::string grpc = refused_options(second);
  EXPECT_TRUE(contains(grpc, fmt::format(":{}", first.serving().grpc_port))) << grpc;
  EXPECT_TRUE(contains(grpc, "choose another port")) << grpc;
}

}  // namespace
}  // namespace limber
