#include "variant/variant_index.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace limber {
namespace {

Status check_text(const char* what, const std::string& text) {
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!text.empty() && text.size() <= kMaxContext && printable) return {};
  return invalid("{} of {} bytes, expected 1..{} printable ASCII characters", what, text.size(), kMaxContext);
}

bool is_amount(double x) { return x >= 0 && std::isfinite(x); }

// What decides when latency and accuracy do not.
auto rest_of(const VariantRecord& r) {
  return std::tie(r.memory_bytes, r.flops, r.variant.choices, r.variant.exit, r.variant.confidence);
}

bool faster(const VariantRecord& a, const VariantRecord& b) {
  if (a.latency_s() != b.latency_s()) return a.latency_s() < b.latency_s();
  if (a.accuracy != b.accuracy) return a.accuracy > b.accuracy;
  return rest_of(a) < rest_of(b);
}

bool better(const VariantRecord* a, const VariantRecord* b) {
  return a->accuracy != b->accuracy ? a->accuracy > b->accuracy : faster(*a, *b);
}

}  // namespace

Status check_record(const VariantRecord& r) {
  LIMBER_TRY(check_text("context", r.group.context));
  LIMBER_TRY(check_text("data", r.group.data));
  const auto bad = [&](const char* what, double value) {
    return invalid("{} of a variant on '{}' is {}", what, r.group.context, value);
  };
  if (!is_amount(r.predicted_s)) return bad("predicted latency", r.predicted_s);
  if (r.measured_s && !is_amount(*r.measured_s)) return bad("measured latency", *r.measured_s);
  if (!(r.accuracy >= 0 && r.accuracy <= 1)) return bad("accuracy", r.accuracy);
  if (r.images < 0) return bad("number of images", static_cast<double>(r.images));
  if (!is_amount(r.flops)) return bad("flops", r.flops);
  if (r.energy_j && !is_amount(*r.energy_j)) return bad("energy", *r.energy_j);
  if (r.memory_bytes > INT64_MAX || r.parameter_bytes > INT64_MAX)
    return bad("number of bytes", static_cast<double>(std::max(r.memory_bytes, r.parameter_bytes)));
  return {};
}

VariantIndex::VariantIndex(std::vector<VariantRecord> records) : size_(records.size()) {
  for (VariantRecord& record : records) groups_[record.group].records.push_back(std::move(record));
  for (auto& [group, entry] : groups_) finish(entry);
}

void VariantIndex::finish(Entry& entry) {
  std::sort(entry.records.begin(), entry.records.end(), faster);
  const auto point = [](const VariantRecord& r) { return Point{r.latency_s(), r.flops, r.memory_bytes, &r}; };
  for (const VariantRecord& r : entry.records) {
    if (entry.front.empty() || r.accuracy > entry.front.back().record->accuracy)
      entry.front.push_back(point(r));
  }
  std::vector<const VariantRecord*> order;
  for (const VariantRecord& r : entry.records) order.push_back(&r);
  std::sort(order.begin(), order.end(), better);
  for (const VariantRecord* r : order) {
    const Point candidate = point(*r);
    const bool dominated =
        std::any_of(entry.undominated.begin(), entry.undominated.end(), [&](const Point& p) {
          return p.latency_s <= candidate.latency_s && p.memory_bytes <= candidate.memory_bytes &&
                 p.flops <= candidate.flops;
        });
    if (!dominated) entry.undominated.push_back(candidate);
  }
}

const VariantIndex::Entry* VariantIndex::find(const VariantGroup& group) const {
  const auto it = groups_.find(group);
  return it == groups_.end() ? nullptr : &it->second;
}

std::vector<VariantGroup> VariantIndex::groups() const {
  std::vector<VariantGroup> groups;
  for (const auto& [group, entry] : groups_) groups.push_back(group);
  return groups;
}

const VariantGroup* VariantIndex::widest(std::string_view context) const {
  const VariantGroup* widest = nullptr;
  int64_t most = -1;
  for (const auto& [group, entry] : groups_) {
    const int64_t images = entry.records.front().images;  // of one group all have as many
    if (group.context != context || images <= most) continue;
    most = images;
    widest = &group;
  }
  return widest;
}

std::span<const VariantRecord> VariantIndex::all(const VariantGroup& group) const {
  const Entry* found = find(group);
  return found == nullptr ? std::span<const VariantRecord>() : found->records;
}

std::span<const VariantRecord> VariantIndex::range(const VariantGroup& group, double low_s,
                                                   double high_s) const {
  const auto records = all(group);
  if (!(low_s <= high_s)) return {};
  const auto begin = std::partition_point(records.begin(), records.end(),
                                          [&](const VariantRecord& r) { return r.latency_s() < low_s; });
  const auto end = std::partition_point(begin, records.end(),
                                        [&](const VariantRecord& r) { return r.latency_s() <= high_s; });
  return {begin, end};
}

std::vector<const VariantRecord*> VariantIndex::front(const VariantGroup& group) const {
  std::vector<const VariantRecord*> records;
  if (const Entry* found = find(group)) {
    for (const Point& point : found->front) records.push_back(point.record);
  }
  return records;
}

const VariantRecord* VariantIndex::best(const VariantGroup& group, const VariantLimits& limits) const {
  const Entry* found = find(group);
  if (found == nullptr) return nullptr;
  if (limits.memory_bytes == UINT64_MAX && limits.flops == std::numeric_limits<double>::infinity()) {
    const auto end = std::partition_point(found->front.begin(), found->front.end(),
                                          [&](const Point& p) { return p.latency_s <= limits.latency_s; });
    return end == found->front.begin() ? nullptr : std::prev(end)->record;
  }
  for (const Point& p : found->undominated) {
    if (p.latency_s <= limits.latency_s && p.memory_bytes <= limits.memory_bytes && p.flops <= limits.flops)
      return p.record;
  }
  return nullptr;
}

}  // namespace limber
