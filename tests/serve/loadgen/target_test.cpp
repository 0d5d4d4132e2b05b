#include "serve/loadgen/target.h"

#include <gtest/gtest.h>

#include "serve/loadgen/request.h"
#include "tests/serve/fake_server.h"

namespace limber {
namespace {

using test::FakeModel;
using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;

TEST(LoadTarget, UrlsAreRead) {
  const auto whole = parse_url("http://example:9000/");
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->authority(), "example:9000");
  EXPECT_EQ(parse_url("localhost")->authority(), "localhost:8000");
  EXPECT_EQ(parse_url("[::1]:80")->authority(), "[::1]:80");
  EXPECT_EQ(parse_url("http://[::1]")->authority(), "[::1]:8000");
  EXPECT_EQ(parse_url("https://a").status().code(), Code::kUnsupported);
  for (const char* url : {"", "http://", "a:", "a:0", "a:65536", "a:x", "a:80/path", "[::1", "[::1]80",
                          "a b:80", "user@host:80", "a\r\nb:80"})
    EXPECT_EQ(parse_url(url).status().code(), Code::kInvalidArgument) << url;
}

TEST(LoadTarget, NamesOfModelsBecomePaths) {
  LoadTarget target{.model = "a model/1"};
  EXPECT_EQ(target.model_path(), "/v2/models/a%20model%2F1");
  target.version = "3";
  EXPECT_EQ(target.model_path(), "/v2/models/a%20model%2F1/versions/3");
}

TEST(LoadTarget, AsksTheServerForItsModel) {
  const FakeServer server{FakeModel()};
  LoadTarget target = *parse_url(server.url());
  const auto name = only_model(target, 5);
  ASSERT_TRUE(name.ok()) << name.status().message();
  EXPECT_EQ(*name, "m");
  target.model = *name;
  const auto model = fetch_metadata(target, 5);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ(model->inputs.size(), 1U);
  EXPECT_EQ(model->inputs[0].name, "x");
  EXPECT_EQ(model->inputs[0].dtype, DType::kF32);
  EXPECT_EQ(model->inputs[0].shape, (std::vector<int64_t>{-1, 4}));
  target.model = "other";
  const Status missing = fetch_metadata(target, 5).status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.message().find("no such path"), std::string::npos) << missing.message();
}

TEST(LoadTarget, SeveralModelsNeedAName) {
  const FakeServer server(
      [](const FakeRequest&) { return FakeReply{.body = R"([{"name":"a"},{"name":"b"}])"}; });
  const Status status = only_model(*parse_url(server.url()), 5).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("2 models: a, b"), std::string::npos) << status.message();
}

TEST(LoadTarget, NobodyThereIsAnErrorThatSaysSo) {
  uint16_t port = 0;
  {
    const FakeServer gone{FakeModel()};
    port = gone.port();
  }
  const LoadTarget target{.port = port, .model = "m"};
  const Status status = fetch_metadata(target, 5).status();
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("is the server running?"), std::string::npos) << status.message();
}

TEST(LoadTarget, MetadataThatMakeNoSenseAreCorrupt) {
  const std::string good = FakeModel().metadata().body;
  EXPECT_TRUE(parse_metadata(good).ok());
  for (const char* text : {"", "[]", "{}", R"({"inputs":[],"outputs":[]})", R"({"inputs":[{}],"outputs":[]})",
                           R"({"inputs":[{"name":"x","datatype":"FP32","shape":["a"]}],"outputs":[]})",
                           R"({"inputs":[{"name":1,"datatype":"FP32","shape":[1]}],"outputs":[]})"})
    EXPECT_EQ(parse_metadata(text).status().code(), Code::kCorrupt) << text;
  EXPECT_EQ(parse_metadata(R"({"inputs":[{"name":"x","datatype":"BYTES","shape":[1]}],"outputs":[]})")
                .status()
                .code(),
            Code::kUnsupported);
}

TEST(LoadTarget, RandomRowsFitTheModel) {
  ModelMetadata model;
  for (int i = 0; i < kDTypeCount; ++i)
    model.inputs.push_back({fmt::format("x{}", i), static_cast<DType>(i), {-1, 3, 2}});
  const auto rows = random_rows(model, 2, 1);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 2U);
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const Tensor& tensor = (*rows)[0].inputs[i];
    EXPECT_EQ(tensor.dtype(), model.inputs[i].dtype);
    EXPECT_EQ(tensor.elements(), 6);
    EXPECT_EQ(*parse_protocol_name(protocol_name(tensor.dtype())), tensor.dtype());
    if (is_float(tensor.dtype())) continue;
    for (int64_t k = 0; k < 6; ++k) EXPECT_LE(element_as_int(tensor, k), 1);
  }
  EXPECT_NE((*rows)[0].inputs[0].data<float>()[0], (*rows)[1].inputs[0].data<float>()[0]);
  model.inputs[0].shape = {1 << 20, 1 << 20};
  EXPECT_EQ(random_rows(model, 1, 1).status().code(), Code::kUnsupported);
}

// Answers come from strangers.
TEST(LoadTarget, AnswersThatMakeNoSenseAreSeen) {
  for (const char* body : {"", "[]", "{}", R"({"outputs":1})", "\xff\xfe"})
    EXPECT_FALSE(parse_answer(body, 0).readable) << body;
  EXPECT_FALSE(parse_answer(R"({"outputs":[]})", 1000).readable) << "the JSON ends before it should";
  for (const char* body :
       {R"({"outputs":[]})", R"({"outputs":[7]})", R"({"outputs":[{"shape":[1,4]}]})",
        R"({"outputs":[{"shape":[1,4],"data":[1,2]}]})", R"({"outputs":[{"shape":[1,2],"data":["a",2]}]})",
        R"({"outputs":[{"shape":[1,1e30],"datatype":"FP32"}]})"}) {
    const ParsedAnswer answer = parse_answer(body, 0);
    EXPECT_TRUE(answer.readable) << body;
    EXPECT_EQ(answer.predicted, -1) << body;
  }
  const ParsedAnswer answer = parse_answer(
      R"({"id":"7","parameters":{"variant":"v"},"outputs":[{"shape":[1,3],"data":[0.5,2,-1]}]})", 0);
  EXPECT_EQ(answer.predicted, 1);
  EXPECT_EQ(answer.id, "7");
  EXPECT_EQ(answer.variant, "v");
}

}  // namespace
}  // namespace limber
