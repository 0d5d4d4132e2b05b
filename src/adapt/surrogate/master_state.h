// What adapting a master leaves on disk: what the master learnt and what each domain needs, in a folder of
// its own beside the master's files, which stay as they are.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapt/surrogate/plain_master.h"
#include "base/file.h"
#include "io/model_folder.h"

namespace limber::adapt {

// A network that was cut, with what identifies the cut.
struct DomainMemory {
  std::vector<std::vector<int64_t>> kept;  // by group
  FilterValues gates;                      // by layer: constants of the cut, floats
  std::map<std::string, Tensor> weights;   // of the surrogate, statistics included; nobody writes them
};

struct MasterState {
  double spread = 0;                        // KnowledgeOptions::spread
  std::map<std::string, Tensor> weights;    // of the master: those that are not its folder's
  std::map<std::string, Tensor> knowledge;  // Knowledge::tensors()
  std::map<int64_t, DomainMemory> domains;  // by DriftDetector::domain()
};

// One process has it at a time.
class StateFolder {
 public:
  // `master` is the fingerprint of the master as it came (variant/fingerprint.h). The folder is made when it
  // is not there.
  static Result<StateFolder> open(const std::string& path, std::string master,
                                  const FileSystem& files = os_files());
  // As a whole or not at all: after a crash at any moment there is the old state or the new one. Domains that
  // did not change are not written again.
  Status save(const MasterState& state) const;
  // Untrusted: every byte is checked against the manifest, not yet against the master. Nothing when nothing
  // was saved; kInvalidArgument when it was by another master.
  Result<std::optional<MasterState>> load() const;

 private:
  StateFolder(std::string path, std::string master, const FileSystem& files, FolderLock lock)
      : path_(std::move(path)), master_(std::move(master)), files_(&files), lock_(std::move(lock)) {}

  std::string path_, master_;
  const FileSystem* files_;
  FolderLock lock_;
};

}  // namespace limber::adapt
