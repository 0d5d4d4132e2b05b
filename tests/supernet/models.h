// The models that supernet tests run on: built-in ones, and files where they are.
#pragma once

#include <gtest/gtest.h>

#include "io/builtin_models.h"
#include "io/onnx.h"
#include "tests/models/model_file.h"
#include "tests/runtime/net.h"

namespace limber::test {

// "builtin:NAME" or the name of a file; nullopt when there is no such file here.
inline std::optional<Model> load_model(const std::string& name) {
  constexpr std::string_view kBuiltin = "builtin:";
  const bool builtin = name.starts_with(kBuiltin);
  const std::filesystem::path path = builtin ? "" : find_model(name);
  if (!builtin && path.empty()) return std::nullopt;
  auto model = builtin ? make_builtin(name.substr(kBuiltin.size())) : import_onnx(path.string());
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? std::optional(*std::move(model)) : std::nullopt;
}

inline std::string test_name(std::string_view model) {
  std::string name;
  for (const char c : model) name += c == '-' ? "__" : std::string(1, c == ':' ? '_' : c);
  return name;
}

// The output for a seeded input of `batch` samples.
inline Tensor run_graph(const Graph& graph, const std::shared_ptr<Parameters>& params, int64_t batch = 1) {
  const CompileSettings options = batch_settings(graph, batch, 1);
  const auto session = make_session(Net{graph, params}, cpu_backends(), options);
  if (!session) return {};
  fill_inputs(*session, 7);
  const Status status = session->run();
  EXPECT_TRUE(status.ok()) << status.message();
  auto output = session->output(0).copy();
  return output.ok() ? *output : Tensor();
}

}  // namespace limber::test
