// Type rules as tables: input types, attributes, and what comes out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/op_def.h"

namespace limber::testing {

// Types are written as TensorType prints them ("f32[N,3,8,8]"), "_" is an absent input.
struct TypeCase {
  OpKind op;
  std::vector<std::string> inputs;
  Attrs attrs;
  std::vector<std::string> outputs;
};

struct BadCase {
  OpKind op;
  std::vector<std::string> inputs;
  Attrs attrs;
  std::string message;  // a part of it
  int num_outputs = 1;
};

TensorType parse_type(std::string_view text);
Result<std::vector<TensorType>> infer(OpKind op, const std::vector<std::string>& inputs, const Attrs& attrs,
                                      int num_outputs);
void expect_types(const std::vector<TypeCase>& cases);
void expect_failures(const std::vector<BadCase>& cases);

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
inline int64_t num(int64_t value) { return value; }
inline std::string text(std::string_view value) { return std::string(value); }
Shape dims(std::string_view comma_separated);

}  // namespace limber::testing
