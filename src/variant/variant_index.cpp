#include "variant/variant_index.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace limber {
namespace {

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
  const bool printable =
      std::all_of(r.context.begin(), r.context.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (r.context.empty() || r.context.size() > kMaxContext || !printable)
    return invalid("context of {} bytes, expected 1..{} printable ASCII characters", r.context.size(),
                   kMaxContext);
  const std::string name = print(r.variant);
  const auto again = parse_variant(name);
  if (!again.ok()) return again.status();
  if (*again != r.variant) return invalid("variant '{}' cannot be written: exit {}", name, r.variant.exit);
  const auto bad = [&](const char* what, double value) {
    return invalid("variant '{}': {} is {}", name, what, value);
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
  for (VariantRecord& record : records) contexts_[record.context].records.push_back(std::move(record));
  for (auto& [name, context] : contexts_) finish(context);
}

void VariantIndex::finish(Context& context) {
  std::sort(context.records.begin(), context.records.end(), faster);
  const auto point = [](const VariantRecord& r) { return Point{r.latency_s(), r.flops, r.memory_bytes, &r}; };
  for (const VariantRecord& r : context.records) {
    if (context.front.empty() || r.accuracy > context.front.back().record->accuracy)
      context.front.push_back(point(r));
  }
  std::vector<const VariantRecord*> order;
  for (const VariantRecord& r : context.records) order.push_back(&r);
  std::sort(order.begin(), order.end(), better);
  for (const VariantRecord* r : order) {
    const Point candidate = point(*r);
    const bool dominated =
        std::any_of(context.undominated.begin(), context.undominated.end(), [&](const Point& p) {
          return p.latency_s <= candidate.latency_s && p.memory_bytes <= candidate.memory_bytes &&
                 p.flops <= candidate.flops;
        });
    if (!dominated) context.undominated.push_back(candidate);
  }
}

const VariantIndex::Context* VariantIndex::find(std::string_view context) const {
  const auto it = contexts_.find(context);
  return it == contexts_.end() ? nullptr : &it->second;
}

std::vector<std::string> VariantIndex::contexts() const {
  std::vector<std::string> names;
  for (const auto& [name, context] : contexts_) names.push_back(name);
  return names;
}

std::span<const VariantRecord> VariantIndex::all(std::string_view context) const {
  const Context* found = find(context);
  return found == nullptr ? std::span<const VariantRecord>() : found->records;
}

std::span<const VariantRecord> VariantIndex::range(std::string_view context, double low_s,
                                                   double high_s) const {
  const auto records = all(context);
  if (!(low_s <= high_s)) return {};
  const auto begin = std::partition_point(records.begin(), records.end(),
                                          [&](const VariantRecord& r) { return r.latency_s() < low_s; });
  const auto end = std::partition_point(begin, records.end(),
                                        [&](const VariantRecord& r) { return r.latency_s() <= high_s; });
  return {begin, end};
}

std::vector<const VariantRecord*> VariantIndex::front(std::string_view context) const {
  std::vector<const VariantRecord*> records;
  if (const Context* found = find(context)) {
    for (const Point& point : found->front) records.push_back(point.record);
  }
  return records;
}

const VariantRecord* VariantIndex::best(std::string_view context, const VariantLimits& limits) const {
  const Context* found = find(context);
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
