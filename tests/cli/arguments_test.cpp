// The command line inside the process: what is parsed into which variable, and what each mistake is called.
#include "cli/arguments.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/train_arguments.h"

namespace limber {
namespace {

using Strings = std::vector<std::string>;

struct Everything {
  std::string text, color = "red";
  Strings many;
  int small = 5;
  int64_t large = 6;
  double real = 0.5;
  std::optional<double> maybe;
  uint64_t seed = 0;
  bool on = false;
  int meaning = 0;
  Strings given;

  void declare(Arguments& a) {
    a.text("-t,--text", text, "TEXT", "a text");
    a.texts("files", many, "FILE", "some files");
    a.number("--small", small, 1, 9, "a small number");
    a.number("--large", large, int64_t{0}, int64_t{1} << 40, "a large one");
    a.number("--real", real, -1.0, 1.0, "a fraction");
    a.number("--maybe", maybe, 0.0, 1e9, "perhaps");
    a.seed("--seed", seed, "a seed");
    a.flag("--on", on, "a switch");
    a.choice("--color", color, {"red", "green"}, "one of two");
    a.choice("--meaning", meaning, {{"one", 1}, {"two", 2}}, "a word with a meaning");
    a.parsed("--pair", "A=B", "a pair", [this](const std::string& word) -> std::string {
      if (word.find('=') == std::string::npos) return "'" + word + "' is no pair";
      given.push_back(word);
      return {};
    });
  }
  Status parse(const Strings& words) {
    return parse_words(words, [this](Arguments& a) { declare(a); });
  }
};

TEST(Arguments, FillTheirVariables) {
  Everything e;
  const Status status = e.parse({"a.onnx",
                                 "--small",
                                 "7",
                                 "--large=1e9",
                                 "b.onnx",
                                 "-t",
                                 "words with spaces",
                                 "--real",
                                 "-0.25",
                                 "--maybe",
                                 "3",
                                 "--seed",
                                 "18446744073709551615",
                                 "--on",
                                 "--color",
                                 "green",
                                 "--meaning",
                                 "two",
                                 "--pair",
                                 "x=1",
                                 "--pair",
                                 "y=2"});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(e.many, (Strings{"a.onnx", "b.onnx"}));
  EXPECT_EQ(e.small, 7);
  EXPECT_EQ(e.large, 1'000'000'000);
  EXPECT_EQ(e.text, "words with spaces");
  EXPECT_EQ(e.real, -0.25);
  EXPECT_EQ(e.maybe, 3);
  EXPECT_EQ(e.seed, UINT64_MAX);
  EXPECT_TRUE(e.on);
  EXPECT_EQ(e.color, "green");
  EXPECT_EQ(e.meaning, 2);
  EXPECT_EQ(e.given, (Strings{"x=1", "y=2"}));
}

TEST(Arguments, WhatIsNotGivenKeepsItsDefault) {
  Everything e;
  ASSERT_TRUE(e.parse({}).ok());
  EXPECT_EQ(e.small, 5);
  EXPECT_EQ(e.color, "red");
  EXPECT_FALSE(e.maybe);
  EXPECT_FALSE(e.on);
}

TEST(Arguments, MistakesAreNamed) {
  struct Mistake {
    Strings words;
    std::string part;
  };
  const Mistake mistakes[] = {
      {{"--small", "10"}, "'10' should be a whole number from 1 to 9"},
      {{"--small", "0"}, "--small"},
      {{"--small", "2.5"}, "a whole number"},
      {{"--small", ""}, "--small"},
      {{"--small"}, "--small"},
      {{"--large", "-1"}, "from 0 to 1099511627776"},
      {{"--large", "99999999999999999999"}, "'99999999999999999999'"},
      {{"--real", "1.01"}, "'1.01' should be a number from -1 to 1"},
      {{"--real", "nan"}, "'nan'"},
      {{"--maybe", "lots"}, "'lots'"},
      {{"--seed", "-1"}, "'-1' should be a whole number from 0"},
      {{"--seed", "18446744073709551616"}, "'18446744073709551616'"},
      {{"--seed", "1.5"}, "'1.5'"},
      {{"--color", "blue"}, "blue"},
      {{"--meaning", "three"}, "three"},
      {{"--pair", "lonely"}, "'lonely' is no pair"},
      {{"--nothing"}, "--nothing"},
  };
  for (const Mistake& mistake : mistakes) {
    Everything e;
    const Status status = e.parse(mistake.words);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << mistake.part;
    EXPECT_NE(status.message().find(mistake.part), std::string::npos) << status.message();
    EXPECT_EQ(status.message().rfind("'" + mistake.words[0], 0), 0u) << status.message();
  }
}

TEST(Arguments, CommonOptionsReachTheJob) {
  JobOptions options;
  bool json = false;
  const auto parse = [&](const Strings& words) {
    return parse_words(words, [&](Arguments& a) { add_common(a, options, json); });
  };
  ASSERT_TRUE(
      parse({"net.onnx",     "--json", "--threads", "3",       "--batch",       "8",      "--dim",
             "height=480",   "--dim",  "a=b=7",     "--shape", "image=1x3x?x9", "--tune", "on",
             "--tune-cache", "t.json", "--seed",    "4",       "--backend",     "ref",    "--no-optimize"})
          .ok());
  EXPECT_EQ(options.model, "net.onnx");
  EXPECT_TRUE(json && options.reference && options.as_is);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.batch, 8);
  EXPECT_EQ(options.dims.at("height"), 480);
  EXPECT_EQ(options.dims.at("a=b"), 7) << "names may hold a '='";
  EXPECT_EQ(options.shapes.at("image"), (std::vector<int64_t>{1, 3, -1, 9}));
  EXPECT_EQ(options.tune, Tune::kOn);
  EXPECT_EQ(options.tune_cache, "t.json");
  for (const Strings& words : {Strings{},
                               {"m", "--dim", "=4"},
                               {"m", "--dim", "h="},
                               {"m", "--dim", "h=0"},
                               {"m", "--dim", "h=-1"},
                               {"m", "--shape", "image="},
                               {"m", "--shape", "=1x2"},
                               {"m", "--shape", "image=1x0"},
                               {"m", "--batch", "0"},
                               {"m", "--threads", "1025"},
                               {"m", "--tune", "yes"}}) {
    EXPECT_FALSE(parse(words).ok()) << (words.empty() ? "no model" : words.back());
  }
}

TEST(Arguments, HowImagesAreSeen) {
  ImageOptions options;
  const auto parse = [&](const Strings& words) {
    options = {};
    return parse_words(words, [&](Arguments& a) { add_image_arguments(a, options); });
  };
  ASSERT_TRUE(parse({"--mean", "0.5", "--std", "0.1,0.2,0.3", "--size", "32x48", "--crop", "24"}).ok());
  ASSERT_TRUE(options.normalisation);
  EXPECT_EQ(options.normalisation->mean, (std::array<float, 3>{0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(options.normalisation->std, (std::array<float, 3>{0.1f, 0.2f, 0.3f}));
  EXPECT_EQ(options.size, (std::vector<int64_t>{32, 48}));
  EXPECT_EQ(options.crop, 24);
  ASSERT_TRUE(parse({}).ok());
  EXPECT_FALSE(options.normalisation) << "what is saved with the model counts";
  for (const Strings& words : {Strings{"--mean", "1,2"},
                               {"--mean", "a"},
                               {"--std", "0"},
                               {"--std", "1,1,-1"},
                               {"--size", "0"},
                               {"--size", "?"},
                               {"--size", "1x2x3"},
                               {"--size", "99999999"},
                               {"--crop", "0"},
                               {"--preprocess", "magic"}}) {
    EXPECT_FALSE(parse(words).ok()) << words[0] << " " << words[1];
  }
}

TEST(Arguments, AdviceOnImagesThatCannotBeReadAndWorkers) {
  OnBadImage bad = OnBadImage::kFail;
  int workers = -1;
  const auto parse = [&](const Strings& words) {
    return parse_words(words, [&](Arguments& a) {
      add_bad_images_argument(a, bad);
      add_workers_argument(a, workers);
    });
  };
  ASSERT_TRUE(parse({"--bad-images", "skip", "--workers", "0"}).ok());
  EXPECT_EQ(bad, OnBadImage::kSkip);
  EXPECT_EQ(workers, 0);
  EXPECT_FALSE(parse({"--bad-images", "ignore"}).ok());
  EXPECT_FALSE(parse({"--workers", "257"}).ok());
}

TEST(Arguments, ATrainingHasItsOptions) {
  TrainCommand options;
  const auto parse = [&](const Strings& words) {
    options = {};
    return parse_words(words, [&](Arguments& a) { declare_train(a, options); });
  };
  ASSERT_TRUE(
      parse({"m.onnx", "--data", "d", "-o", "run", "--epochs", "3", "--rho", "0.5", "--lr", "0.01"}).ok());
  EXPECT_EQ(options.data, "d");
  EXPECT_EQ(options.output, "run");
  EXPECT_EQ(options.trainer.epochs, 3);
  EXPECT_EQ(options.rho, 0.5);
  EXPECT_EQ(options.rate, 0.01);
  EXPECT_FALSE(parse({"m.onnx", "--data", "d"}).ok()) << "needs a folder";
  EXPECT_FALSE(parse({"m.onnx", "-o", "run", "--data", "d", "--rho", "nan"}).ok());
  EXPECT_FALSE(parse({"m.onnx", "-o", "run", "--data", "d", "--epochs", "-1"}).ok());
}

// A program of two commands, run inside this process.
struct Ran {
  int code;
  std::string out, err;
};

Ran run(Strings words, const CommandLine::Action& action, int* number = nullptr) {
  CommandLine line;
  int unused = 0;
  Arguments arguments = line.add("work", "works", action);
  arguments.number("--number", number != nullptr ? *number : unused, 0, 9, "a number");
  line.add("rest", "rests", [] { return Result<int>(kExitDone); });
  words.insert(words.begin(), "limber");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  spdlog::drop_all();  // each run makes the logger of the process
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = line.run(static_cast<int>(argv.size()), argv.data());
  const std::string out = testing::internal::GetCapturedStdout();
  return {code, out, testing::internal::GetCapturedStderr()};
}

TEST(CommandLine, RunsTheChosenCommandWithItsOptions) {
  int number = 0;
  const Ran ran = run(
      {"work", "--number", "4"}, [&] { return Result<int>(number); }, &number);
  EXPECT_EQ(ran.code, 4);
  EXPECT_EQ(ran.err, "");
}

TEST(CommandLine, AFailureIsALineAndItsCode) {
  const Ran failed = run({"work"}, [] { return Result<int>(error(Code::kIo, "the disk is gone")); });
  EXPECT_EQ(failed.code, kExitFailed);
  EXPECT_EQ(failed.err, "limber: error: the disk is gone\n");
  EXPECT_EQ(failed.out, "");
  EXPECT_EQ(run({"work"}, [] { return Result<int>(unsupported("no such operator")); }).code,
            kExitUnsupported);
}

TEST(CommandLine, WrongUseNeverRunsAnything) {
  bool ran = false;
  const CommandLine::Action action = [&] {
    ran = true;
    return Result<int>(kExitDone);
  };
  for (const Strings& words : {Strings{},
                               {"worc"},
                               {"work", "--number", "x"},
                               {"work", "--nunber", "3"},
                               {"work", "more"},
                               {"work", "--log-level", "loud"},
                               {"--completion"}}) {
    const Ran wrong = run(words, action);
    EXPECT_EQ(wrong.code, kExitUsage) << wrong.err;
    EXPECT_NE(wrong.err.find("limber: error: "), std::string::npos) << wrong.err;
    EXPECT_EQ(wrong.out, "");
  }
  EXPECT_FALSE(ran);
  EXPECT_NE(run({"worc"}, action).err.find("Did you mean 'work'?"), std::string::npos);
  EXPECT_NE(run({"work", "--nunber", "3"}, action).err.find("Did you mean --number?"), std::string::npos);
  EXPECT_NE(run({"work", "more"}, action).err.find("'more' is one argument too many"), std::string::npos);
}

TEST(CommandLine, HelpGoesToStdoutAndIsNoError) {
  for (const Strings& words :
       {Strings{"--help"}, {"work", "--help"}, {"--version"}, {"--man"}, {"--completion", "fish"}}) {
    const Ran help = run(words, [] { return Result<int>(kExitFailed); });
    EXPECT_EQ(help.code, kExitDone) << words[0];
    EXPECT_EQ(help.err, "");
    EXPECT_FALSE(help.out.empty());
  }
  EXPECT_NE(run({"work", "--help"}, [] { return Result<int>(0); }).out.find("--number"), std::string::npos);
}

TEST(CommandLine, TheLogIsAsLoudAsAsked) {
  const CommandLine::Action talk = [] {
    spdlog::info("a detail");
    spdlog::warn("a worry");
    return Result<int>(kExitDone);
  };
  const std::string usual = run({"work"}, talk).err;
  EXPECT_TRUE(usual.find("a worry") != std::string::npos && usual.find("a detail") == std::string::npos)
      << usual;
  EXPECT_NE(run({"work", "--log-level", "info"}, talk).err.find("a detail"), std::string::npos);
  EXPECT_EQ(run({"work", "--log-level", "off"}, talk).err, "");
}

TEST(Options, DimensionsOfAShape) {
  using Dims = std::vector<int64_t>;
  EXPECT_EQ(parse_dims("1x3x224x224"), (Dims{1, 3, 224, 224}));
  EXPECT_EQ(parse_dims("1,3"), (Dims{1, 3}));
  EXPECT_EQ(parse_dims("?x3x?"), (Dims{-1, 3, -1}));
  EXPECT_EQ(parse_dims("7"), Dims{7});
  for (const char* text :
       {"", "x", "1x", "x1", "1xx2", "0x3", "-2x3", "1.5", "??", "1X2", "99999999999999999999"})
    EXPECT_EQ(parse_dims(text), Dims{}) << text;
}

}  // namespace
}  // namespace limber
