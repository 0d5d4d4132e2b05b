// A model that changes its shape, in use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "limber/elastify.h"
#include "limber/error.h"
#include "limber/export.h"
#include "limber/model.h"

namespace limber {
namespace bridge {
class ElasticHandle;
}
inline namespace v1 {

// The folder of an elastic model, open. Move-only; const calls may be made from any thread.
class LIMBER_API Elastic {
 public:
  static Expected<Elastic> open(const std::string& folder);
  ~Elastic();
  Elastic(Elastic&&) noexcept;
  Elastic& operator=(Elastic&&) noexcept;

  // What searches on this machine with so many threads (0: every core) know, by latency.
  Expected<std::vector<KnownVariant>> known(int threads = 0) const;
  // The most accurate of these within the budget. kNotFound when there is none.
  Expected<KnownVariant> choose(const VariantBudget& budget, int threads = 0) const;
  // The variant as a model, to compile, run and save; without a name the one it was made from.
  Expected<Model> model(const std::string& variant = "") const;

 private:
  explicit Elastic(std::unique_ptr<bridge::ElasticHandle> handle);
  std::unique_ptr<bridge::ElasticHandle> handle_;
};

}  // namespace v1
}  // namespace limber
