// A small elastic model, ready to be served: the original and a few variants, the slower ones the better.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "backend/ref/ref_backend.h"
#include "serve/served_model.h"
#include "tests/variant/random_elastic.h"

namespace limber::test {

// The first seed from `seed` on whose model has several variants without exits.
inline ServedSource elastic_source(uint64_t seed, size_t count = 4) {
  ServedSource source;
  for (;; ++seed) {
    auto model = std::make_shared<ElasticModel>(random_elastic(seed));
    Random random(seed);
    std::map<std::string, Variant> variants{{"original", original_variant(*model)}};
    for (int i = 0; i < 200 && variants.size() < count; ++i) {
      Variant variant = random_variant(*model, random);
      variant.exit = -1;
      variant.confidence = 0;
      variants.emplace(print(*model, variant), variant);
    }
    if (variants.size() < count) continue;
    source.name = "m";
    source.graph = model->base;
    source.params = model->params;
    source.variants.push_back({"original", variants.at("original"), {0.010, 0, 0, 0.95}});
    variants.erase("original");
    for (const auto& [name, variant] : variants) {
      const double share = 1.0 - 0.2 * static_cast<double>(source.variants.size());
      source.variants.push_back({name, variant, {0.010 * share, 0, 0, 0.95 * share}});
    }
    source.elastic = std::move(model);
    return source;
  }
}

inline std::vector<std::shared_ptr<Backend>> served_backends() { return {make_ref_backend()}; }

// What each variant answers, by its name.
inline std::map<std::string, std::string> answers_of(const ServedSource& source, const Tensor& images) {
  std::map<std::string, std::string> answers;
  for (const ServedVariant& one : source.variants)
    answers[one.name] = bytes_of(run_on(*materialize(*source.elastic, one.variant), *source.params, images));
  return answers;
}

inline InferRequest request_for(const ServedSource& source, const Tensor& images) {
  InferRequest request;
  request.model = source.name;
  request.inputs.push_back({source.graph.value(source.graph.inputs()[0]).name, images, {}});
  return request;
}

// Waits for the answer.
template <typename Service>
InferResponse ask(Service& service, InferRequest request) {
  std::mutex mutex;
  std::condition_variable arrived;
  std::optional<InferResponse> response;
  service.infer(std::move(request), [&](InferResponse done) {
    const std::lock_guard lock(mutex);
    response = std::move(done);
    arrived.notify_one();
  });
  std::unique_lock lock(mutex);
  arrived.wait(lock, [&] { return response.has_value(); });
  return *std::move(response);
}

}  // namespace limber::test
