#include "variant/elastic_model.h"

#include <set>

#include "passes/cut_points.h"
#include "tests/passes/random_net.h"
#include "tests/variant/random_elastic.h"

namespace limber::test {
namespace {

std::string failure(const Status& status) {
  EXPECT_EQ(code_name(status.code()), std::string(code_name(Code::kInvalidArgument))) << status.message();
  return status.message();
}

Graph unary(OpKind op, std::string_view from, std::string_view to, int64_t width = 4) {
  Graph graph;
  graph.name = op_name(op);
  const ValueId x = graph.add_input(from, {DType::kF32, Shape{Dim(Symbol("N")), width}});
  graph.add_output(*emit(graph, op, {x}), to);
  return graph;
}

// Four blocks of Relu; at block 1 an alternative for it and the next; exits after 1, 2 and 3 blocks.
ElasticModel plain_model() {
  ElasticModel model;
  model.params = std::make_shared<Parameters>();
  const Graph relu = unary(OpKind::kRelu, "x", "y");
  const Graph* chained[] = {&relu, &relu, &relu, &relu};
  model.base = *chain(chained);
  for (const char* name : {"a", "b", "c", "d"})
    model.blocks.push_back({name, {{"original", 1, relu}, {"exp", 1, unary(OpKind::kExp, "in", "out")}}});
  model.blocks[1].alternatives.push_back({"merge", 2, unary(OpKind::kAbs, "in", "out")});
  for (int after = 1; after <= 3; ++after)
    model.exits.push_back({fmt::format("exit{}", after), after, unary(OpKind::kNeg, "in", "out")});
  return model;
}

TEST(Materialize, TheOriginalIsTheBase) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const ElasticModel model = random_elastic(seed);
    const auto graph = materialize(model, original_variant(model));
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    EXPECT_EQ(hash(*graph), hash(model.base));
    EXPECT_EQ(print(*graph), print(model.base));
    const Tensor images = random_images(seed);
    EXPECT_EQ(bytes_of(run_on(*graph, *model.params, images)),
              bytes_of(run_on(model.base, *model.params, images)));
  }
}

TEST(Materialize, ComputesWhatItsGraphsDoOneAfterTheOther) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const ElasticModel model = random_elastic(seed);
    Random random(seed);
    const Variant variant = random_variant(model, random);
    SCOPED_TRACE(fmt::format("seed {}, variant {}", seed, print(model, variant)));
    const auto graph = materialize(model, variant);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    ASSERT_TRUE(verify(*graph).ok()) << verify(*graph).message();
    EXPECT_EQ(graph->name, model.base.name);
    EXPECT_EQ(graph->outputs()[0].name, "logits");
    EXPECT_EQ(graph->value(graph->inputs()[0]).name, model.base.value(model.base.inputs()[0]).name);
    const Tensor images = random_images(seed);
    Tensor expected = images;
    const auto graphs = graphs_of(model, variant);
    ASSERT_TRUE(graphs.ok());
    for (const Graph* one : *graphs) expected = run_on(*one, *model.params, expected);
    EXPECT_EQ(bytes_of(run_on(*graph, *model.params, images)), bytes_of(expected));
    EXPECT_EQ(parameters_of(*graph), *parameters_of(model, variant));
  }
}

// Blocks as they are cut out of a network.
TEST(Materialize, BlocksCutFromANetworkMakeItAgain) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    ElasticModel model;
    model.base = RandomNet(seed).build();
    model.params = std::make_shared<Parameters>();
    for (const auto& [name, tensor] : random_tensors(*bind(model.base, {{"N", 2}}), seed))
      if (name != "x") model.params->set(name, tensor);
    const auto cuts = cut_points(model.base);
    for (size_t i = 1; i < cuts.size(); ++i) {
      model.blocks.push_back(
          {model.base.value(cuts[i]).name, {{"original", 1, *extract(model.base, cuts[i - 1], cuts[i])}}});
    }
    ASSERT_TRUE(check_elastic(model).ok()) << check_elastic(model).message();
    const Variant variant = original_variant(model);
    EXPECT_EQ(hash(*materialize(model, variant)), hash(model.base));
    const auto whole = materialize_blocks(model, variant, 0, static_cast<int>(model.blocks.size()));
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    Tensor images = *Tensor::allocate({DType::kF32, Shape{2, 3, 6, 6}});
    Random random(seed);
    for (float& v : images.data<float>()) v = static_cast<float>(random.uniform(-1, 1));
    EXPECT_EQ(bytes_of(run_on(*whole, *model.params, images)),
              bytes_of(run_on(model.base, *model.params, images)))
        << seed;
  }
}

TEST(Materialize, BlocksOfAVariantAreItsParts) {
  const ElasticModel model = plain_model();
  const Variant variant{{0, 2, Variant::kCovered, 1}};
  const auto middle = materialize_blocks(model, variant, 1, 4);
  ASSERT_TRUE(middle.ok()) << middle.status().message();
  ASSERT_EQ(middle->num_nodes(), 2u);
  EXPECT_EQ(middle->nodes()[0].op, OpKind::kAbs);
  EXPECT_EQ(middle->nodes()[1].op, OpKind::kExp);
  EXPECT_EQ(failure(materialize_blocks(model, variant, 2, 4).status()),
            "block 2 'c' is covered by an alternative of an earlier block: nothing can start there");
  EXPECT_EQ(failure(materialize_blocks(model, variant, 0, 2).status()),
            "block 2 'c' is covered by an alternative of an earlier block: nothing can start there");
  for (const auto& [from, to] : {std::pair(1, 1), std::pair(-1, 2), std::pair(0, 5), std::pair(3, 1)})
    EXPECT_NE(failure(materialize_blocks(model, variant, from, to).status()).find("of 4"), std::string::npos);
}

TEST(CheckVariant, SaysWhatIsWrong) {
  const ElasticModel model = plain_model();
  const auto why = [&](const Variant& variant) {
    EXPECT_FALSE(materialize(model, variant).ok());
    return failure(check_variant(model, variant));
  };
  constexpr int kCovered = Variant::kCovered;
  EXPECT_TRUE(check_variant(model, {{0, 2, kCovered, 1}, 0, 0.5}).ok());
  EXPECT_EQ(why({{0, 0, 0}}), "3 choices for 4 blocks; is it a variant of another model?");
  EXPECT_EQ(why({{0, 3, 0, 0}}), "block 1 'b' has 3 alternatives, there is no 3");
  EXPECT_EQ(why({{0, -2, 0, 0}}), "block 1 'b' has 3 alternatives, there is no -2");
  EXPECT_EQ(why({{0, 0, kCovered, 0}}),
            "block 2 'c' is covered by no alternative before it; choose one of its 2");
  EXPECT_EQ(
      why({{0, 2, 1, 0}}),
      "block 2 'c' is covered by alternative 'merge' of block 1 'b', yet its choice is 1, expected none");
  EXPECT_EQ(why({{0, 2, kCovered, 0}, 1}),
            "exit 1 'exit2' comes after 2 blocks, inside alternative 'merge' of block 1 'b'");
  EXPECT_EQ(why({{0, 0, 0, 0}, 3}), "there is no exit 3; the model has 3");
  EXPECT_EQ(why({{0, 0, 0, 0}, -2}), "there is no exit -2; the model has 3");
  EXPECT_EQ(why({{0, 0, 0, 0}, -1, 1.5}), "confidence 1.5 is not in 0..1");
  EXPECT_EQ(why({{0, 0, 0, 0}, -1, NAN}), "confidence nan is not in 0..1");
  ElasticModel closed = plain_model();
  closed.exits.clear();
  EXPECT_EQ(failure(check_variant(closed, {{0, 0, 0, 0}, -1, 0.5})),
            "confidence 0.5, but the model has no exits");
}

TEST(CheckElastic, SaysWhatDoesNotFit) {
  const auto why = [](auto change) {
    ElasticModel model = plain_model();
    EXPECT_TRUE(check_elastic(model).ok()) << check_elastic(model).message();
    change(model);
    return failure(check_elastic(model));
  };
  const Graph narrow = unary(OpKind::kRelu, "x", "y", 3);
  EXPECT_EQ(why([](ElasticModel& m) { m.blocks.clear(); }), "0 blocks, expected 1..4096");
  EXPECT_EQ(why([](ElasticModel& m) { m.params = nullptr; }), "the model has no parameters");
  EXPECT_EQ(why([](ElasticModel& m) { m.blocks[1].name = "a"; }), "block 'a' is there twice");
  EXPECT_EQ(why([](ElasticModel& m) { m.blocks[1].alternatives.clear(); }),
            "block 1 'b': its first alternative is not an original of span 1");
  EXPECT_EQ(why([&](ElasticModel& m) { m.blocks[2].alternatives[0].graph = narrow; }),
            "block 2 'c': its input is f32[N,3], expected f32[N,4]");
  EXPECT_EQ(why([&](ElasticModel& m) { m.blocks[2].alternatives[1].graph = narrow; }),
            "block 2 'c': alternative 'exp': its input is f32[N,3], expected f32[N,4]");
  EXPECT_EQ(why([](ElasticModel& m) { m.blocks[2].alternatives[1].name = "original"; }),
            "block 2 'c': alternative 'original' is there twice");
  EXPECT_EQ(why([](ElasticModel& m) { m.blocks[3].alternatives[1].span = 2; }),
            "block 3 'd': alternative 'exp' spans 2 blocks, 1 are left");
  EXPECT_EQ(why([](ElasticModel& m) { m.blocks[3].alternatives[1].error = NAN; }),
            "block 3 'd': alternative 'exp' has error nan");
  EXPECT_EQ(why([](ElasticModel& m) { m.exits[1].after = 4; }),
            "exit 'exit2' comes after 4 blocks, expected 0..3");
  EXPECT_EQ(why([&](ElasticModel& m) { m.exits[1].graph = narrow; }),
            "exit 'exit2': its input is f32[N,3], expected f32[N,4]");
  ElasticModel model = plain_model();
  model.exits[0].graph.add_parameter("lost", {DType::kF32, Shape{4}});
  EXPECT_EQ(check_elastic(model).code(), Code::kNotFound);
  model.params->set("lost", *Tensor::zeros({DType::kF32, Shape{5}}));
  EXPECT_EQ(failure(check_elastic(model)), "exit 'exit1': parameter 'lost' is f32[5], the graph has f32[4]");
}

TEST(CountVariants, CountsEveryCanonicalOneOnce) {
  EXPECT_EQ(count_variants(plain_model()), (2 * 2 * 2 * 2 + 2 * 1 * 2) + 2 + 4 + (8 + 2));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ElasticModel model = random_elastic(seed);
    if (count_variants(model) > 300) continue;
    std::set<std::string> seen;
    Random random(seed);
    for (int i = 0; i < 20000; ++i) {
      Variant variant = canonical(model, random_variant(model, random));
      variant.confidence = 0;
      ASSERT_TRUE(check_variant(model, variant).ok());
      seen.insert(print(model, variant));
    }
    EXPECT_EQ(static_cast<double>(seen.size()), count_variants(model)) << seed;
  }
}

TEST(Cost, OfAVariantIsThatOfItsGraph) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const ElasticModel model = random_elastic(seed);
    Random random(seed);
    const Variant variant = random_variant(model, random);
    const auto ours = cost_of(model, variant, 3), whole = cost_of(*materialize(model, variant), 3);
    ASSERT_TRUE(ours.ok() && whole.ok()) << ours.status().message();
    EXPECT_DOUBLE_EQ(ours->flops, whole->flops);
    EXPECT_EQ(ours->parameter_bytes, whole->parameter_bytes);
    EXPECT_DOUBLE_EQ(cost_of(model, variant)->flops * 3, ours->flops);
  }
}

TEST(VariantText, SaysWhatIsNotTheOriginal) {
  const ElasticModel model = plain_model();
  EXPECT_EQ(print(model, original_variant(model)), "original");
  EXPECT_EQ(print(model, {{0, 2, Variant::kCovered, 1}}), "b=merge,d=exp");
  EXPECT_EQ(print(model, {{1, 0, 0, 0}, 0, 0.9}), "a=exp@exit1?0.9");
  EXPECT_EQ(print(model, {{0, 0, 0, 0}, 2}), "original@exit3");
}

TEST(VariantText, IsReadAsItWas) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ElasticModel model = random_elastic(seed);
    Random random(seed);
    // Names may hold whatever a file has.
    const auto mark = [&](std::string& name) {
      constexpr std::string_view kSigns = ".,=@?% -\n\xc3\x9c\"'/<>";
      for (auto n = random.below(4); n > 0; --n)
        name.insert(random.below(name.size()), 1, kSigns[random.below(kSigns.size())]);
    };
    for (Block& block : model.blocks) {
      mark(block.name);
      for (Alternative& alternative : block.alternatives) mark(alternative.name);
    }
    for (Exit& exit : model.exits) mark(exit.name);
    if (!check_elastic(model).ok()) continue;  // two names became one
    for (int i = 0; i < 10; ++i) {
      Variant variant = random_variant(model, random);
      const std::string text = print(model, variant);
      EXPECT_EQ(text.find_first_of(" \n\"'"), std::string::npos) << text;
      const auto again = parse_variant(model, text);
      ASSERT_TRUE(again.ok()) << again.status().message();
      EXPECT_EQ(*again, variant) << text;
    }
  }
}

// The order is free, and the original may be named.
TEST(VariantText, ReadsWhatPeopleWrite) {
  const ElasticModel model = plain_model();
  const auto read = [&](const char* text) { return *parse_variant(model, text); };
  EXPECT_EQ(read("d=exp,b=merge"), (Variant{{0, 2, Variant::kCovered, 1}}));
  EXPECT_EQ(read("a=original,b=exp"), (Variant{{0, 1, 0, 0}}));
  EXPECT_EQ(read("%61=e%78p@exit%31"), (Variant{{1, 0, 0, 0}, 0}));
}

TEST(VariantText, WhatIsNoneIsRefused) {
  const ElasticModel model = plain_model();
  const std::pair<const char*, const char*> cases[] = {
      {"", "not BLOCK=ALTERNATIVE"},
      {"a", "not BLOCK=ALTERNATIVE"},
      {"0.2.1.-.0", "not BLOCK=ALTERNATIVE"},
      {"a=", "a name is missing"},
      {"=exp", "a name is missing"},
      {"a=exp,", "not BLOCK=ALTERNATIVE"},
      {",a=exp", "not BLOCK=ALTERNATIVE"},
      {"a=exp b=exp", "is no name"},
      {"a=exp=exp", "is no name"},
      {"a=e%7", "is no name"},
      {"a=e%zz", "is no name"},
      {"e=exp", "no block 'e'; there are: a, b, c, d"},
      {"a=shrink50", "block 'a': there is no alternative 'shrink50'; there are: original, exp"},
      {"a=exp,a=exp", "block 'a' is named or covered twice"},
      {"b=merge,c=exp", "block 'c' is named or covered twice"},
      {"c=exp,b=merge", "block 'c' is named or covered twice"},
      {"original@", "a name is missing"},
      {"original@exit9", "no exit 'exit9'; there are: exit1, exit2, exit3"},
      {"original@exit1@exit2", "is no name"},
      {"b=merge@exit2", "inside alternative 'merge'"},
      {"original?", "no number above 0"},
      {"original?0", "no number above 0"},
      {"original?-0.5", "no number above 0"},
      {"original?1.01", "no number above 0"},
      {"original?nan", "no number above 0"},
      {"original?0.5@exit1", "no number above 0"},
      {"original?0.5?0.5", "no number above 0"},
      {"?0.5", "not BLOCK=ALTERNATIVE"},
      {"@exit1", "not BLOCK=ALTERNATIVE"}};
  for (const auto& [text, why] : cases) {
    const std::string message = failure(parse_variant(model, text).status());
    EXPECT_NE(message.find(why), std::string::npos) << text << ": " << message;
    EXPECT_NE(message.find("expected 'original' or BLOCK=ALTERNATIVE"), std::string::npos) << message;
  }
  const std::string huge(kMaxVariantText + 1, 'a');
  EXPECT_LT(failure(parse_variant(model, huge).status()).size(), 400u);
  Random random(1);
  constexpr std::string_view kSigns = "abcd=exporiginalmerge,@it123?0.%";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto n = random.below(16); n > 0; --n) text += kSigns[random.below(kSigns.size())];
    const auto variant = parse_variant(model, text);
    if (!variant.ok()) continue;
    EXPECT_EQ(*parse_variant(model, print(model, *variant)), *variant) << text;
  }
}

TEST(VariantText, PositionsOfFormatOneAreReadAsTheyWere) {
  const ElasticModel model = plain_model();
  EXPECT_EQ(parse_positions(model, "0.2.-.1"), (Variant{{0, 2, Variant::kCovered, 1}}));
  EXPECT_EQ(parse_positions(model, "0.1.0.0@0?0.9"), (Variant{{0, 1, 0, 0}, 0, 0.9}));
  for (const char* text : {"", "0", "0.0.0", "0.0.0.9", "0.2.0.0", "0.0.0.0@9", "0.0.0.0?2", "original",
                           "a=exp", "0.0.0.x", "0.0.0.0.0", "12.5"})
    EXPECT_FALSE(parse_positions(model, text).has_value()) << text;
}

}  // namespace
}  // namespace limber::test
