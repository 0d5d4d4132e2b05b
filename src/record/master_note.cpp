#include "record/master_note.h"

namespace limber {
namespace {

bool from_0_to_1(double x) { return x >= 0 && x <= 1; }

}  // namespace

std::string MasterLevel::problem() const {
  if (!(share > 0 && share <= 1)) return "'share' should be above 0 and at most 1";
  if (!(operations > 0)) return "'operations' should be above 0";
  return from_0_to_1(accuracy) && from_0_to_1(by_size) ? "" : "'accuracy' and 'by_size' should be 0 to 1";
}

std::string MasterNote::problem() const {
  if (version < 1 || version > kVersion)
    return fmt::format("'version' is {}, this program knows 1 to {}", version, kVersion);
  return spent_s >= 0 && trained_s >= 0 ? "" : "'spent_s' and 'trained_s' should be 0 or more";
}

}  // namespace limber
