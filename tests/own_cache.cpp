// Linked into every test program: what it, and the programs that it starts, keep between processes lies in a
// folder of its own. Timings that were kept on this machine, perhaps by a test beside this one, choose
// kernels, and with them the last digits of what is compared.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

class OwnCache {
 public:
  OwnCache() { ::setenv("XDG_CACHE_HOME", path_.c_str(), 1); }
  ~OwnCache() {
    std::error_code ignored;
    if (::getpid() == owner_) std::filesystem::remove_all(path_, ignored);
  }
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;

 private:
  const pid_t owner_ = ::getpid();
  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("limber-cache-" + std::to_string(owner_))).string();
};

const OwnCache own_cache;

}  // namespace
