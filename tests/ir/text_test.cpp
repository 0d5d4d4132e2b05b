#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/graph.h"

namespace limber {
namespace {

constexpr const char* kNet = R"(graph "net" {
  input %x: f32[N,3,32,32]
  param %conv1.weight: f32[16,3,3,3]
  state %bn.mean: f32[16]
  const %c0: i64[2] = {1, 2}
  %y: f32[N,16,32,32] = Conv(%x, %conv1.weight, _) {groups=1, pads=[1,1,1,1]} "node name"
  %a: f32[2], %b: i64[2] = TopK(%bn.mean) {axis=0, k=2}
  _, %d: i64[2] = TopK(%bn.mean) {axis=0, k=2}
  output %y as "logits"
  output %a as "best" rows %b
}
)";

// What parse says about the text; fails the test when it says nothing.
std::string complaint(std::string_view text, const std::map<std::string, Tensor>* constants = nullptr) {
  const auto graph = parse(text, constants);
  EXPECT_FALSE(graph.ok()) << text;
  return graph.ok() ? "" : graph.status().message();
}

std::string in_graph(std::string_view statements) {
  return fmt::format("graph \"g\" {{\n{}\n}}\n", statements);
}

void expect_round_trip(const Graph& graph) {
  const std::string text = print(graph);
  const auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text;
  EXPECT_EQ(print(*again), text);
  EXPECT_EQ(hash(*again), hash(graph)) << text;
}

TEST(Text, ParsesAndPrintsTheSame) {
  const auto graph = parse(kNet);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(print(*graph), kNet);
  EXPECT_EQ(graph->num_nodes(), 3u);
  EXPECT_EQ(graph->inputs().size(), 1u);
  const Node& conv = graph->nodes()[0];
  EXPECT_EQ(conv.op, OpKind::kConv);
  EXPECT_EQ(conv.name, "node name");
  ASSERT_EQ(conv.inputs.size(), 3u);
  EXPECT_EQ(conv.inputs[2], kNoValue);
  EXPECT_EQ(graph->nodes()[2].outputs[0], kNoValue);
  EXPECT_EQ(graph->outputs()[1].rows, *graph->find("b"));
  EXPECT_EQ(graph->value(*graph->find("bn.mean")).role, Role::kState);
}

TEST(Text, UpdatesRoundTrip) {
  constexpr const char* kStep = R"(graph "step" {
  input %x: f32[4]
  param %w: f32[4]
  state %s: f32[4]
  %new_w: f32[4] = Sub(%w, %x)
  output %new_w as "w" into %w
  output %x as "s" into %s
}
)";
  const auto graph = parse(kStep);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(print(*graph), kStep);
  EXPECT_EQ(graph->outputs()[0].into, *graph->find("w"));
  EXPECT_EQ(graph->outputs()[1].into, *graph->find("s"));
  expect_round_trip(*graph);
  EXPECT_NE(complaint(in_graph("input %x: f32[4]\noutput %x as \"w\" into %w")).find("'w'"),
            std::string::npos);
}

TEST(Text, CommentsAndSpaceMeanNothing) {
  const auto graph = parse(
      "# a net\ngraph\"g\"{input%x :f32[ 2 , N ]#two\n%y\n: f32[2,N]=Relu ( %x ){ }\"n\" output %y # y\n} # "
      "end");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(
      print(*graph),
      "graph \"g\" {\n  input %x: f32[2,N]\n  %y: f32[2,N] = Relu(%x) \"n\"\n  output %y as \"y\"\n}\n");
}

TEST(Text, EveryAttributeKindRoundTrips) {
  Graph g;
  const ValueId x = g.add_input("x", {DType::kF32, {2}});
  Attrs attrs;
  attrs.set("int", int64_t{-7}).set("int_min", std::numeric_limits<int64_t>::min());
  attrs.set("float", 1.0).set("float_e", 1e300).set("float_third", 1.0 / 3).set("negative_zero", -0.0);
  attrs.set("inf", INFINITY).set("minus_inf", -INFINITY).set("nan", std::nan(""));
  attrs.set("denormal", std::numeric_limits<double>::denorm_min());
  attrs.set("string", std::string("a \"b\" \\ \n\t\x01 \x7f é #")).set("empty_string", std::string());
  attrs.set("ints", std::vector<int64_t>{1, -2}).set("no_ints", std::vector<int64_t>{});
  attrs.set("floats", std::vector<double>{1, -2.5, INFINITY}).set("no_floats", std::vector<double>{});
  attrs.set("dims", Shape{Dim(Symbol("N"), 2, -1), 3}).set("no_dims", Shape{}).set("odd name", int64_t{1});
  const ValueId y = g.add(OpKind::kIdentity, {x}, attrs, g.type(x), "y");
  g.add_output(y, "y");
  expect_round_trip(g);
  const Graph again = *parse(print(g));
  for (const auto& [name, value] : attrs.entries()) {
    const AttrValue* found = again.nodes()[0].attrs.find(name);
    ASSERT_NE(found, nullptr) << name;
    if (name == "nan") {
      EXPECT_TRUE(std::isnan(std::get<double>(*found)));
    } else {
      EXPECT_EQ(*found, value) << name;
    }
  }
}

TEST(Text, OddNamesRoundTrip) {
  Graph g;
  g.name = "odd \"graph\"\n";
  std::vector<ValueId> values;
  for (const char* name : {"a b", "%", "#", "onnx::Conv_12", "ends:", ":", "_", "as", "\"", "\\", "日本",
                           "a,b", "/x/y.z-1", "\x01", "t.3", "input", "[0]"}) {
    values.push_back(g.add_input(name, {DType::kF32, {}}));
  }
  for (ValueId v : values) {
    const std::string name = g.value(v).name;
    g.add_output(g.add(OpKind::kRelu, {v}, {}, {DType::kF32, {}}, name + "!"), name);
  }
  expect_round_trip(g);
}

TEST(Text, SiblingOutputNamesMayLookLikeMadeUpOnes) {
  // The parser names outputs in steps; names like those it makes up in between must survive.
  for (const char* outputs :
       {"%a: f32[1], %a.2: f32[1], %a.3: f32[1]", "%a: f32[1], %a.3: f32[1], %a.2: f32[1]",
        "%t.5: f32[1], %t.4: f32[1], %t.3: f32[1]", "_, %t.3: f32[1], %t.2: f32[1]"}) {
    const std::string text = fmt::format(
        "graph \"g\" {{\n  input %x: f32[3]\n  {} = Split(%x) {{axis=0, sizes=[1,1,1]}}\n}}\n", outputs);
    const auto graph = parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    EXPECT_EQ(print(*graph), text);
  }
}

TEST(Text, ConstantsOfEveryTypeRoundTrip) {
  Graph g;
  g.add_constant("f32", Tensor::from<float>({1, -0.0f, 0.1f, 1e-45f, INFINITY, NAN, -NAN, 3.4e38f}, {8}));
  g.add_constant("f64", Tensor::from<double>({0.1, -NAN, NAN, 5e-324}, {2, 2}));
  g.add_constant("i8", Tensor::from<int8_t>({-128, 127}, {2}));
  g.add_constant("u8", Tensor::from<uint8_t>({0, 255}, {2}));
  g.add_constant("i16", Tensor::from<int16_t>({-32768}, {1}));
  g.add_constant("u16", Tensor::from<uint16_t>({65535}, {1}));
  g.add_constant("i32", Tensor::from<int32_t>({INT32_MIN}, {1}));
  g.add_constant("u32", Tensor::from<uint32_t>({UINT32_MAX}, {1}));
  g.add_constant("i64", Tensor::from<int64_t>({INT64_MIN, INT64_MAX}, {2}));
  g.add_constant("u64", Tensor::from<uint64_t>({UINT64_MAX}, {1}));
  g.add_constant("bool", Tensor::from<bool>({true, false}, {2}));
  g.add_constant("none", Tensor::from<float>({}, {0, 3}));
  g.add_constant("scalar", Tensor::scalar(2.0f));
  const uint16_t halves[] = {0x3c00, 0x0001, 0x7bff, 0xfc00, 0x7e00, 0xfe01, 0x8000, 0x3555};
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    Tensor t = *Tensor::allocate({dtype, {8}});
    std::memcpy(t.raw(), halves, sizeof(halves));
    g.add_constant(dtype_name(dtype), t);
  }
  expect_round_trip(g);
  const Graph again = *parse(print(g));
  for (uint32_t v = 0; v < g.num_values(); ++v) {
    const Tensor& before = g.value(ValueId{v}).constant;
    const Tensor& after = again.value(*again.find(g.value(ValueId{v}).name)).constant;
    EXPECT_EQ(std::memcmp(before.raw(), after.raw(), before.bytes()), 0) << g.value(ValueId{v}).name;
  }
}

TEST(Text, LargeConstantsComeFromOutside) {
  Graph g;
  const Tensor big = *Tensor::zeros({DType::kF32, {65}});
  g.add_constant("big", big);
  const std::string text = print(g);
  EXPECT_NE(text.find("const %big: f32[65] = #"), std::string::npos) << text;
  EXPECT_NE(complaint(text).find("not in the text"), std::string::npos);

  std::map<std::string, Tensor> constants{{"big", big}};
  const auto again = parse(text, &constants);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print(*again), text);

  constants["big"] = Tensor::from<float>(std::vector<float>(65, 1.0f), {65});
  EXPECT_NE(complaint(text, &constants).find("have hash"), std::string::npos);
  constants["big"] = *Tensor::zeros({DType::kF32, {5, 13}});
  EXPECT_NE(complaint(text, &constants).find("are f32[5,13], expected f32[65]"), std::string::npos);
  constants["big"] = Tensor();
  EXPECT_FALSE(parse(text, &constants).ok());
}

TEST(Text, SixtyFourElementsAreInline) {
  Graph g;
  g.add_constant("c", *Tensor::zeros({DType::kI64, {8, 8}}));
  expect_round_trip(g);
}

TEST(Text, MessagesSayWhereAndWhatWasExpected) {
  EXPECT_EQ(complaint(""), "1:1: expected 'graph \"name\" {' at the start");
  EXPECT_EQ(complaint("graph g {}"), "1:7: expected '\"', found 'g'");
  EXPECT_EQ(complaint("graph \"g\" {"), "1:12: expected a statement or '}', found the end of the text");
  EXPECT_EQ(complaint(in_graph("input x: f32[]")), "2:7: expected '%', found 'x'");
  EXPECT_EQ(complaint(in_graph("input %x: float[]")),
            "2:11: expected an element type like f32 or i64, found 'float'");
  EXPECT_EQ(complaint(in_graph("input %x: f32[N*2]")), "2:16: expected ']', found '*'");
  EXPECT_EQ(complaint(in_graph("input %x: f32[N,]")),
            "2:17: expected a dimension like 3, N or 2N+1, found ']'");
  EXPECT_EQ(complaint(in_graph("  %y: f32[] = Relu(%x)")), "2:21: 'x' is not defined above");
  EXPECT_EQ(complaint(in_graph("input %x: f32[]\n%y: f32[] = Rely(%x)")),
            "3:13: 'Rely' is not an operator of this release");
  EXPECT_EQ(complaint(in_graph("input %x: f32[]\ninput %x: f32[]")), "3:8: the name 'x' is defined twice");
  EXPECT_EQ(complaint(in_graph("const %c: i64[2] = {1}")),
            "2:22: constant 'c': i64[2] has 2 elements, found 1");
  EXPECT_EQ(complaint(in_graph("const %c: i8[] = {128}")),
            "2:19: expected an integer of 8 bits, found '128'");
  EXPECT_EQ(complaint(in_graph("const %c: bool[] = {1}")), "2:21: expected true or false");
  EXPECT_EQ(complaint(in_graph("inputs %x: f32[]")),
            "2:1: expected input, param, state, const, output, a node or '}', found 'inputs'");
  EXPECT_EQ(complaint("graph \"g\" {} x"), "1:14: expected nothing after the closing '}', found 'x'");
  EXPECT_EQ(complaint("graph \"g\n\" {}"),
            "1:7: the string is not closed on its line; write \\n for a line break");
  EXPECT_EQ(complaint("graph \"\\q\" {}"), "1:9: expected one of the escapes \\\", \\\\, \\n, \\t, \\xNN");
  EXPECT_EQ(complaint(in_graph("\x01")), "2:1: expected a statement or '}', found byte 0x01");
}

TEST(Text, RefusesWhatWouldNotBeAGraph) {
  const auto node = [](std::string_view rest) { return in_graph(fmt::format("input %x: f32[]\n{}", rest)); };
  EXPECT_EQ(complaint(node("%y: f32[] = Relu(%y)")), "3:19: 'y' is not defined above");
  EXPECT_NE(complaint(node("%a: f32[], %a: f32[] = TopK(%x)")).find("defined twice"), std::string::npos);
  EXPECT_NE(complaint(node("%y: f32[] = Relu(%x) {a=1, a=2}")).find("given twice"), std::string::npos);
  EXPECT_NE(complaint(node("%y: f32[] = Relu(%x) {a=[1, 2.0]}")).find("mixes"), std::string::npos);
  EXPECT_NE(complaint(node("%y: f32[] = Relu(%x) {a=1e999}")).find("in range"), std::string::npos);
  EXPECT_NE(complaint(node("output %x as \"o\" output %x as \"o\"")).find("listed twice"), std::string::npos);
  EXPECT_NE(complaint(in_graph("input %x: f32[1,1,1,1,1,1,1,1,1]")).find("more than 8 dimensions"),
            std::string::npos);
  EXPECT_NE(complaint(in_graph("input %x: f32[9223372036854775807,2]")).find("too large"), std::string::npos);
  EXPECT_NE(complaint(in_graph("input %x: f32[-1]")).find("negative"), std::string::npos);
  EXPECT_NE(complaint(in_graph("const %c: f32[N] = {1.0}")).find("no symbols"), std::string::npos);
  EXPECT_NE(complaint(in_graph("const %c: f32[281474976710656] = {1.0}")).find("found 1"), std::string::npos);
  EXPECT_NE(complaint(in_graph("input %\"\": f32[]")).find("empty"), std::string::npos);
}

TEST(Text, CutAnywhereItFailsWithoutHarm) {
  const std::string text = std::string(kNet) + "# end";
  const size_t end = text.rfind('}') + 1;
  for (size_t length = 0; length < end; ++length) {
    EXPECT_FALSE(parse(std::string_view(text).substr(0, length)).ok()) << length;
  }
}

TEST(Text, AnyByteChangedNeverDoesHarm) {
  const std::string extra =
      "const %f: f16[3] = {1.5, nan(0x7e01), -inf}\nconst %h: f32[65] = #0123456789abcdef\n"
      "%q: bool[] = Cast(%x) {a=[]f, b=<N,2>, c=\"\\x41\", d=nan}\n";
  const std::string text = std::string(kNet).insert(std::string(kNet).find("  output"), extra);
  const std::map<std::string, Tensor> constants{{"h", *Tensor::zeros({DType::kF32, {65}})}};
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'\0', '"', '\\', '{', '}', '[', ']', '(', '<',  '%',
                         '_',  ',', ':',  '=', '#', '9', '-', 'n', '\n', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      const auto graph = parse(changed, &constants);
      if (!graph.ok()) continue;
      const std::string printed = print(*graph);
      const auto again = parse(printed, &constants);
      ASSERT_TRUE(again.ok() || printed.find('#') != std::string::npos) << again.status().message() << "\n"
                                                                        << printed;
    }
  }
}

}  // namespace
}  // namespace limber
