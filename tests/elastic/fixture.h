// Training sessions on the networks that are made by code.
#pragma once

#include <gtest/gtest.h>

#include "io/builtin_models.h"
#include "tests/runtime/net.h"
#include "train/training_session.h"

namespace limber::test {

inline std::unique_ptr<TrainingSession> make_session(std::string_view builtin, int64_t batch = 2,
                                                     BatchNormMode mode = BatchNormMode::kBatch) {
  auto model = make_builtin(builtin);
  EXPECT_TRUE(model.ok()) << model.status().message();
  TrainingOptions options;
  options.step.batch = batch;
  options.step.batch_norm = mode;
  options.step.optimizer.effects = true;
  auto session = TrainingSession::create(model->graph, model->params, cpu_backends(), options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return *std::move(session);
}

}  // namespace limber::test
