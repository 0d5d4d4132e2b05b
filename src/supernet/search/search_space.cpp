#include "supernet/search/search_space.h"

#include <algorithm>
#include <limits>

#include "supernet/operators/work.h"
#include "variant/latency_table.h"

namespace limber {
namespace {

constexpr int kOpen = -2;  // a block that no choice covers, while a variant is being changed

struct Placement {
  size_t block;
  int choice;
};

size_t span_at(const SearchSpace& space, const Variant& variant, size_t block) {
  return static_cast<size_t>(space.at(block, variant.choices[block]).span);
}

// The block whose choice covers this one.
size_t start_of(const Variant& variant, size_t block) {
  while (variant.choices[block] == Variant::kCovered) --block;
  return block;
}

void clear_around(const SearchSpace& space, Variant& variant, size_t from, size_t to) {
  for (size_t b = start_of(variant, from); b < to;) {
    const size_t end = b + span_at(space, variant, b);
    std::fill_n(variant.choices.begin() + static_cast<std::ptrdiff_t>(b), end - b, kOpen);
    b = end;
  }
}

void set_choice(const SearchSpace& space, Variant& variant, size_t block, int choice) {
  variant.choices[block] = choice;
  for (size_t i = 1; i < static_cast<size_t>(space.at(block, choice).span); ++i)
    variant.choices[block + i] = Variant::kCovered;
}

// An alternative of the block that covers open blocks only.
int random_choice(const SearchSpace& space, const Variant& variant, size_t block, Random& random) {
  size_t gap = 0;
  while (block + gap < space.size() && variant.choices[block + gap] == kOpen) ++gap;
  std::vector<int> fitting;
  for (size_t c = 0; c < space.blocks[block].size(); ++c) {
    const ChoiceCost& one = space.blocks[block][c];
    if (!one.tied && static_cast<size_t>(one.span) <= gap) fitting.push_back(static_cast<int>(c));
  }
  return fitting[random.below(fitting.size())];
}

void fill_open(const SearchSpace& space, Variant& variant, Random* random) {
  for (size_t b = 0; b < space.size(); ++b) {
    if (variant.choices[b] != kOpen) continue;
    set_choice(space, variant, b, random != nullptr ? random_choice(space, variant, b, *random) : 0);
  }
}

// All single replacements from block `from` on, but those that touch what covers block `keep`.
std::vector<Placement> placements(const SearchSpace& space, const Variant& variant,
                                  std::optional<size_t> keep, size_t from = 0) {
  const size_t first = keep ? start_of(variant, *keep) : 0;
  const size_t last = keep ? first + span_at(space, variant, first) : 0;
  std::vector<Placement> all;
  for (size_t b = from; b < space.size(); ++b) {
    for (size_t c = 0; c < space.blocks[b].size(); ++c) {
      if (space.blocks[b][c].tied) continue;
      const size_t end = b + static_cast<size_t>(space.blocks[b][c].span);
      const bool touches = keep && b < last && end > first;
      if (!touches && variant.choices[b] != static_cast<int>(c)) all.push_back({b, static_cast<int>(c)});
    }
  }
  return all;
}

double share_above(double value, double limit) { return limit > 0 ? (value - limit) / limit : 0; }

}  // namespace

VariantCost SearchSpace::cost(const Variant& variant) const {
  VariantCost sum;
  for (size_t b = 0; b < size(); b += span_at(*this, variant, b)) {
    const ChoiceCost& one = at(b, variant.choices[b]);
    sum.seconds += one.seconds;
    sum.flops += one.flops;
    sum.parameter_bytes += one.parameter_bytes;
  }
  return sum;
}

Status SearchSpace::check() const {
  if (blocks.empty()) return invalid("no blocks to search among");
  for (size_t b = 0; b < size(); ++b) {
    if (blocks[b].empty() || blocks[b][0].span != 1)
      return invalid("block {}: its first alternative is not an original of span 1", b);
    for (size_t c = 0; c < blocks[b].size(); ++c) {
      const ChoiceCost& one = blocks[b][c];
      if (one.span < 1 || static_cast<size_t>(one.span) > size() - b)
        return invalid("block {}: alternative {} spans {} blocks, {} are left", b, c, one.span, size() - b);
      if (!(one.seconds >= 0) || !(one.error >= 0))
        return invalid("block {}: alternative {} takes {} s with error {}, expected 0 or more", b, c,
                       one.seconds, one.error);
    }
  }
  return {};
}

Result<SearchSpace> make_search_space(const ElasticModel& model, const LatencyTable& table) {
  LIMBER_TRY(table.check(model));
  SearchSpace space;
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    auto& costs = space.blocks.emplace_back();
    for (const Alternative& alternative : model.blocks[b].alternatives) {
      LIMBER_ASSIGN(const double flops, graph_flops(alternative.graph));
      costs.push_back({.span = alternative.span,
                       .seconds = table.seconds(b, costs.size()),
                       .error = alternative.error,
                       .flops = flops,
                       .parameter_bytes = static_cast<double>(parameter_elements(alternative.graph)) *
                                          static_cast<double>(sizeof(float)),
                       .tied = is_copy(alternative)});
    }
  }
  LIMBER_TRY(space.check());
  return space;
}

void place(const SearchSpace& space, Variant& variant, size_t block, int choice, Random* random) {
  clear_around(space, variant, block, block + static_cast<size_t>(space.at(block, choice).span));
  set_choice(space, variant, block, choice);
  fill_open(space, variant, random);
}

Variant random_variant(const SearchSpace& space, Random& random) {
  Variant variant{.choices = std::vector<int>(space.size(), kOpen)};
  fill_open(space, variant, &random);
  return variant;
}

Variant cross(const SearchSpace& space, const Variant& a, const Variant& b, Random& random) {
  std::vector<size_t> points;
  for (size_t i = 1; i < space.size(); ++i) {
    if (a.choices[i] != Variant::kCovered && b.choices[i] != Variant::kCovered) points.push_back(i);
  }
  if (points.empty()) return a;
  Variant child = a;
  const auto point = static_cast<std::ptrdiff_t>(points[random.below(points.size())]);
  std::copy(b.choices.begin() + point, b.choices.end(), child.choices.begin() + point);
  return child;
}

double Band::excess(const VariantCost& cost) const {
  return std::max({share_above(cost.seconds, high), share_above(cost.flops, max_flops),
                   share_above(cost.parameter_bytes, max_parameter_bytes)});
}

double Band::distance(const VariantCost& cost) const {
  const double above = excess(cost);
  if (above > kRounding) return above;
  return low > 0 ? std::max(0.0, (low - cost.seconds) / low) : 0;
}

Variant move_near(const SearchSpace& space, const Band& band, Variant variant, Random& random,
                  std::optional<size_t> keep, size_t from) {
  double distance = band.distance(space.cost(variant));
  while (distance > 0) {
    std::vector<Variant> inside;
    std::optional<Variant> nearest;
    for (const Placement& p : placements(space, variant, keep, from)) {
      Variant next = variant;
      place(space, next, p.block, p.choice);
      const double d = band.distance(space.cost(next));
      if (d <= 0) inside.push_back(next);
      if (d < distance) {
        distance = d;
        nearest = std::move(next);
      }
    }
    if (!inside.empty()) return inside[random.below(inside.size())];
    if (!nearest) break;
    variant = *std::move(nearest);
  }
  return variant;
}

Variant nearby_variant(const SearchSpace& space, const Band& band, Random& random) {
  return move_near(space, band, random_variant(space, random), random);
}

Variant nearby_mutation(const SearchSpace& space, const Band& band, Variant variant, Random& random,
                        size_t from) {
  const auto all = placements(space, variant, std::nullopt, from);
  if (all.empty()) return variant;
  const Placement p = all[random.below(all.size())];
  place(space, variant, p.block, p.choice, &random);
  return move_near(space, band, std::move(variant), random, p.block, from);
}

SearchSpace with_beginning(SearchSpace space, const Variant& variant, size_t from) {
  for (size_t b = 0; b < from; ++b) {
    for (size_t c = 0; c < space.blocks[b].size(); ++c) {
      if (variant.choices[b] != static_cast<int>(c))
        space.blocks[b][c].seconds = std::numeric_limits<double>::infinity();
    }
  }
  return space;
}

Variant random_mutation(const SearchSpace& space, Variant variant, Random& random) {
  const auto all = placements(space, variant, std::nullopt);
  if (all.empty()) return variant;
  const Placement p = all[random.below(all.size())];
  place(space, variant, p.block, p.choice, &random);
  return variant;
}

}  // namespace limber
