// Models that a server may serve, from files: one model, or a folder of models as Triton has it.
//
//   REPOSITORY/NAME/VERSION/model.onnx      version: a number; the greatest is served
//   REPOSITORY/NAME/VERSION/                an elastic model, or a training
//   REPOSITORY/NAME/                        the same without a version
//   REPOSITORY/NAME.onnx
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jobs/source.h"
#include "serve/model_server.h"

namespace limber {

struct ServedFolderOptions : EngineOptions {
  std::string path;    // a model as ModelSource has it, an elastic model, or a repository
  std::string name;    // of a single model; empty: that of the file or folder
  ImageOptions image;  // for models that have no record of their own
  bool exits = false;  // variants with exits, where the model has some, instead of those that a search found
  bool open_batch = false;  // where a file fixes how many images it takes, any number, if that is possible
  bool energy = false;      // joules of a run are wanted: estimated where nobody measured them
};

class ServedFolder final : public ModelRepository {
 public:
  // kNotFound when there is nothing of that kind.
  static Result<std::unique_ptr<ServedFolder>> open(const ServedFolderOptions& options);

  bool single() const { return single_; }
  std::vector<std::string> names() const override;
  Result<ServedSource> open(const std::string& name) const override;
  std::vector<std::shared_ptr<Backend>> backends() const override { return backends_; }
  // The folder of an elastic model; empty when it is none.
  std::string elastic_folder(const std::string& name) const;

 private:
  struct Place {
    std::string path, version;
  };
  explicit ServedFolder(const ServedFolderOptions& options);
  Result<Place> find(const std::string& name) const;
  Result<ServedSource> open_elastic_model(const std::string& path) const;
  Result<ServedSource> open_plain(const std::string& path) const;
  Status estimate_energy(ServedSource& source) const;

  const ServedFolderOptions options_;
  const std::vector<std::shared_ptr<Backend>> backends_;
  bool single_ = true;
};

// Variants of an elastic model that nothing else beats, all judged by the same images.
struct JudgedVariants {
  std::vector<ServedVariant> variants;  // the original is one of them
  std::string judged_by;                // VariantGroup::data; empty: none was judged
  int64_t images = 0;                   // that they were judged by
  std::string note;                     // where times are from when that is not obvious; may be empty
};
// Measured on this machine or, where nothing was, on another.
Result<JudgedVariants> served_variants(const std::string& folder, const ElasticModel& model, int threads,
                                       bool exits);

}  // namespace limber
