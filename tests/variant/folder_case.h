// Elastic models in folders, and what tests look at there.
#pragma once

#include "tests/data/files.h"
#include "tests/variant/random_elastic.h"
#include "variant/elastic_folder.h"

namespace limber::test {

inline ElasticInfo some_info(const std::string& phase = "1") {
  ElasticInfo info;
  info.classes = {"circle", "r\"ing", "Ü"};
  info.input.height = info.input.width = 8;
  info.input.resize = 12;
  info.input.normalisation.mean = {0.1F, 0.2F, 0.3F};
  info.notes = {{"phase", phase}, {"search", "{\"seed\": 7}\n"}};
  return info;
}

// Has alternatives over several blocks, exits, states, and constants that are stored beside the text.
inline ElasticModel some_model() {
  for (uint64_t seed = 0;; ++seed) {
    ElasticModel model = random_elastic(seed);
    bool spans = false, constants = false;
    for (const Block& block : model.blocks) {
      for (const Alternative& a : block.alternatives) {
        spans = spans || a.span > 1;
        for (const Value& v : a.graph.values())
          constants = constants || (v.role == Role::kConstant && v.constant.elements() > 64);
      }
    }
    if (spans && constants && !model.exits.empty()) return model;
  }
}

inline std::map<std::string, std::string> weights_of(const ElasticModel& model) {
  std::map<std::string, std::string> bytes;
  for (const std::string& name : model.params->names()) bytes[name] = bytes_of(*model.params->get(name));
  return bytes;
}

inline void expect_equal(const ElasticModel& a, const ElasticModel& b) {
  EXPECT_EQ(print(a.base), print(b.base));
  EXPECT_EQ(hash(a.base), hash(b.base));
  ASSERT_EQ(a.blocks.size(), b.blocks.size());
  for (size_t i = 0; i < a.blocks.size(); ++i) {
    EXPECT_EQ(a.blocks[i].name, b.blocks[i].name);
    ASSERT_EQ(a.blocks[i].alternatives.size(), b.blocks[i].alternatives.size());
    for (size_t k = 0; k < a.blocks[i].alternatives.size(); ++k) {
      const Alternative &x = a.blocks[i].alternatives[k], &y = b.blocks[i].alternatives[k];
      EXPECT_EQ(std::tie(x.name, x.span, x.error), std::tie(y.name, y.span, y.error));
      EXPECT_EQ(hash(x.graph), hash(y.graph));
      EXPECT_EQ(print(x.graph), print(y.graph));
    }
  }
  ASSERT_EQ(a.exits.size(), b.exits.size());
  for (size_t i = 0; i < a.exits.size(); ++i) {
    EXPECT_EQ(std::tie(a.exits[i].name, a.exits[i].after), std::tie(b.exits[i].name, b.exits[i].after));
    EXPECT_EQ(hash(a.exits[i].graph), hash(b.exits[i].graph));
  }
  EXPECT_TRUE(weights_of(a) == weights_of(b));
}

inline std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The file of this kind: "base", "graphs", "alternatives".
inline std::string part_in(const std::string& folder, const std::string& kind) {
  for (const std::string& name : entries(folder)) {
    if (name.starts_with(kind + "-")) return folder + "/" + name;
  }
  return {};
}

inline std::string read_all(const std::string& path) { return *os_files().read(path, size_t{1} << 26); }

inline void change_weight(ElasticModel& model, const std::string& name, float value) {
  Tensor tensor = *model.params->writable(name);
  tensor.data<float>()[0] = value;
  model.params->mark_changed(std::span(&name, 1));
}

// A parameter that only an alternative or exit has.
inline std::string extra_parameter(const ElasticModel& model) {
  const auto base = parameters_of(model.base);
  for (const std::string& name : model.params->names()) {
    if (!std::binary_search(base.begin(), base.end(), name)) return name;
  }
  return {};
}

}  // namespace limber::test
