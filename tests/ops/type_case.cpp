#include "tests/ops/type_case.h"

#include <gtest/gtest.h>

namespace limber::testing {

Shape dims(std::string_view list) {
  Shape shape;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const auto dim = parse_dim(list.substr(0, comma));
    LIMBER_ASSERT(dim.has_value());
    shape.push_back(*dim);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return shape;
}

TensorType parse_type(std::string_view text) {
  const size_t open = text.find('[');
  LIMBER_ASSERT(open != std::string_view::npos && text.back() == ']');
  const auto dtype = parse_dtype(text.substr(0, open));
  LIMBER_ASSERT(dtype.has_value());
  return {*dtype, dims(text.substr(open + 1, text.size() - open - 2))};
}

Result<std::vector<TensorType>> infer(OpKind op, const std::vector<std::string>& inputs, const Attrs& attrs,
                                      int num_outputs) {
  Graph graph;
  std::vector<ValueId> values;
  for (const std::string& input : inputs) {
    values.push_back(input == "_" ? kNoValue : graph.add_input("x", parse_type(input)));
  }
  return infer_types(graph, op, values, attrs, num_outputs);
}

void expect_types(const std::vector<TypeCase>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const TypeCase& c = cases[i];
    SCOPED_TRACE(
        fmt::format("case {}: {} of {}", i, op_name(c.op), c.inputs.empty() ? "nothing" : c.inputs[0]));
    const auto types = infer(c.op, c.inputs, c.attrs, static_cast<int>(c.outputs.size()));
    if (!types.ok()) {
      ADD_FAILURE() << types.status().message();
      continue;
    }
    ASSERT_EQ(types->size(), c.outputs.size());
    for (size_t o = 0; o < c.outputs.size(); ++o) EXPECT_EQ((*types)[o].to_string(), c.outputs[o]);
  }
}

void expect_failures(const std::vector<BadCase>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const BadCase& c = cases[i];
    SCOPED_TRACE(fmt::format("case {}: {}, expecting '{}'", i, op_name(c.op), c.message));
    const auto types = infer(c.op, c.inputs, c.attrs, c.num_outputs);
    if (types.ok()) {
      ADD_FAILURE() << "accepted";
      continue;
    }
    const std::string message = types.status().message();
    EXPECT_NE(message.find(c.message), std::string::npos) << message;
    EXPECT_EQ(message.rfind(op_name(c.op), 0), 0u) << message;
  }
}

}  // namespace limber::testing
