#include "train/pace.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "record/fields.h"

namespace limber {
namespace {

constexpr size_t kRemembered = 5;  // updates: a median of them bears two that something disturbed

struct PaceNote {
  double spent = 0, updating = 0, limit = 0, whole = 0;

  static void fields(auto& self, auto& field) {
    field("spent_s", self.spent);
    field("updating_s", self.updating);
    field("limit_s", self.limit);
    field("whole_s", self.whole);
  }
};

}  // namespace

void Pace::count_update(double seconds) {
  updating_ += seconds;
  if (counted_++ == 0) return;  // its memory is new: it tells nothing
  if (updates_.size() == kRemembered) updates_.erase(updates_.begin());
  updates_.push_back(seconds);
}

double Pace::update_seconds() const { return updates_.empty() ? updating_ : median(updates_); }

void Pace::settle(int64_t ahead, double on_top) {
  whole_ = spent() + static_cast<double>(std::max<int64_t>(0, ahead)) * update_seconds() + on_top;
  limit_ = whole_ / asked_.speedup;
}

double Pace::done() const {
  if (!limited()) return 0;
  const double ahead = std::max(left(), 0.0);
  return updating_ + ahead > 0 ? updating_ / (updating_ + ahead) : 1;
}

int64_t Pace::expected_updates(int64_t behind) const {
  const double step = update_seconds();
  if (step <= 0) return std::max<int64_t>(1, behind);
  return behind + std::max<int64_t>(0, std::llround(left() / step));
}

std::string Pace::note() const {
  return format_fields(PaceNote{.spent = spent(), .updating = updating_, .limit = limit_, .whole = whole_});
}

Status Pace::restore(std::string_view text) {
  auto note = parse_fields<PaceNote>(text);
  LIMBER_TRY(note.status().in("the note about time in the checkpoint cannot be read"));
  const auto is_time = [](double x) { return x >= 0 && std::isfinite(x); };
  if (!is_time(note->spent) || !is_time(note->updating) || !is_time(note->limit) || !is_time(note->whole))
    return corrupt("the note about time in the checkpoint holds no times");
  before_ = note->spent;
  updating_ = note->updating;
  if (asked_.speedup > 0) limit_ = note->limit;
  whole_ = note->whole;
  return {};
}

}  // namespace limber
