#include "tests/passes/golden.h"

namespace limber {
namespace {

// A node between two Relus, which must go away (or stay).
std::string chain(std::string_view type, std::string_view node) {
  return fmt::format("input %x: {0}\n%a: {0} = Relu(%x)\n{1}\n%y: {0} = Sigmoid(%b)\noutput %y", type, node);
}

void expect_gone(std::string_view type, std::string_view node) {
  expect_rewrite(simplify, chain(type, node),
                 fmt::format("input %x: {0}\n%a: {0} = Relu(%x)\n%y: {0} = Sigmoid(%a)\noutput %y", type));
}

TEST(Simplify, RemovesNodesThatDoNothing) {
  expect_gone("f32[N,4]", "%b: f32[N,4] = Identity(%a)");
  expect_gone("f32[N,4]", "%b: f32[N,4] = Cast(%a) {to=\"f32\"}");
  expect_gone("f32[N,4]", "%b: f32[N,4] = Reshape(%a) {shape=<N,4>}");
  expect_gone("f32[N,4]", "%b: f32[N,4] = Transpose(%a) {perm=[0,1]}");
  expect_gone("f32[N,4]", "%b: f32[N,4] = Expand(%a) {shape=<N,4>}");
  expect_gone("f32[2,4]",
              "%b: f32[2,4] = Slice(%a) {axes=[1], ends=[9223372036854775807], starts=[0], steps=[1]}");
  expect_gone("f32[2,4]", "%b: f32[2,4] = Pad(%a) {pads=[0,0,0,0]}");
  expect_gone("f32[2,4]", "%b: f32[2,4] = Tile(%a) {repeats=[1,1]}");
  expect_gone("f32[2,4]", "%b: f32[2,4] = Concat(%a) {axis=1}");
  expect_gone("f32[2,4]", "%b: f32[2,4] = Split(%a) {axis=1, sizes=[4]}");
  expect_gone("f32[2,4,1,1]", "%b: f32[2,4,1,1] = GlobalAveragePool(%a)");
  expect_gone("f32[2,4,5,5]",
              "%b: f32[2,4,5,5] = AveragePool(%a) {kernel=[1,1], pads=[0,0,0,0], strides=[1,1]}");
  expect_gone(
      "f32[2,4,5,5]",
      "%b: f32[2,4,5,5] = MaxPool(%a) {dilations=[1,1], kernel=[1,1], pads=[0,0,0,0], strides=[1,1]}");
  expect_gone("f32[2,4,5,5]",
              "%b: f32[2,4,5,5] = Resize(%a) {coordinates=\"asymmetric\", mode=\"nearest\", "
              "nearest=\"floor\", scales=[1.0,1.0,1.0,1.0], shape=<2,4,5,5>}");
}

TEST(Simplify, KeepsNodesThatOnlyKeepTheType) {
  expect_unchanged(
      simplify,
      chain("f32[4]",
            "%b: f32[4] = Slice(%a) {axes=[0], ends=[-9223372036854775808], starts=[-1], steps=[-1]}"));
  expect_unchanged(simplify, chain("f32[4]", "%b: f32[4] = Pad(%a) {pads=[1,-1]}"));
  expect_unchanged(simplify, chain("f32[4,4]", "%b: f32[4,4] = Transpose(%a) {perm=[1,0]}"));
  expect_unchanged(simplify,
                   chain("f32[1,1,5,5]",
                         "%b: f32[1,1,5,5] = AveragePool(%a) {kernel=[3,3], pads=[1,1,1,1], strides=[1,1]}"));
  expect_unchanged(simplify, "input %x: f32[1,4]\n%y: f32[2,4] = Concat(%x, %x) {axis=0}\noutput %y");
}

TEST(Simplify, KeepsACopyThatIsAnOutputOfSomethingNotComputed) {
  expect_unchanged(simplify, "input %x: f32[4]\n%y: f32[4] = Identity(%x)\noutput %y");
  expect_unchanged(simplify, "param %w: f32[4]\n%y: f32[4] = Identity(%w)\noutput %y");
  expect_unchanged(
      simplify, "input %x: f32[4]\n%a: f32[4] = Relu(%x)\n%y: f32[4] = Identity(%a)\noutput %a\noutput %y");
  expect_rewrite(simplify, "input %x: f32[4]\n%a: f32[4] = Relu(%x)\n%y: f32[4] = Identity(%a)\noutput %y",
                 "input %x: f32[4]\n%a: f32[4] = Relu(%x)\noutput %a as \"y\"");
}

TEST(Simplify, MergesReshapes) {
  expect_rewrite(simplify,
                 "input %x: f32[N,4,2]\n%a: f32[N,8] = Reshape(%x) {shape=<N,8>}\n"
                 "%b: f32[N,2,4] = Reshape(%a) {shape=<N,2,4>}\n%y: f32[N,2,4] = Relu(%b)\noutput %y",
                 "input %x: f32[N,4,2]\n%b: f32[N,2,4] = Reshape(%x) {shape=<N,2,4>}\n%y: f32[N,2,4] = "
                 "Relu(%b)\noutput %y");
  expect_rewrite(simplify,
                 "input %x: f32[N,4,2]\n%a: f32[N,8] = Reshape(%x) {shape=<N,8>}\n"
                 "%b: f32[N,4,2] = Reshape(%a) {shape=<N,4,2>}\n%y: f32[N,4,2] = Relu(%b)\noutput %y",
                 "input %x: f32[N,4,2]\n%y: f32[N,4,2] = Relu(%x)\noutput %y");
}

TEST(Simplify, MergesReshapesAlsoWhenTheFirstIsReadElsewhere) {
  expect_rewrite(
      simplify,
      "input %x: f32[4,2]\n%a: f32[8] = Reshape(%x) {shape=<8>}\n%b: f32[2,4] = Reshape(%a) {shape=<2,4>}\n"
      "%y: f32[8] = Relu(%a)\n%z: f32[2,4] = Relu(%b)\noutput %y\noutput %z",
      "input %x: f32[4,2]\n%a: f32[8] = Reshape(%x) {shape=<8>}\n%b: f32[2,4] = Reshape(%x) {shape=<2,4>}\n"
      "%y: f32[8] = Relu(%a)\n%z: f32[2,4] = Relu(%b)\noutput %y\noutput %z");
}

TEST(Simplify, MergesTransposes) {
  expect_rewrite(simplify,
                 "input %x: f32[2,3,4]\n%a: f32[3,4,2] = Transpose(%x) {perm=[1,2,0]}\n"
                 "%b: f32[2,4,3] = Transpose(%a) {perm=[2,1,0]}\n%y: f32[2,4,3] = Relu(%b)\noutput %y",
                 "input %x: f32[2,3,4]\n%b: f32[2,4,3] = Transpose(%x) {perm=[0,2,1]}\n%y: f32[2,4,3] = "
                 "Relu(%b)\noutput %y");
  expect_rewrite(simplify,
                 "input %x: f32[2,3]\n%a: f32[3,2] = Transpose(%x) {perm=[1,0]}\n"
                 "%b: f32[2,3] = Transpose(%a) {perm=[1,0]}\n%y: f32[2,3] = Relu(%b)\noutput %y",
                 "input %x: f32[2,3]\n%y: f32[2,3] = Relu(%x)\noutput %y");
}

TEST(Simplify, TransposeThatMovesNoByteIsAReshape) {
  expect_rewrite(simplify,
                 "input %x: f32[N,8,1,1]\n%y: f32[N,1,1,8] = Transpose(%x) {perm=[0,2,3,1]} \"t\"\noutput %y",
                 "input %x: f32[N,8,1,1]\n%y: f32[N,1,1,8] = Reshape(%x) {shape=<N,1,1,8>} \"t\"\noutput %y");
  expect_unchanged(
      simplify, "input %x: f32[N,8,2,1]\n%y: f32[N,2,1,8] = Transpose(%x) {perm=[0,2,3,1]} \"t\"\noutput %y");
}

TEST(Simplify, RemovesArithmeticThatDoesNothing) {
  const auto with_constant = [](double c, std::string_view expression) {
    return fmt::format(
        "input %x: f32[2,3]\nconst %c: f32[] = {{{}}}\n%a: f32[2,3] = Relu(%x)\n%b: f32[2,3] = {}\n"
        "%y: f32[2,3] = Sigmoid(%b)\noutput %y",
        c, expression);
  };
  const char* gone = "input %x: f32[2,3]\n%a: f32[2,3] = Relu(%x)\n%y: f32[2,3] = Sigmoid(%a)\noutput %y";
  expect_rewrite(simplify, with_constant(1, "Mul(%a, %c)"), gone);
  expect_rewrite(simplify, with_constant(1, "Mul(%c, %a)"), gone);
  expect_rewrite(simplify, with_constant(0, "Add(%a, %c)"), gone);
  expect_rewrite(simplify, with_constant(0, "Add(%c, %a)"), gone);
  expect_rewrite(simplify, with_constant(0, "Sub(%a, %c)"), gone);
  expect_rewrite(simplify, with_constant(1, "Div(%a, %c)"), gone);
  expect_rewrite(simplify, with_constant(1, "Pow(%a, %c)"), gone);
  for (const char* kept : {"Sub(%c, %a)", "Add(%a, %c)", "Div(%c, %a)"}) {
    expect_unchanged(simplify, with_constant(1, kept));
  }
  expect_unchanged(simplify, with_constant(3, "Div(%a, %c)"));
  expect_unchanged(simplify, with_constant(3, "Pow(%a, %c)"));
}

TEST(Simplify, KeepsArithmeticThatBroadcasts) {
  expect_unchanged(simplify,
                   "input %x: f32[3]\nconst %c: f32[1,1] = {0.0}\n%y: f32[1,3] = Add(%x, %c)\noutput %y");
}

TEST(Simplify, WritesPowersCheaper) {
  const auto power = [](double c, std::string_view expression) {
    return fmt::format("input %x: f32[3]\nconst %c: f32[] = {{{}}}\n%y: f32[3] = {} \"p\"\noutput %y", c,
                       expression);
  };
  const auto cheap = [](std::string_view expression) {
    return fmt::format("input %x: f32[3]\n%y: f32[3] = {} \"p\"\noutput %y", expression);
  };
  expect_rewrite(simplify, power(2, "Pow(%x, %c)"), cheap("Mul(%x, %x)"));
  expect_rewrite(simplify, power(0.5, "Pow(%x, %c)"), cheap("Sqrt(%x)"));
  expect_rewrite(simplify, power(-1, "Pow(%x, %c)"), cheap("Reciprocal(%x)"));
}

TEST(Simplify, DividesByAPowerOfTwoExactly) {
  expect_rewrite(simplify,
                 "input %x: f32[3]\nconst %c: f32[] = {8.0}\n%y: f32[3] = Div(%x, %c) \"d\"\noutput %y",
                 "input %x: f32[3]\nconst %reciprocal: f32[] = {0.125}\n%y: f32[3] = Mul(%x, %reciprocal) "
                 "\"d\"\noutput %y");
  expect_unchanged(simplify, "input %x: i64[3]\nconst %c: i64[] = {8}\n%y: i64[3] = Div(%x, %c)\noutput %y");
  expect_unchanged(simplify,
                   "input %x: f32[3]\nconst %c: f32[] = {0.0}\n%y: f32[3] = Div(%x, %c)\noutput %y");
}

TEST(Simplify, WritesLimitsAsReluOrClip) {
  const auto limit = [](double c, std::string_view expression) {
    return fmt::format("input %x: f32[3]\nconst %c: f32[] = {{{}}}\n%y: f32[3] = {} \"l\"\noutput %y", c,
                       expression);
  };
  const auto cheap = [](std::string_view expression) {
    return fmt::format("input %x: f32[3]\n%y: f32[3] = {} \"l\"\noutput %y", expression);
  };
  expect_rewrite(simplify, limit(0, "Max(%x, %c)"), cheap("Relu(%x)"));
  expect_rewrite(simplify, limit(2, "Max(%c, %x)"), cheap("Clip(%x) {max=inf, min=2.0}"));
  expect_rewrite(simplify, limit(6, "Min(%x, %c)"), cheap("Clip(%x) {max=6.0, min=-inf}"));
  expect_rewrite(simplify, cheap("Clip(%x) {min=0.0}"), cheap("Relu(%x)"));
  expect_unchanged(simplify, cheap("Clip(%x) {max=6.0}"));
  expect_unchanged(simplify, "input %x: i32[3]\nconst %c: i32[] = {6}\n%y: i32[3] = Min(%x, %c)\noutput %y");
}

TEST(Simplify, MergesLimits) {
  const auto pair = [](std::string_view first, std::string_view second, std::string_view more = "") {
    return fmt::format("input %x: f32[3]\n%a: f32[3] = {}\n%y: f32[3] = {}\noutput %y{}", first, second,
                       more);
  };
  const auto one = [](std::string_view both) {
    return fmt::format("input %x: f32[3]\n%y: f32[3] = {}\noutput %y", both);
  };
  expect_rewrite(simplify, pair("Relu(%x)", "Clip(%a) {max=6.0}"), one("Clip(%x) {max=6.0, min=0.0}"));
  expect_rewrite(simplify, pair("Relu(%x)", "Relu(%a)"), one("Relu(%x)"));
  expect_rewrite(simplify, pair("Clip(%x) {max=5.0, min=-1.0}", "Clip(%a) {max=7.0, min=2.0}"),
                 one("Clip(%x) {max=5.0, min=2.0}"));
  expect_rewrite(simplify, pair("Clip(%x) {max=1.0, min=0.0}", "Clip(%a) {max=9.0, min=4.0}"),
                 one("Clip(%x) {max=4.0, min=4.0}"));
  expect_unchanged(simplify, pair("Relu(%x)", "Clip(%a) {max=6.0, min=-inf}", "\noutput %a"));
}

TEST(Simplify, DropsUnreadOptionalOutputsAndDeadNodes) {
  expect_rewrite(simplify,
                 "input %x: f32[1,1,4,4]\n%y: f32[1,1,2,2], %i: i64[1,1,2,2] = MaxPool(%x) {dilations=[1,1], "
                 "kernel=[2,2], "
                 "pads=[0,0,0,0], strides=[2,2]}\n%dead: i64[1,1,2,2] = Identity(%i)\noutput %y",
                 "input %x: f32[1,1,4,4]\n%y: f32[1,1,2,2] = MaxPool(%x) {dilations=[1,1], kernel=[2,2], "
                 "pads=[0,0,0,0], "
                 "strides=[2,2]}\noutput %y");
  expect_unchanged(simplify, "input %x: f32[4]\n%v: f32[2], %i: i64[2] = TopK(%x) {axis=0, k=2}\noutput %v");
  expect_unchanged(simplify,
                   "input %x: f32[4]\n%a: f32[2], %b: f32[2] = Split(%x) {axis=0, sizes=[2,2]}\noutput %a");
}

TEST(MergeCommon, ComputesEqualNodesOnce) {
  expect_rewrite(
      merge_common,
      "input %x: f32[4]\nconst %c: f32[] = {3.0}\nconst %d: f32[] = {3.0}\n%a: f32[4] = Mul(%x, %c)\n"
      "%b: f32[4] = Mul(%x, %d)\n%e: f32[4] = Relu(%a)\n%f: f32[4] = Relu(%b)\n%y: f32[4] = Add(%e, "
      "%f)\noutput %y",
      "input %x: f32[4]\nconst %c: f32[] = {3.0}\n%a: f32[4] = Mul(%x, %c)\n%e: f32[4] = Relu(%a)\n"
      "%y: f32[4] = Add(%e, %e)\noutput %y");
}

TEST(MergeCommon, KeepsWhatDiffers) {
  expect_unchanged(
      merge_common,
      "input %x: f32[4]\n%a: f32[4] = LeakyRelu(%x) {alpha=0.1}\n%b: f32[4] = LeakyRelu(%x) {alpha=0.2}\n"
      "%y: f32[4] = Add(%a, %b)\noutput %y");
  expect_unchanged(
      merge_common,
      "const %c: f32[] = {1.0}\nconst %d: i32[] = {1065353216}\ninput %x: f32[]\ninput %z: i32[]\n"
      "%a: f32[] = Add(%x, %c)\n%b: i32[] = Add(%z, %d)\noutput %a\noutput %b");
}

TEST(MergeCommon, KeepsTwoOutputsApart) {
  expect_unchanged(merge_common,
                   "input %x: f32[4]\n%a: f32[4] = Relu(%x)\n%b: f32[4] = Relu(%x)\noutput %a\noutput %b");
}

TEST(MergeCommon, MergesNodesWithSeveralOutputs) {
  expect_rewrite(
      merge_common,
      "input %x: f32[4]\n%a: f32[2], %b: f32[2] = Split(%x) {axis=0, sizes=[2,2]}\n"
      "%c: f32[2], %d: f32[2] = Split(%x) {axis=0, sizes=[2,2]}\n%y: f32[2] = Add(%a, %d)\noutput %y",
      "input %x: f32[4]\n%a: f32[2], %b: f32[2] = Split(%x) {axis=0, sizes=[2,2]}\n"
      "%y: f32[2] = Add(%a, %b)\noutput %y");
}

TEST(FoldConstants, ComputesSmallConstants) {
  expect_rewrite(fold_constants,
                 "input %x: f32[4]\nconst %d: i64[] = {64}\nconst %h: f32[] = {-0.5}\n%f: f32[] = Cast(%d) "
                 "{to=\"f32\"}\n"
                 "%s: f32[] = Pow(%f, %h)\n%y: f32[4] = Mul(%x, %s)\noutput %y",
                 "input %x: f32[4]\nconst %s: f32[] = {0.125}\n%y: f32[4] = Mul(%x, %s)\noutput %y");
}

TEST(FoldConstants, LeavesParametersToThePlan) {
  expect_unchanged(
      fold_constants,
      "input %x: f32[4]\nparam %w: f32[4]\n%s: f32[4] = Neg(%w)\n%y: f32[4] = Mul(%x, %s)\noutput %y");
}

}  // namespace
}  // namespace limber
