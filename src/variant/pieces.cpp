#include "variant/pieces.h"

namespace limber {
namespace {

Result<size_t> blocks_before_end(const ElasticModel& model, const Variant& variant) {
  if (variant.exit < 0) return model.blocks.size();
  if (static_cast<size_t>(variant.exit) >= model.exits.size())
    return invalid("there is no exit {}; the model has {}", variant.exit, model.exits.size());
  return static_cast<size_t>(model.exits[static_cast<size_t>(variant.exit)].after);
}

}  // namespace

Result<std::vector<VariantPiece>> pieces_of(const ElasticModel& model, const Variant& variant) {
  LIMBER_ASSIGN(const size_t end, blocks_before_end(model, variant));
  if (variant.choices.size() != model.blocks.size())
    return invalid("{} choices for {} blocks", variant.choices.size(), model.blocks.size());
  std::vector<VariantPiece> pieces;
  for (size_t b = 0; b < end;) {
    const auto& alternatives = model.blocks[b].alternatives;
    const int choice = variant.choices[b];
    if (choice < 0 || static_cast<size_t>(choice) >= alternatives.size()) {
      return invalid("block {} '{}' has {} alternatives, there is no {}", b, model.blocks[b].name,
                     alternatives.size(), choice);
    }
    const Alternative& alternative = alternatives[static_cast<size_t>(choice)];
    pieces.push_back({static_cast<int>(b), choice, &alternative.graph});
    b += static_cast<size_t>(alternative.span);
    if (b > end) {
      return invalid("alternative '{}' of block {} spans {} blocks, past the end of the variant",
                     alternative.name, pieces.back().block, alternative.span);
    }
  }
  if (variant.exit >= 0)
    pieces.push_back(
        {VariantPiece::kExit, variant.exit, &model.exits[static_cast<size_t>(variant.exit)].graph});
  return pieces;
}

std::string describe(const ElasticModel& model, const VariantPiece& piece) {
  if (piece.block == VariantPiece::kExit)
    return fmt::format("exit '{}'", model.exits[static_cast<size_t>(piece.choice)].name);
  const Block& block = model.blocks[static_cast<size_t>(piece.block)];
  return fmt::format("block {} '{}' {}", piece.block, block.name,
                     block.alternatives[static_cast<size_t>(piece.choice)].name);
}

}  // namespace limber
