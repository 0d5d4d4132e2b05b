// What tests of exits begin with.
#pragma once

#include <cstring>
#include <map>
#include <utility>

#include "data/synthetic.h"
#include "supernet/exits/exits.h"
#include "supernet/expand/expand.h"
#include "tests/supernet/models.h"
#include "train/evaluate.h"

namespace limber::exits_testing {

inline constexpr int64_t kExitBatch = 4;

inline ElasticModel make_elastic(const Model& model, const std::vector<std::string>& operators = {"skip"}) {
  auto elastic = expand(model.graph, model.params, {.operators = operators});
  EXPECT_TRUE(elastic.ok()) << elastic.status().message();
  return elastic.ok() ? *std::move(elastic) : ElasticModel();
}

inline Tensor noise(const ElasticModel& model, int64_t count, uint64_t seed) {
  Shape shape = model.base.type(model.base.inputs()[0]).shape;
  shape[0] = Dim(count);
  Tensor images = *Tensor::allocate({DType::kF32, shape});
  Random random(seed);
  for (float& x : images.data<float>()) x = static_cast<float>(random.normal());
  return images;
}

inline std::vector<float> run_variant(const ElasticModel& model, const Variant& variant,
                                      const Tensor& images) {
  const auto graph = materialize(model, variant);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  const CompileSettings options = batch_settings(*graph, images.shape().dim(0), 1);
  const auto session = test::make_session(test::Net{*graph, model.params}, test::cpu_backends(), options);
  std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
  EXPECT_TRUE(session->run().ok());
  const Tensor output = session->output(0);
  return {output.data<float>().begin(), output.data<float>().end()};
}

inline ElasticModel small_model() { return make_elastic(*make_builtin("resnet8")); }

inline EvaluationSet shapes(size_t count, int64_t batch, const Preprocess& input) {
  LoaderOptions how{.batch = batch, .shuffle = false, .workers = 0, .input = input, .augment = false};
  std::shared_ptr<const Dataset> data = *open_synthetic({.count = count, .split = Split::kTest});
  return *load_evaluation_set(**Loader::make(data, how));
}

struct Prepared {
  ElasticModel model = small_model();
  std::shared_ptr<const Dataset> data = *open_synthetic({.count = 128});
  EvaluationSet held = shapes(32, 16, {});
  ExitOptions options;
  std::map<std::string, Tensor> before;

  Prepared() {
    options.max_exits = 2;
    options.storage = 0.2;  // of a very small model
    options.teaching.seconds = 1.5;
    options.teaching.trainer.batch = 16;
    options.teaching.workers = 0;
    for (const std::string& name : model.params->names()) before[name] = *model.params->get(name)->copy();
  }
  void expect_model_as_it_was() const {
    for (const auto& [name, tensor] : before) {
      const Tensor now = *model.params->get(name);
      EXPECT_EQ(std::memcmp(now.raw(), tensor.raw(), tensor.bytes()), 0) << name;
    }
  }
  std::shared_ptr<ExitTargets> targets(double distill) const {
    return *ExitTargets::create(model, test::cpu_backends(),
                                {.batch = 32, .distill = distill, .samples = data->size()});
  }
  Result<ExitReport> add() { return add_exits(model, data, held, test::cpu_backends(), options); }
};

// Losses of the first and of the last epoch of a few.
inline std::pair<double, double> losses(ExitTeacher& teacher, const std::shared_ptr<const Dataset>& data,
                                        double rate) {
  LoaderOptions how{.batch = 32, .workers = 0, .drop_last = true};
  const auto loader = *Loader::make(data, how);
  double first = 0, last = 0;
  for (uint64_t epoch = 0; epoch < 6; ++epoch) {
    EXPECT_TRUE(loader->start_epoch(epoch).ok());
    double sum = 0;
    for (auto batch = loader->next(); batch.ok() && batch->size > 0; batch = loader->next()) {
      const auto loss = teacher.step(*batch, rate);
      EXPECT_TRUE(loss.ok()) << loss.status().message();
      sum += loss.ok() ? *loss : 0;
    }
    (epoch == 0 ? first : last) = sum;
  }
  return {first, last};
}

}  // namespace limber::exits_testing
