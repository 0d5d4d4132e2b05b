// Copies of a model's blocks that may be trained where the originals may not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "variant/elastic_model.h"

namespace limber {

// The error of copies (is_copy): searches do not put them elsewhere, so nobody asks what it would be there.
inline constexpr double kCopyError = 1;

// Of the parameters of a block's copy.
std::string copy_prefix(const Block& block, std::string_view alternative);

// The original with parameters "alt/<block>/<alternative>/.." of its own; those that `params` has already
// are taken as they are.
Result<Graph> own_copy(const Block& block, std::string_view alternative, Parameters& params);

// The same variants with copies of their own, "copy1" for the first, where they have originals behind the
// first block that is none, as long as all parameters together stay within `size_limit` times the model's.
Result<std::vector<Variant>> copy_originals(ElasticModel& model, std::span<const Variant> variants,
                                            double size_limit);

}  // namespace limber
