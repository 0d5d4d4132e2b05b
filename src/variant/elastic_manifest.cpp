#include "variant/elastic_manifest.h"

#include <cmath>

#include "base/hash.h"
#include "base/sha256.h"
#include "io/json_fields.h"
#include "variant/elastic_model.h"

namespace limber {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "limber elastic model";
constexpr int kMaxDepth = 12;              // of nested JSON; ours has 7
constexpr size_t kMaxAlternatives = 1024;  // of one block
constexpr size_t kMaxExits = 1024;         // of all blocks together; models are given a few

// --- writing --------------------------------------------------------------------------------------------

ordered_json write_graph(const GraphRecord& graph) {
  ordered_json out = {{"bytes", graph.bytes}};
  if (graph.constants.empty()) return out;
  out["constants"] = ordered_json::object();
  for (const auto& [name, number] : graph.constants) out["constants"][name] = format_hex(number);
  return out;
}

ordered_json write_block(const BlockRecord& block) {
  ordered_json list = ordered_json::array();
  for (const AlternativeRecord& a : block.alternatives) {
    list.push_back({{"name", a.name}, {"span", a.span}, {"error", a.error}, {"graph", write_graph(a.graph)}});
  }
  return {{"name", block.name}, {"alternatives", std::move(list)}};
}

// --- reading --------------------------------------------------------------------------------------------

Status read_graph(const json& object, const std::string& where, GraphRecord& graph) {
  JsonFields in(object, where);
  int64_t bytes = 0;
  in.read("bytes", bytes, 0, INT64_MAX);
  LIMBER_TRY(in.status());
  graph.bytes = static_cast<uint64_t>(bytes);
  if (!object.contains("constants")) return {};
  const json& constants = object["constants"];
  if (!constants.is_object()) return corrupt("{}/'constants' is not an object", where);
  for (const auto& [name, number] : constants.items()) {
    if (!number.is_string() || !parse_hex(number.get_ref<const std::string&>(), graph.constants[name]))
      return corrupt("{}/constants/'{}' should be 16 hexadecimal digits", where, name);
  }
  return {};
}

// Calls read(element, where) for each of at most `most` elements.
template <typename F>
Status read_list(const json& list, const std::string& where, size_t most, const F& read) {
  if (!list.is_array() || list.size() > most)
    return corrupt("'{}' should be a list of at most {} objects", where, most);
  for (size_t i = 0; i < list.size(); ++i) LIMBER_TRY(read(list[i], fmt::format("{}/{}", where, i)));
  return {};
}

Status read_alternative(const json& object, const std::string& where, AlternativeRecord& to) {
  JsonFields in(object, where);
  in.read("name", to.name);
  in.read("span", to.span, 1, static_cast<int>(kMaxBlocks));
  in.read("error", to.error);
  const json* graph = in.find("graph");
  LIMBER_TRY(in.status());
  if (!(to.error >= 0 && std::isfinite(to.error))) return corrupt("{}/'error' is {}", where, to.error);
  return read_graph(*graph, where + "/graph", to.graph);
}

Status read_block(const json& object, const std::string& where, BlockRecord& to) {
  JsonFields in(object, where);
  in.read("name", to.name);
  const json* alternatives = in.find("alternatives");
  LIMBER_TRY(in.status());
  return read_list(*alternatives, where + "/alternatives", kMaxAlternatives,
                   [&](const json& one, const std::string& at) {
                     return read_alternative(one, at, to.alternatives.emplace_back());
                   });
}

Status read_exit(const json& object, const std::string& where, ExitRecord& to) {
  JsonFields in(object, where);
  in.read("name", to.name);
  in.read("after", to.after, 0, static_cast<int>(kMaxBlocks));
  const json* graph = in.find("graph");
  LIMBER_TRY(in.status());
  return read_graph(*graph, where + "/graph", to.graph);
}

Status read_parts(JsonFields& in, ElasticManifest& manifest) {
  const json *input = in.find("input"), *classes = in.find("classes"), *notes = in.find("notes"),
             *base = in.find("base"), *blocks = in.find("blocks"), *exits = in.find("exits"),
             *files = in.find("files");
  LIMBER_TRY(in.status());
  LIMBER_TRY(read_input(*input, manifest.info.input));
  LIMBER_TRY(read_classes(*classes, manifest.info.classes));
  LIMBER_TRY(read_texts(*notes, "notes", manifest.info.notes));
  LIMBER_TRY(read_graph(*base, "base", manifest.base));
  LIMBER_TRY(read_list(*blocks, "blocks", kMaxBlocks, [&](const json& one, const std::string& where) {
    return read_block(one, where, manifest.blocks.emplace_back());
  }));
  LIMBER_TRY(read_list(*exits, "exits", kMaxExits, [&](const json& one, const std::string& where) {
    return read_exit(one, where, manifest.exits.emplace_back());
  }));
  return read_files(*files, manifest.files);
}

}  // namespace

std::string format_elastic_manifest(const ElasticManifest& manifest) {
  ordered_json out = {{"format", kFormat}, {"version", manifest.version}};
  if (manifest.version > 1) out["fingerprint"] = manifest.fingerprint;
  out["input"] = write_input(manifest.info.input);
  out["classes"] = manifest.info.classes;
  out["notes"] = manifest.info.notes;
  out["base"] = write_graph(manifest.base);
  out["blocks"] = ordered_json::array();
  for (const BlockRecord& block : manifest.blocks) out["blocks"].push_back(write_block(block));
  out["exits"] = ordered_json::array();
  for (const ExitRecord& e : manifest.exits)
    out["exits"].push_back({{"name", e.name}, {"after", e.after}, {"graph", write_graph(e.graph)}});
  out["files"] = write_files(manifest.files);
  out["check"] = format_hex(Hasher().add(format_json(out)).digest());
  return format_json(out);
}

Result<ElasticManifest> parse_elastic_manifest(std::string_view text) {
  LIMBER_ASSIGN(const json object, parse_json_object(text, kMaxDepth));
  JsonFields in(object, "");
  ElasticManifest manifest;
  in.read("version", manifest.version, 1, INT32_MAX);
  LIMBER_TRY(
      check_format(in, kFormat, manifest.version == 1 ? 1 : kElasticVersion, "make the model elastic anew"));
  if (manifest.version > 1) in.read("fingerprint", manifest.fingerprint);
  LIMBER_TRY(in.status());
  if (manifest.version > 1 && !Sha256::is_hex(manifest.fingerprint))
    return corrupt("'fingerprint' should be 64 hexadecimal digits");
  LIMBER_TRY(read_parts(in, manifest));
  // Whatever else was changed, the text would not be written so.
  if (format_elastic_manifest(manifest) != text) return corrupt("'check' does not match: damaged, or edited");
  return manifest;
}

}  // namespace limber
