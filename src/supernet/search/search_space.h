// What a search knows of an elastic model: numbers per alternative, and moves between variants.
#pragma once

#include <optional>
#include <vector>

#include "base/random.h"
#include "variant/elastic_model.h"

namespace limber {

struct LatencyTable;

// An alternative of a block, in numbers.
struct ChoiceCost {
  int span = 1;
  double seconds = 0;
  double error = 0;  // Alternative::error; 0 for the original
  double flops = 0;
  double parameter_bytes = 0;
  bool tied = false;  // a copy, which goes with the variant that it was tuned in: moves do not bring it in
};

struct VariantCost {
  double seconds = 0, flops = 0, parameter_bytes = 0;
};

// A variant that was evaluated.
struct Scored {
  Variant variant;
  double seconds = 0;  // as predicted
  double accuracy = 0;
};

// By block and alternative. Variants here end with the last block: exits are none of the search's.
struct SearchSpace {
  std::vector<std::vector<ChoiceCost>> blocks;

  size_t size() const { return blocks.size(); }
  const ChoiceCost& at(size_t block, int choice) const { return blocks[block][static_cast<size_t>(choice)]; }
  Variant original() const { return {.choices = std::vector<int>(size(), 0)}; }
  // REQUIRES: a variant of this space
  VariantCost cost(const Variant& variant) const;
  // kInvalidArgument when a block has no alternative or one that spans more than there is.
  Status check() const;
};

// Seconds are the table's, correction included, so that costs add up to LatencyTable::predict().
Result<SearchSpace> make_search_space(const ElasticModel& model, const LatencyTable& table);

// The variant with this alternative in it. What it overlaps goes; blocks then covered by nothing get the
// original or, with `random`, any alternative that fits into the gap.
void place(const SearchSpace& space, Variant& variant, size_t block, int choice, Random* random = nullptr);

// Every alternative of a block that may stand there and is not tied is as likely.
Variant random_variant(const SearchSpace& space, Random& random);
// Blocks up to a point from `a`, from there on from `b`; the point is one where neither is amid a span.
Variant cross(const SearchSpace& space, const Variant& a, const Variant& b, Random& random);

// What may be evaluated, and where the search looks.
struct Band {
  double low = 0, high = 0;  // seconds
  double max_flops = 0;      // 0: any number
  double max_parameter_bytes = 0;

  bool allows(const VariantCost& cost) const { return excess(cost) <= kRounding; }
  // 0 inside; else how far outside, as a share of the limit that is missed most.
  double distance(const VariantCost& cost) const;

 private:
  static constexpr double kRounding = 1e-9;  // sums in another order may differ by this share
  double excess(const VariantCost& cost) const;
};

// Replaces alternatives until the variant is inside the band: each time one that leads inside, any of them,
// or else the one that leads nearest. `keep` is a block that stays as it is. The last variant reached when
// no single replacement leads nearer: it may be outside. Blocks before `from`, where something must start,
// stay.
Variant move_near(const SearchSpace& space, const Band& band, Variant variant, Random& random,
                  std::optional<size_t> keep = std::nullopt, size_t from = 0);
// A random variant, moved near. (AdaptiveNet's NearbyInit)
Variant nearby_variant(const SearchSpace& space, const Band& band, Random& random);
// With one other alternative, then moved near by changing others. (AdaptiveNet's NearbyMutate)
Variant nearby_mutation(const SearchSpace& space, const Band& band, Variant variant, Random& random,
                        size_t from = 0);
// The space of variants that begin as this one does, up to block `from`, where something must start.
SearchSpace with_beginning(SearchSpace space, const Variant& variant, size_t from);
// With one other alternative, wherever that leads.
Variant random_mutation(const SearchSpace& space, Variant variant, Random& random);

}  // namespace limber
