// Random types and attributes for every operator: a rule answers or refuses, and never breaks.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "tests/ops/type_case.h"

namespace limber::testing {
namespace {

constexpr int64_t kNumbers[] = {0,
                                1,
                                2,
                                3,
                                4,
                                8,
                                -1,
                                -2,
                                1 << 20,
                                int64_t{1} << 31,
                                int64_t{1} << 40,
                                int64_t{1} << 62,
                                INT64_MAX,
                                INT64_MIN,
                                INT64_MIN + 1};

class Chaos {
 public:
  explicit Chaos(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t n) { return random_.below(n); }
  // Mostly small, so that rules get past their first check.
  int64_t number() { return below(4) != 0 ? kNumbers[below(6)] : kNumbers[below(std::size(kNumbers))]; }
  Dim dim() {
    if (below(4) != 0) return Dim(number());
    return Dim(Symbol(below(2) == 0 ? "N" : "M"), below(3) == 0 ? number() : 1, below(3) == 0 ? number() : 0);
  }
  Shape shape() {
    Shape shape;
    for (uint64_t i = below(below(8) == 0 ? 10 : 5); i > 0; --i) shape.push_back(dim());
    return shape;
  }
  TensorType type() {
    const DType dtype = below(4) != 0 ? DType::kF32 : static_cast<DType>(below(kDTypeCount));
    return {dtype, shape()};
  }
  std::string word() {
    static const char* const kWords[] = {
        "",         "relu", "constant", "reflect",    "nearest", "linear",    "half_pixel",
        "ij->ji",   "none", "add",      "f32",        "DCR",     "...i->...", "edge",
        "...i,i->", "wrap", "cubic",    "asymmetric", "bool",    "->",        "a,b"};
    return kWords[below(std::size(kWords))];
  }
  AttrValue attr(AttrKind kind) {
    switch (kind) {
      case AttrKind::kInt:
        return number();
      case AttrKind::kFloat:
        return below(8) == 0 ? HUGE_VAL : static_cast<double>(number());
      case AttrKind::kString:
        return word();
      case AttrKind::kInts: {
        Ints values(below(6));
        for (int64_t& v : values) v = number();
        return values;
      }
      case AttrKind::kFloats: {
        Floats values(below(6));
        for (double& v : values) v = static_cast<double>(number());
        return values;
      }
      case AttrKind::kDims:
        return shape();
    }
    return num(0);
  }

 private:
  Random random_;
};

TEST(HostileTypes, RulesAnswerOrRefuse) {
  Chaos chaos(20240611);
  int accepted = 0;
  for (int round = 0; round < 400; ++round) {
    for (int k = 0; k < kOpCount; ++k) {
      const OpDef& def = op_def(static_cast<OpKind>(k));
      Graph g;
      std::vector<ValueId> inputs;
      const int extra = def.max_inputs < 0 ? 3 : def.max_inputs - def.min_inputs;
      const int count = def.min_inputs + static_cast<int>(chaos.below(static_cast<uint64_t>(extra) + 1));
      const TensorType first = chaos.type();
      for (int i = 0; i < count; ++i) {
        TensorType type = chaos.below(2) == 0 ? first : chaos.type();
        inputs.push_back(chaos.below(16) == 0 ? kNoValue : g.add_input("x", std::move(type)));
      }
      Attrs attrs;
      for (const AttrSpec& spec : def.attrs) {
        if (spec.required || chaos.below(3) == 0) attrs.set(spec.name, chaos.attr(spec.kind));
      }
      const int num_outputs = def.max_outputs < 0 ? static_cast<int>(chaos.below(4)) : def.min_outputs;
      const auto types = infer_types(g, def.op, inputs, attrs, num_outputs);
      if (!types.ok()) {
        EXPECT_FALSE(types.status().message().empty());
        continue;
      }
      ++accepted;
      ASSERT_EQ(types->size(), static_cast<size_t>(num_outputs));
      for (const TensorType& type : *types) EXPECT_TRUE(check_type(type).ok()) << type.to_string();
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace limber::testing
