// A server whose model adapts, as whoever asks it sees it.
#include "jobs/serve_adapt.h"

#include <atomic>

#include "device/linux_sensor.h"
#include "jobs/served_folder.h"
#include "record/record_file.h"
#include "record/serve_records.h"
#include "tests/jobs/served.h"
#include "tests/jobs/tinted.h"

namespace limber {
namespace {

using test::binary_output;
using test::contains;
using test::json_body;
using test::prepared;
using test::ServedJob;
using test::tinted_images;
using test::TintedImages;
using test::Weather;

ServeJobOptions adapting(const Folder& folder) {
  const test::Net net = test::tinted_net();
  EXPECT_TRUE(export_onnx(net.graph, *net.params, folder / "tinted.onnx").ok());
  ServeJobOptions job = test::serve_options(folder / "tinted.onnx");
  job.adapt.method = "bn";
  job.adapt.data = test::write_tinted(folder, tinted_images(150, 1));
  job.adapt.share = 1;
  job.adapt.window = 50;
  job.adapt.idle_only = false;  // other tests run beside this one
  return job;
}

// Fifty rows, and what the model makes of them.
std::string ask(Client& client, const TintedImages& images) {
  const Tensor rows = prepared(images);
  const nlohmann::json head = {{"inputs",
                                {{{"name", "x"},
                                  {"datatype", "FP32"},
                                  {"shape", {images.labels.size(), 3, 16, 16}},
                                  {"parameters", {{"binary_data_size", rows.bytes()}}}}}},
                               {"parameters", {{"binary_data_output", true}}}};
  std::string body = head.dump();
  const std::string header = "Inference-Header-Content-Length: " + std::to_string(body.size()) + "\r\n";
  body.append(static_cast<const char*>(rows.raw()), rows.bytes());
  const Reply reply = client.post("/v2/models/tinted/infer", body, header);
  EXPECT_EQ(reply.status, 200) << reply.body;
  return binary_output(reply);
}

TEST(ServeAdapt, LearnsFromWhatItIsAskedAndTellsOfIt) {
  const Folder folder;
  ServeJobOptions job = adapting(folder);
  job.record = folder / "served.jsonl";
  ServedJob server(job);
  ASSERT_TRUE(server.ready());
  Client client(server.port());
  const auto told = [&] { return json_body(client.get("/v2/limber/status"))["models"][0]["adaptation"]; };
  EXPECT_EQ(told()["method"], "bn");
  const TintedImages probe = tinted_images(50, 99, Weather::kFog);
  const std::string before = ask(client, probe);
  const double end = now_seconds() + 100;
  uint64_t seed = 100;
  while (told()["net"] == "" && now_seconds() < end) {
    ask(client, tinted_images(50, ++seed, Weather::kFog));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(contains(told()["net"], "bn after")) << told()["events"];
  EXPECT_GE(told()["adapted_total"], 1);
  EXPECT_GT(told()["source_accuracy"], 0.7);
  std::string after = before;
  while (after == before && now_seconds() < end) after = ask(client, probe);
  EXPECT_FALSE(after == before) << "published";
  EXPECT_TRUE(contains(client.get("/metrics").body,
                       "limber_adaptations_total{model=\"tinted\",version=\"1\",result=\"adapted\"}"));
  const auto outcome = server.stop();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->models[0].totals.all_refused(), 0U);
  ASSERT_EQ(outcome->adaptations.size(), 1U);
  EXPECT_EQ(outcome->adaptations[0].model, "tinted");
  EXPECT_GE(outcome->adaptations[0].followed->adapted, 1U);

  const auto records = read_records(job.record);
  ASSERT_TRUE(records.ok()) << records.status().message();
  std::vector<std::string> events;
  for (const RecordLine& line : records->lines)
    if (line.is<FollowedRecord>()) events.push_back(line.as<FollowedRecord>()->event);
  EXPECT_NE(std::find(events.begin(), events.end(), "alarm"), events.end());
  EXPECT_NE(std::find(events.begin(), events.end(), "adapted"), events.end());
}

TEST(CoreShare, WhatAllUseTogetherIsWaitedFor) {
  CoreShare share(0.5);
  EXPECT_EQ(share.use(1, 100), 2) << "a second of a core is two of half a core";
  EXPECT_EQ(share.use(1, 101), 3) << "half a second of the first is paid for";
  EXPECT_EQ(share.use(0, 104), 0);
  EXPECT_EQ(share.use(0.5, 200), 1) << "what was not used is not kept";
}

TEST(ServeAdapt, ByTurnsItLearnsOnlyWhenItHasOne) {
  const Folder folder;
  const ServeJobOptions job = adapting(folder);
  ServedFolderOptions from;
  static_cast<EngineOptions&>(from) = job;
  from.path = job.model;
  from.open_batch = true;
  const auto models = ServedFolder::open(from);
  ASSERT_TRUE(models.ok()) << models.status().message();
  ModelServerOptions options;
  options.model.ready.workers = 1;
  ModelServer server(**models, std::make_unique<LinuxSensor>(), options);
  ASSERT_TRUE(server.open("tinted").ok());
  const auto model = server.models()[0].second;
  std::atomic<int> changes = 0;
  const JobControl control;
  BackgroundAdaptOptions how{"tinted", job.adapt, job, *open_source_images(job.adapt, 0), {}, {}, true, {}};
  how.share = std::make_shared<CoreShare>(1);
  how.changed = [&] { ++changes; };
  const auto started = BackgroundAdapt::start(how, server, control);
  ASSERT_TRUE(started.ok()) << started.status().message();
  BackgroundAdapt& adapt = **started;
  uint64_t seed = 100;
  const auto ask_until = [&](const std::function<bool()>& so) {
    const double end = now_seconds() + 100;
    while (!so() && now_seconds() < end) {
      InferRequest request{.model = "tinted"};
      request.inputs.push_back({"x", prepared(tinted_images(50, ++seed, Weather::kFog)), {}});
      EXPECT_TRUE(test::ask(*model, std::move(request)).status.ok());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return so();
  };
  EXPECT_TRUE(ask_until([&] { return adapt.wish().due; }));
  const uint64_t seen = model->followed()->seen;
  EXPECT_TRUE(ask_until([&] { return model->followed()->seen > seen; })) << "it looks on";
  EXPECT_FALSE(adapt.wish().learning);
  EXPECT_EQ(model->followed()->learning_cpu_s, 0) << "it has not learnt";
  EXPECT_GT(adapt.wish().learning_s, 0) << "a guess";
  EXPECT_GE(changes, 1);
  adapt.give_turn(true);
  EXPECT_TRUE(ask_until([&] { return model->followed()->adapted >= 1; }));
  EXPECT_GT(model->followed()->learning_cpu_s, 0);
}

TEST(ServeAdapt, BeginsAnewWithAModelThatIsLoadedAnew) {
  const Folder folder;
  ServedJob server(adapting(folder));
  ASSERT_TRUE(server.ready());
  Client client(server.port());
  const auto told = [&] { return json_body(client.get("/v2/limber/status"))["models"][0]["adaptation"]; };
  const auto wait_to_follow = [&] {
    const double end = now_seconds() + 100;
    while ((!told().is_object() || told()["state"] != "following") && now_seconds() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(told()["state"], "following");
  };
  wait_to_follow();
  ASSERT_EQ(client.post("/v2/repository/models/tinted/load", "").status, 200);
  EXPECT_TRUE(told().is_null() || told()["seen_total"] == 0);
  wait_to_follow();
  ask(client, tinted_images(50, 3));
  const double end = now_seconds() + 100;
  while (told()["seen_total"] != 50 && now_seconds() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(told()["seen_total"], 50);
}

constexpr std::string_view kWithoutNormalisation = R"(graph "plain" {
  input %image: f32[N,3,16,16]
  param %w: f32[10,3]
  %p: f32[N,3,1,1] = GlobalAveragePool(%image)
  %f: f32[N,3] = Reshape(%p) {shape=<N,3>}
  %y: f32[N,10] = Gemm(%f, %w) {trans_b=1} "head"
  output %y as "logits"
}
)";

TEST(ServeAdapt, WhatCannotWorkIsRefused) {
  const Folder folder;
  const auto said = [&](auto change) {
    ServeJobOptions job = adapting(folder);
    change(job);
    const auto outcome = run_serve(job, {});
    EXPECT_FALSE(outcome.ok());
    return outcome.status().message();
  };
  EXPECT_TRUE(contains(said([](auto& j) { j.adapt.data = "/nowhere"; }), "/nowhere"));
  EXPECT_TRUE(contains(said([](auto& j) { j.exits = true; }), "without exits"));
  EXPECT_TRUE(
      contains(said([&](auto& j) { j.adapt.data = test::write_tinted(folder, tinted_images(50, 1)); }),
               "has 50 images"));
  EXPECT_TRUE(contains(said([](auto& j) { j.adapt.data = "synthetic:size=16,count=200"; }), "classes"));
  const std::string plain = said([&](auto& j) {
    j.model = test::write_tiny(folder, "plain.onnx", 1, kWithoutNormalisation);
    j.adapt.data = "synthetic:size=16,count=200";
  });
  EXPECT_TRUE(contains(plain, "normalisation")) << plain;
  const std::string several = said([&](auto& j) {
    folder.make("models");
    test::write_tiny(folder, "models/a.onnx");
    j.model = folder / "models";
  });
  EXPECT_TRUE(contains(several, "one model at a time adapts")) << several;
}

}  // namespace
}  // namespace limber
