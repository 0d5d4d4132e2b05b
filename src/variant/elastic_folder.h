// An elastic model on disk: a folder. docs/elastic-model-format.md describes the files.
#pragma once

#include <string>

#include "base/file.h"
#include "variant/elastic_manifest.h"
#include "variant/elastic_model.h"

namespace limber {

struct ElasticFolder {
  std::string path;
  ElasticInfo info;
  std::string fingerprint;  // of the model as it was saved; empty when a version before 2 saved it
  // Exactly the graphs that were saved. Parameters stay in the mapped files: those that nobody reads cost no
  // memory. They live on when the folder is saved anew or removed.
  ElasticModel model;
};

// Makes the folder `path` hold this model; a crash at any moment leaves the old one or the new one. Files
// whose bytes would stay the same are not written: the original's weights are written once. Parameters that
// no graph reads are not saved. Other files in the folder, such as the variant table, stay.
// Fails, leaving what was there, when the model is none (check_elastic), when a weight is not finite
// (is_divergence), and when another process is saving there.
Status save_elastic(const std::string& path, const ElasticModel& model, const ElasticInfo& info,
                    const FileSystem& files = os_files());

// Untrusted: every byte is checked against the manifest, and everything against everything else.
Result<ElasticFolder> load_elastic(const std::string& path);
// The manifest alone; other files are not looked at.
Result<ElasticInfo> load_elastic_info(const std::string& path);

// Is there a manifest of an elastic model in this folder, of whatever version?
bool is_elastic(const std::string& path);
// Where its variant table is.
std::string variants_in(const std::string& path);
// Where records of what was searched for and found are (record/elastic_records.h).
std::string history_in(const std::string& path);
// Durable on return. Fails when another process is saving there. REQUIRES: record_line() made the line
Status append_history(const std::string& path, const std::string& line, const FileSystem& files = os_files());

}  // namespace limber
