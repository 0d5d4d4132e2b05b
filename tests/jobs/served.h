// A server that runs in the test's own process, models for it, and clients that are not ours where that can
// be.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "jobs/elastic_work.h"
#include "jobs/serve_job.h"
#include "tests/jobs/tiny.h"
#include "tests/serve/elastic_source.h"
#include "tests/serve/http/client.h"
#include "variant/elastic_folder.h"
#include "variant/variant_table.h"

namespace limber::test {

// Debian's gRPC is not instrumented: ThreadSanitizer sees none of its locks.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kWithGrpc = false;
#else
inline constexpr bool kWithGrpc = true;
#endif

inline ServeJobOptions serve_options(const std::string& model) {
  ServeJobOptions job;
  job.model = model;
  job.http.port = 0;
  job.grpc.port = 0;
  job.with_grpc = kWithGrpc;
  job.workers = 2;
  job.serving.least_share = 0;  // all variants, however they were judged
  job.tune_cache.clear();
  return job;
}

// Runs the job on a thread of its own. Use from one thread.
class ServedJob {
 public:
  explicit ServedJob(const ServeJobOptions& job)
      : thread_([this, job] {
          auto outcome = run_serve(job, listener_.control(), [this](const Serving& serving) {
            const std::lock_guard lock(mutex_);
            serving_ = serving;
            changed_.notify_all();
          });
          const std::lock_guard lock(mutex_);
          outcome_.emplace(std::move(outcome));
          changed_.notify_all();
        }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return serving_ || outcome_; });
    EXPECT_TRUE(serving_.has_value()) << outcome_->status().message();
  }
  ~ServedJob() {
    if (thread_.joinable()) (void)stop();
  }

  bool ready() const { return serving_.has_value(); }
  const Serving& serving() const { return *serving_; }
  uint16_t port() const { return serving_ ? serving_->http_port : 0; }
  Result<ServeOutcome> stop() {
    ask_to_stop();
    thread_.join();
    return *outcome_;
  }
  void ask_to_stop() { listener_.stop = true; }
  const std::string& notes() const { return listener_.notes; }  // before it is ready, or when it has ended

 private:
  Listener listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Serving> serving_;
  std::optional<Result<ServeOutcome>> outcome_;
  std::thread thread_;
};

// An elastic model with the original and three variants that were judged on this machine, the original by
// far the best. Returns its folder; `names` are the variants, the original first.
inline std::string write_served(const std::string& path, std::vector<std::string>* names = nullptr) {
  const ServedSource source = elastic_source(1);
  ElasticInfo info;
  info.input.height = info.input.width = 8;
  info.classes = {"a", "b", "c", "d", "e"};
  EXPECT_TRUE(save_elastic(path, *source.elastic, info).ok());
  auto table = VariantTable::open(variants_in(path), *source.elastic);
  EXPECT_TRUE(table.ok()) << table.status().message();
  for (const ServedVariant& one : source.variants) {
    VariantRecord record;
    record.group = {machine_context(1), "20 images"};
    record.variant = canonical(*source.elastic, one.variant);
    record.predicted_s = one.point.latency_s;
    record.accuracy = one.point.accuracy;
    record.images = 20;
    const Status status = (*table)->put(record);
    EXPECT_TRUE(status.ok()) << status.message();
    if (names != nullptr) names->push_back(print(*source.elastic, one.variant));
  }
  return path;
}

inline nlohmann::json json_body(const Reply& reply) {
  return nlohmann::json::parse(reply.body, nullptr, false);
}

// What a model takes, as it says itself.
struct ServedInput {
  std::string name;
  std::vector<int64_t> shape;  // of one row
  size_t elements = 1;
};
inline ServedInput served_input(Client& client, const std::string& model, const std::string& headers = "") {
  const auto metadata = json_body(client.get("/v2/models/" + model, headers));
  ServedInput input;
  if (!metadata.is_object() || !metadata.contains("inputs")) {
    ADD_FAILURE() << "no metadata of " << model;
    return input;
  }
  input.name = metadata["inputs"][0]["name"];
  input.shape = metadata["inputs"][0]["shape"].get<std::vector<int64_t>>();
  for (int64_t& dim : input.shape) input.elements *= static_cast<size_t>(dim = std::max<int64_t>(dim, 1));
  return input;
}

// A request for `rows` rows of numbers behind the JSON, as its body and the header that goes with it.
struct BinaryRequest {
  std::string body, header;
};
inline BinaryRequest binary_request(ServedInput input, int64_t rows = 1) {
  input.shape[0] = rows;
  std::vector<float> values(input.elements * static_cast<size_t>(rows));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 17;
  const size_t bytes = values.size() * sizeof(float);
  const nlohmann::json json = {{"inputs",
                                {{{"name", input.name},
                                  {"datatype", "FP32"},
                                  {"shape", input.shape},
                                  {"parameters", {{"binary_data_size", bytes}}}}}},
                               {"parameters", {{"binary_data_output", true}}}};
  BinaryRequest request{json.dump(), {}};
  request.header = "Inference-Header-Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  request.body.append(reinterpret_cast<const char*>(values.data()), bytes);
  return request;
}

// The numbers behind the JSON of an answer.
inline std::string binary_output(const Reply& reply) {
  const std::string head = reply.header("Inference-Header-Content-Length");
  return head.empty() ? "" : reply.body.substr(std::stoul(head));
}

}  // namespace limber::test
