// Networks made by code with seeded weights, so that everything can be tried without a file. Untrained:
// their answers mean nothing, their structure and cost are real.
#pragma once

#include <string_view>
#include <vector>

#include "ir/model.h"

namespace limber {

struct BuiltinModel {
  std::string_view name;
  std::string_view summary;
  Model (*make)();
};

const std::vector<BuiltinModel>& builtin_list();
// kNotFound names those there are.
Result<Model> make_builtin(std::string_view name);

}  // namespace limber
