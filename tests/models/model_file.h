// The models that tests run on besides the built-in ones: those that tests/models/export.py writes, in
// $LIMBER_MODELS (build/models by default), and those of $LIMBER_SHARED/models (../shared by default), which
// only some machines have. REQUIRES: the test program defines LIMBER_ROOT.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace limber::test {

inline std::filesystem::path shared_models() {
  const char* shared = std::getenv("LIMBER_SHARED");
  return (shared != nullptr ? std::filesystem::path(shared)
                            : std::filesystem::path(LIMBER_ROOT) / "../shared") /
         "models";
}

inline std::filesystem::path exported_models() {
  const char* exported = std::getenv("LIMBER_MODELS");
  return exported != nullptr ? std::filesystem::path(exported)
                             : std::filesystem::path(LIMBER_ROOT) / "build/models";
}

// Empty when there is no such file.
inline std::filesystem::path find_model(const std::string& name) {
  for (const auto& folder : {exported_models(), shared_models()}) {
    if (std::filesystem::exists(folder / (name + ".onnx"))) return folder / (name + ".onnx");
  }
  return {};
}

}  // namespace limber::test
