// Several applications in one server: what they share, and what one can do to another, which is nothing.
#include <atomic>

#include "record/record_file.h"
#include "record/serve_records.h"
#include "tests/jobs/served.h"
#include "tests/jobs/tinted.h"

namespace limber {
namespace {

using test::binary_output;
using test::binary_request;
using test::BinaryRequest;
using test::contains;
using test::json_body;
using test::ServedJob;
using test::tinted_images;
using test::TintedImages;
using test::Weather;

constexpr double kPatience_s = 100;

// As tests of many threads wait: until it is so, or for far longer than it takes.
bool wait_until(const std::function<bool()>& so) {
  const double end = now_seconds() + kPatience_s;
  while (now_seconds() < end) {
    if (so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

std::string app_text(const std::string& name, const std::string& model, const std::string& more = "") {
  return fmt::format("[[app]]\nname = \"{}\"\nmodel = \"{}\"\n{}\n", name, model, more);
}

class ServeAppsTest : public testing::Test {
 protected:
  ServeAppsTest() {
    test::write_tiny(folder_, "first.onnx", 1);
    test::write_tiny(folder_, "second.onnx", 2);
    job_ = test::serve_options("");
    job_.apps = folder_ / "apps.toml";
    job_.serving.ready.max_batch = 1;  // the same bits whoever else asks
    job_.record = folder_ / "served.jsonl";
    job_.adapt.share = 1;
    job_.adapt.window = 50;
    job_.adapt.idle_only = false;  // other tests run beside this one
    job_.read_apps_again = &again_;
  }

  void write(const std::string& text) { EXPECT_TRUE(os_files().write(job_.apps, text).ok()); }
  void write_again(const std::string& text) {
    write(text);
    ++again_;
  }
  static std::string two() { return app_text("a", "first.onnx") + app_text("b", "second.onnx"); }

  // What a model makes of the numbers of binary_request(); empty when it did not answer.
  static std::string answer(Client& client, const std::string& name, const BinaryRequest& request) {
    const Reply reply = client.post("/v2/models/" + name + "/infer", request.body, request.header);
    return reply.status == 200 ? binary_output(reply) : "";
  }
  static nlohmann::json status(Client& client, const std::string& name) {
    const nlohmann::json all = json_body(client.get("/v2/limber/status"));
    for (const auto& model : all["models"])
      if (model["name"] == name) return model;
    return nlohmann::json::object();
  }

  // Asks one application all the time while something happens to another.
  template <typename Happens>
  void others_answer(uint16_t port, const std::string& name, Happens happens) {
    Client first(port);
    const BinaryRequest request = binary_request(test::served_input(first, name));
    const std::string right = answer(first, name, request);
    ASSERT_FALSE(right.empty());
    std::atomic<bool> over = false;
    std::atomic<int> asked = 0, wrong = 0;
    std::thread other([&] {
      Client client(port);
      while (!over || asked < 20) {
        if (answer(client, name, request) != right) ++wrong;
        ++asked;
      }
    });
    happens();
    over = true;
    other.join();
    EXPECT_EQ(wrong, 0) << "of " << asked;
  }

  void write_tinted_apps(const std::string& more_a = "", const std::string& more_b = "") {
    const test::Net net = test::tinted_net();
    EXPECT_TRUE(export_onnx(net.graph, *net.params, folder_ / "tinted.onnx").ok());
    test::write_tinted(folder_, tinted_images(150, 1));
    const std::string adapt = "adapt = \"bn\"\nadapt_data = \"pixels.npy,labels.npy\"\n";
    write(app_text("a", "tinted.onnx", adapt + more_a) + app_text("b", "tinted.onnx", adapt + more_b));
  }

  const Folder folder_;
  std::atomic<int> again_ = 0;
  ServeJobOptions job_;
};

TEST_F(ServeAppsTest, EachAnswersByItsOwnModelAndBudget) {
  write(app_text("a", "first.onnx", "latency = \"10s\"\nimportance = 3") + app_text("b", "second.onnx"));
  ServedJob server(job_);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(server.serving().models, (std::vector<std::string>{"a", "b"}));
  Client client(server.port());
  const BinaryRequest request = binary_request(test::served_input(client, "a"));
  const std::string a = answer(client, "a", request), b = answer(client, "b", request);
  EXPECT_FALSE(a.empty() || b.empty());
  EXPECT_NE(a, b);
  EXPECT_EQ(status(client, "a")["budget_s"], 10);
  EXPECT_FALSE(status(client, "b").contains("budget_s"));
  EXPECT_TRUE(wait_until([&] { return status(client, "a").contains("turn"); }));
  const auto turn = status(client, "a")["turn"];
  EXPECT_EQ(turn["importance"], 3);
  EXPECT_EQ(turn["why"], "does not adapt");
  EXPECT_EQ(turn["learns"], false);
}

TEST_F(ServeAppsTest, TheyLearnByTurnsAndTellOfIt) {
  write_tinted_apps("importance = 2");
  ServedJob server(job_);
  ASSERT_TRUE(server.ready());
  Client client(server.port());
  const auto net = [&](const std::string& name) { return status(client, name)["adaptation"]["net"]; };
  const auto ask = [&](const std::string& name, uint64_t seed) {
    const Tensor rows = test::prepared(tinted_images(50, seed, Weather::kFog));
    const nlohmann::json head = {{"inputs",
                                  {{{"name", "x"},
                                    {"datatype", "FP32"},
                                    {"shape", {50, 3, 16, 16}},
                                    {"parameters", {{"binary_data_size", rows.bytes()}}}}}}};
    std::string body = head.dump();
    const std::string header = "Inference-Header-Content-Length: " + std::to_string(body.size()) + "\r\n";
    body.append(static_cast<const char*>(rows.raw()), rows.bytes());
    EXPECT_EQ(client.post("/v2/models/" + name + "/infer", body, header).status, 200);
  };
  uint64_t seed = 100;
  const bool learnt = wait_until([&] {
    for (const char* name : {"a", "b"}) ask(name, ++seed);
    return net("a").is_string() && net("a") != "" && net("b").is_string() && net("b") != "";
  });
  EXPECT_TRUE(learnt) << status(client, "a")["turn"] << status(client, "b")["turn"];
  EXPECT_TRUE(contains(client.get("/metrics").body, "limber_learning_turn{model=\"a\",version=\"1\"} "));
  const auto outcome = server.stop();
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  ASSERT_EQ(outcome->adaptations.size(), 2U);
  for (const auto& one : outcome->adaptations) EXPECT_GE(one.followed->adapted, 1U) << one.model;

  const auto records = read_records(job_.record);
  ASSERT_TRUE(records.ok()) << records.status().message();
  std::vector<std::string> order;  // of turns: one ends before another begins
  for (const RecordLine& line : records->lines) {
    if (!line.is<TurnRecord>()) continue;
    const TurnRecord turn = *line.as<TurnRecord>();
    if (turn.learns) {
      EXPECT_TRUE(order.empty()) << order[0] << " has a turn, and " << turn.model << " gets one";
      EXPECT_GT(turn.cores, 0);
      order.push_back(turn.model);
    } else {
      std::erase(order, turn.model);
    }
  }
}

TEST_F(ServeAppsTest, AFileThatChangesIsServed) {
  write(two());
  ServedJob server(job_);
  ASSERT_TRUE(server.ready());
  others_answer(server.port(), "a", [&] {
    Client client(server.port());
    // One goes, one comes.
    write_again(app_text("a", "first.onnx") + app_text("c", "second.onnx"));
    EXPECT_TRUE(wait_until([&] { return client.get("/v2/models/c").status == 200; }));
    EXPECT_EQ(client.get("/v2/models/b").status, 404);
    // What only the schedule goes by changes without a new server.
    write_again(app_text("a", "first.onnx", "importance = 7") + app_text("c", "first.onnx"));
    EXPECT_TRUE(wait_until([&] {
      const auto a = status(client, "a");
      return a.contains("turn") && a["turn"]["importance"] == 7;
    }));
  });
  Client client(server.port());
  const BinaryRequest request = binary_request(test::served_input(client, "a"));
  EXPECT_TRUE(wait_until([&] { return answer(client, "c", request) == answer(client, "a", request); }))
      << "c is another model now";
}

// Notes may be asked for while the job runs.
class HeardNotes final : public JobObserver {
 public:
  void on_note(NoteKind, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    notes_ += text + "\n";
  }
  bool has(const std::string& part) const {
    const std::lock_guard lock(mutex_);
    return contains(notes_, part);
  }

 private:
  mutable std::mutex mutex_;
  std::string notes_;
};

TEST_F(ServeAppsTest, AFileThatIsWrongChangesNothingAndSaysWhy) {
  write(two());
  HeardNotes heard;
  std::atomic<bool> stop = false;
  std::atomic<int> port = 0;
  std::thread server([&] {
    const auto outcome = run_serve(job_, {.observer = &heard, .stop = &stop},
                                   [&](const Serving& serving) { port = serving.http_port; });
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  });
  EXPECT_TRUE(wait_until([&] { return port != 0; }));
  write_again(two() + "latency = 20\n");
  EXPECT_TRUE(wait_until([&] { return heard.has("apps.toml:9: app 'b': latency is 20; expected a time"); }));
  EXPECT_TRUE(heard.has("; nothing changes"));
  for (const char* name : {"a", "b"})
    EXPECT_EQ(Client(static_cast<uint16_t>(port)).get(std::string("/v2/models/") + name).status, 200) << name;
  // That the file is another is noticed by itself, too.
  write(two() + app_text("c", "first.onnx"));
  EXPECT_TRUE(wait_until([&] { return heard.has("c was added"); }));
  stop = true;
  server.join();
}

TEST_F(ServeAppsTest, AModelThatCannotBeLoadedLeavesTheOthersAlone) {
  EXPECT_TRUE(os_files().write(folder_ / "broken.onnx", "this is no model").ok());
  write(app_text("a", "first.onnx") + app_text("broken", "broken.onnx"));
  ServedJob server(job_);
  ASSERT_TRUE(server.ready());
  EXPECT_TRUE(contains(server.notes(), "broken is not served")) << server.notes();
  others_answer(server.port(), "a", [&] {
    Client client(server.port());
    EXPECT_EQ(client.get("/v2/models/broken/ready").status, 503);
    // And one that is made worse keeps answering as it did.
    const BinaryRequest request = binary_request(test::served_input(client, "a"));
    write_again(app_text("a", "first.onnx") + app_text("b", "second.onnx"));
    ASSERT_TRUE(wait_until([&] { return !answer(client, "b", request).empty(); }));
    const std::string before = answer(client, "b", request);
    write_again(app_text("a", "first.onnx") + app_text("b", "broken.onnx") + app_text("c", "first.onnx"));
    ASSERT_TRUE(wait_until([&] { return !answer(client, "c", request).empty(); }));
    EXPECT_EQ(answer(client, "b", request), before);
  });
}

// No normalisation, of which "bn" learns the statistics.
constexpr std::string_view kNothingToAdapt = R"(graph "plain" {
  input %x: f32[N,3,16,16]
  param %w: f32[3,3]
  %p: f32[N,3,1,1] = GlobalAveragePool(%x)
  %f: f32[N,3] = Reshape(%p) {shape=<N,3>}
  %y: f32[N,3] = Gemm(%f, %w) {trans_b=1} "head"
  output %y as "logits"
}
)";

TEST_F(ServeAppsTest, LearningThatFailsLeavesTheOthersAlone) {
  write_tinted_apps();
  test::write_classes(folder_, {"one", "two", "three"}, 40);  // other classes than the model's, and too small
  const std::string text = *os_files().read(job_.apps, 1 << 20);
  EXPECT_TRUE(
      os_files().write(folder_ / "own.onnx", *os_files().read(folder_ / "tinted.onnx", 1 << 20)).ok());
  write(text + app_text("c", "first.onnx", "adapt = \"bn\"\nadapt_data = \"images\"\n") +
        app_text("d", "own.onnx", "adapt = \"bn\"\nadapt_data = \"pixels.npy,labels.npy\"\n"));
  ServedJob server(job_);
  ASSERT_TRUE(server.ready());
  others_answer(server.port(), "c", [&] {
    Client client(server.port());
    EXPECT_TRUE(wait_until([&] { return status(client, "a")["adaptation"]["state"] == "following"; }));
    EXPECT_FALSE(status(client, "c").contains("adaptation"));
    // A model that becomes one that nobody can follow.
    const BinaryRequest other = binary_request(test::served_input(client, "d"));
    const auto why = [&] {
      const auto d = status(client, "d");
      return d.contains("turn") ? d["turn"].value("why", "") : "";
    };
    EXPECT_TRUE(wait_until([&] { return status(client, "d")["adaptation"]["state"] == "following"; }));
    EXPECT_NE(why(), "does not adapt");
    test::write_tiny(folder_, "own.onnx", 1, kNothingToAdapt);
    EXPECT_EQ(client.post("/v2/repository/models/d/load", "").status, 200);
    EXPECT_TRUE(wait_until([&] { return why() == "does not adapt"; })) << why();
    EXPECT_FALSE(answer(client, "d", other).empty()) << "it answers all the same";
  });
  ASSERT_TRUE(server.stop().ok());
  EXPECT_TRUE(contains(server.notes(), "c is served, and adapts not")) << server.notes();
}

TEST_F(ServeAppsTest, WhoFloodsItsQueueIsRefusedAndTheOthersAnswer) {
  job_.serving.queue_limit = 2;
  write(two());
  ServedJob server(job_);
  ASSERT_TRUE(server.ready());
  std::atomic<int> odd = 0;
  others_answer(server.port(), "a", [&] {
    std::vector<std::thread> flood;
    for (int i = 0; i < 12; ++i)
      flood.emplace_back([&] {
        Client client(server.port());
        const BinaryRequest request = binary_request(test::served_input(client, "b"), 20);
        for (int k = 0; k < 15; ++k) {
          const Reply reply = client.post("/v2/models/b/infer", request.body, request.header);
          if (reply.status != 200 && reply.status != 429) ++odd;
        }
      });
    for (std::thread& one : flood) one.join();
  });
  EXPECT_EQ(odd, 0);
}

TEST_F(ServeAppsTest, WhoIsRemovedUnderLoadDrainsAndTheOthersAnswer) {
  write_tinted_apps();
  const std::string all = app_text("other", "first.onnx") + *os_files().read(job_.apps, 1 << 20);
  write(all);
  ServedJob server(job_);
  ASSERT_TRUE(server.ready());
  std::atomic<int> odd = 0;
  others_answer(server.port(), "other", [&] {
    std::atomic<bool> over = false;
    std::vector<std::thread> load;
    for (int i = 0; i < 3; ++i)
      load.emplace_back([&] {
        Client client(server.port());
        const BinaryRequest request = binary_request({"x", {1, 3, 16, 16}, 3 * 16 * 16}, 20);
        while (!over) {
          const Reply reply = client.post("/v2/models/b/infer", request.body, request.header);
          // Answered, or not there, or not there yet.
          if (reply.status != 200 && reply.status != 404 && reply.status != 503) ++odd;
        }
      });
    Client client(server.port());
    for (int round = 0; round < 2; ++round) {
      write_again(all.substr(0, all.rfind("[[app]]")));
      EXPECT_TRUE(wait_until([&] { return client.get("/v2/models/b").status == 404; }));
      write_again(all);
      EXPECT_TRUE(wait_until([&] { return client.get("/v2/models/b").status == 200; }));
    }
    over = true;
    for (std::thread& one : load) one.join();
  });
  EXPECT_EQ(odd, 0);
  EXPECT_TRUE(server.stop().ok());
}

TEST_F(ServeAppsTest, WhatTheFileDecidesIsNotSaidBesideIt) {
  write(two());
  const auto said = [&](auto change) {
    ServeJobOptions job = job_;
    change(job);
    const auto outcome = run_serve(job, {});
    EXPECT_FALSE(outcome.ok());
    return outcome.status().message();
  };
  const std::string file = job_.apps;
  EXPECT_EQ(said([](auto& j) { j.model = "builtin:resnet8"; }),
            "model is said in " + file + ", of each application; leave it out here");
  EXPECT_TRUE(contains(said([](auto& j) { j.name = "x"; }), "name is said in"));
  EXPECT_TRUE(contains(said([](auto& j) { j.serving.governor.budget_s = 1; }), "latency"));
  EXPECT_TRUE(contains(said([](auto& j) { j.image.crop = 3; }), "images"));
  EXPECT_TRUE(contains(said([](auto& j) { j.exits = true; }), "without exits"));
  EXPECT_TRUE(contains(said([](auto& j) { j.adapt.share = 0; }), "share of 0"));
  EXPECT_TRUE(contains(said([](auto& j) { j.apps = "/nowhere.toml"; }), "/nowhere.toml"));
}

}  // namespace
}  // namespace limber
