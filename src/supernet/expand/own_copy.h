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

// The original with parameters "alt/<block>/<alternative>/.." of its own, or with the weights of the
// alternative `weights` and of its own only what is there once a channel: scales, shifts, statistics. Those
// that `params` has already are taken as they are.
Result<Graph> own_copy(const Block& block, std::string_view alternative, Parameters& params,
                       std::string_view weights = {});

// Variants that come one after another in latency are so many parts: what normalises the features of the
// fastest does not fit those of the slowest, whereas weights serve both.
inline constexpr size_t kCopyParts = 4;
size_t part_of(size_t variant, size_t count);

// The same variants with copies where they have originals behind the first block that is none, as long as all
// parameters together stay within `size_limit` times the model's. Those of the first part have "copy1", and
// so on; the weights of a block are those of all its copies.
Result<std::vector<Variant>> copy_originals(ElasticModel& model, std::span<const Variant> variants,
                                            double size_limit);

}  // namespace limber
