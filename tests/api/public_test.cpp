// The public API, through its own headers only.
#include <gtest/gtest.h>
#include <limber/limber.h>

#include <algorithm>
#include <thread>

namespace {

limber::Session compiled(const std::string& name, const limber::CompileOptions& options = {.threads = 1}) {
  auto model = limber::Model::load(name);
  EXPECT_TRUE(model.ok()) << model.error().message();
  auto session = model->compile(options);
  EXPECT_TRUE(session.ok()) << session.error().message();
  return *std::move(session);
}

TEST(Model, DescribesItself) {
  const auto model = limber::Model::load("builtin:resnet8");
  ASSERT_TRUE(model.ok()) << model.error().message();
  ASSERT_EQ(model->inputs().size(), 1U);
  EXPECT_EQ(model->inputs()[0].name, "image");
  EXPECT_EQ(model->inputs()[0].dims, (std::vector<int64_t>{-1, 3, 32, 32}));
  EXPECT_EQ(model->inputs()[0].symbols[0], "N");
  EXPECT_EQ(model->outputs()[0].name, "logits");
  EXPECT_GT(model->parameter_count(), 70000);
}

TEST(Model, EveryBuiltinRuns) {
  for (const std::string& name : limber::builtin_models()) {
    limber::Session session = compiled("builtin:" + name);
    std::ranges::fill(session.inputs()[0].as<float>(), 0.5F);
    const limber::Error error = session.run();
    ASSERT_TRUE(error.ok()) << name << error.message();
    const auto scores = session.outputs()[0].as<float>();
    ASSERT_FALSE(scores.empty());
    for (const float score : scores) EXPECT_TRUE(score > -1e4F && score < 1e4F) << name;
  }
}

TEST(Model, FailuresAreErrorsWithACode) {
  EXPECT_EQ(limber::Model::load("no/such.onnx").error().code(), limber::ErrorCode::kNotFound);
  EXPECT_EQ(limber::Model::load("builtin:nothing").error().code(), limber::ErrorCode::kNotFound);
  const std::byte rubbish[] = {std::byte{1}, std::byte{2}};
  const auto model = limber::Model::load_bytes(rubbish, "rubbish");
  EXPECT_FALSE(model.ok());
  EXPECT_NE(model.error().message().find("rubbish"), std::string::npos);
}

TEST(Session, BatchIsChosenAtCompileTime) {
  limber::Session session = compiled("builtin:resnet8", {.threads = 2, .batch = 3});
  EXPECT_EQ(session.inputs()[0].dims, (std::vector<int64_t>{3, 3, 32, 32}));
  EXPECT_EQ(session.outputs()[0].dims, (std::vector<int64_t>{3, 10}));
  EXPECT_EQ(session.threads(), 2);
  EXPECT_GT(session.working_bytes(), 0U);
}

TEST(Session, InputsAreFoundByName) {
  const limber::Session session = compiled("builtin:resnet8");
  EXPECT_TRUE(session.input("image").ok());
  EXPECT_EQ(session.input("imag").error().code(), limber::ErrorCode::kNotFound);
  EXPECT_NE(session.input("imag").error().message().find("Did you mean 'image'"), std::string::npos);
  EXPECT_TRUE(session.inputs()[0].as<double>().empty());
}

TEST(Session, ClonesRunAtTheSameTimeAndAgree) {
  limber::Session first = compiled("builtin:resnet8");
  std::vector<limber::Session> sessions;
  for (int i = 0; i < 3; ++i) {
    auto clone = first.clone();
    ASSERT_TRUE(clone.ok()) << clone.error().message();
    sessions.push_back(*std::move(clone));
  }
  sessions.push_back(std::move(first));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < sessions.size(); ++i) {
    threads.emplace_back([&session = sessions[i]] {
      std::ranges::fill(session.inputs()[0].as<float>(), 0.25F);
      for (int run = 0; run < 5; ++run) EXPECT_TRUE(session.run().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const limber::Session& session : sessions) {
    EXPECT_TRUE(std::ranges::equal(session.outputs()[0].as<float>(), sessions[0].outputs()[0].as<float>()));
  }
}

TEST(Session, OutlivesItsModel) {
  auto model = std::make_unique<limber::Model>(*limber::Model::load("builtin:resnet8"));
  auto session = model->compile({.threads = 1});
  model.reset();
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE(session->run().ok());
}

TEST(Elements, HaveSizesAndNames) {
  EXPECT_EQ(limber::element_size(limber::ElementType::kFloat16), 2U);
  EXPECT_EQ(limber::element_size(limber::ElementType::kInt64), 8U);
  EXPECT_STREQ(limber::element_name(limber::ElementType::kBool), "bool");
  EXPECT_FALSE(limber::version().empty());
}

}  // namespace
