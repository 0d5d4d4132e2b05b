// What the folder of an elastic model says about itself: manifest.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/preprocess.h"
#include "io/model_folder.h"
#include "record/notes.h"

namespace limber {

// 1: notes hold variants by positions, and there is no fingerprint. Read, and converted on load.
inline constexpr int kElasticVersion = 2;

// What people and programs know of a model beside its graphs and weights.
struct ElasticInfo {
  std::vector<std::string> classes;  // in the order of the outputs
  Preprocess input;                  // what images become
  Notes notes;                       // where teaching and exits stand (record/elastic_records.h)
};

// A graph is a run of bytes in the file of all graphs: the base, then those of blocks, then those of exits.
struct GraphRecord {
  uint64_t bytes = 0;
  // Name -> under which number the bytes of a constant are stored that the text does not hold.
  std::map<std::string, uint64_t> constants;
};
struct AlternativeRecord {
  std::string name;
  int span = 1;
  double error = 0;
  GraphRecord graph;
};
struct BlockRecord {
  std::string name;
  std::vector<AlternativeRecord> alternatives;
};
struct ExitRecord {
  std::string name;
  int after = 0;
  GraphRecord graph;
};

struct ElasticManifest {
  int version = kElasticVersion;
  std::string fingerprint;  // Fingerprints::model(); empty in version 1
  ElasticInfo info;
  GraphRecord base;
  std::vector<BlockRecord> blocks;
  std::vector<ExitRecord> exits;
  std::map<std::string, FileRecord> files;  // "graphs", "base", "alternatives"
};

std::string format_elastic_manifest(const ElasticManifest& manifest);
// Untrusted: fails with kCorrupt, or with kUnsupported for another version.
Result<ElasticManifest> parse_elastic_manifest(std::string_view text);

}  // namespace limber
