// What comes with an elastic model, by the first byte: (m)anifest, (v)ariant, (t)able.
// What is read can be written, and then reads as the same.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "ops/op_def.h"
#include "variant/elastic_manifest.h"
#include "variant/variant_table.h"

namespace {

using namespace limber;

void manifest(std::string_view text) {
  const auto read = parse_elastic_manifest(text);
  if (read.ok()) LIMBER_ASSERT(format_elastic_manifest(*read) == text);
}

const ElasticModel& model() {
  static const ElasticModel* model = [] {
    auto* made = new ElasticModel;
    made->params = std::make_shared<Parameters>();
    Graph graph;
    graph.add_output(*emit(graph, OpKind::kRelu, {graph.add_input("x", {DType::kF32, Shape{1, 4}})}), "y");
    made->base = graph;
    for (const char* block : {"a", "b.1", "/c,=@", "d"})
      made->blocks.push_back({block, {{"original", 1, graph}, {"skip", 1, graph}, {"x%?", 1, graph}}});
    made->blocks[1].alternatives.push_back({"merge2", 2, graph});
    made->exits = {{"e", 1, graph}, {"f g", 3, graph}};
    return made;
  }();
  return *model;
}

void variant(std::string_view text) {
  static_cast<void>(parse_positions(model(), text));
  const auto read = parse_variant(model(), text);
  if (!read.ok()) return;
  const auto again = parse_variant(model(), print(model(), *read));
  LIMBER_ASSERT(again.ok() && *again == *read);
}

void table(std::string_view text) {
  static const std::string path =
      fmt::format("{}/fuzz_elastic.{}.db", std::filesystem::temp_directory_path().string(), ::getpid());
  std::filesystem::remove(path + "-journal");
  std::ofstream(path, std::ios::binary) << text;
  if (auto table = VariantTable::open(path, model()); table.ok()) {
    VariantRecord record{.group = {"cpu", "images"}, .variant = original_variant(model())};
    if ((*table)->put(record).ok()) static_cast<void>((*table)->index().ok());
  }
  std::filesystem::remove(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'm':
      manifest(text);
      break;
    case 'v':
      variant(text);
      break;
    case 't':
      table(text);
      break;
  }
  return 0;
}
