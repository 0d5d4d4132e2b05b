#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "data/image.h"
#include "tensor/npy.h"
#include "tests/cli/program.h"

namespace limber {
namespace {

using nlohmann::json;

// One line, in the form every error has.
void expect_error(const Outcome& outcome, int code, const std::string& part) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.err.rfind("limber: error: ", 0), 0U) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST(Usage, WrongUseIsExitCode2AndSaysWhatIsWrong) {
  expect_error(limber_program("inspekt x"), 2, "Did you mean 'inspect'?");
  expect_error(limber_program("inspect builtin:resnet8 --thread 2"), 2, "Did you mean --threads?");
  expect_error(limber_program("inspect builtin:resnet8 --thraeds=2"), 2, "Did you mean --threads?");
  expect_error(limber_program("inspect builtin:resnet8 --colour"), 2,
               "'limber inspect' has no option --colour");
  expect_error(limber_program("inspect builtin:resnet8 other.onnx"), 2, "'other.onnx'");
  expect_error(limber_program("inspect"), 2, "model");
  expect_error(limber_program("inspect builtin:resnet8 --threads many"), 2, "--threads");
  expect_error(limber_program("inspect builtin:resnet8 --dim N"), 2, "NAME=NUMBER");
  expect_error(limber_program("inspect builtin:resnet8 --shape image=1x3xA"), 2, "1x3xA");
  expect_error(limber_program("run builtin:resnet8"), 2, "--input");
  expect_error(limber_program("run builtin:resnet8 --input a.png --mean 1,2"), 2, "--mean");
  expect_error(limber_program("run builtin:resnet8 --input a.png --std 0"), 2, "--std");
}

TEST(Usage, WithoutACommandThereIsAnOverview) {
  const Outcome outcome = limber_program("");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  for (const char* part : {"Run and measure", "Train", "  inspect ", "  search ", "limber bench model.onnx",
                           "limber demo", "limber: error: which command?"})
    EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.err;
}

TEST(Usage, HelpAndVersionGoToStdout) {
  for (const char* arguments : {"--help", "inspect --help", "run --help", "bench --help", "--version"}) {
    const Outcome outcome = limber_program(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments;
    EXPECT_FALSE(outcome.out.empty()) << arguments;
    EXPECT_EQ(outcome.err, "") << arguments;
  }
  const std::string version = limber_program("--version").out;
  for (const char* part : {"limber ", "build", "oneDNN", "operator sets", "CPU"})
    EXPECT_TRUE(contains(version, part)) << version;
}

TEST(Usage, NamesThatDoNotExistComeWithASuggestion) {
  expect_error(limber_program("inspect builtin:resnet9"), 1, "builtin:resnet8");
  expect_error(limber_program("run builtin:resnet8 --input imge=x.png"), 2, "Did you mean 'image'?");
  expect_error(limber_program("inspect builtin:resnet8 --dim M=4"), 1, "'M'");
  expect_error(limber_program("inspect --thread 3 builtin:resnet8"), 2,
               "'limber inspect' has no option --thread. Did you mean --threads?");
}

TEST(Files, MissingAndBrokenModelsAreExitCode1WithTheFileName) {
  const Folder folder;
  expect_error(limber_program("inspect " + (folder / "none.onnx")), 1, "none.onnx");
  ASSERT_EQ(limber_program("export builtin:resnet8 -o " + (folder / "whole.onnx")).code, 0);
  const std::string whole = read_text(folder / "whole.onnx");
  write_text(folder / "cut.onnx", whole.substr(0, whole.size() / 2));
  write_text(folder / "empty.onnx", "");
  write_text(folder / "text.onnx", "this is not a model");
  for (const char* name : {"cut.onnx", "empty.onnx", "text.onnx"}) {
    for (const char* command : {"inspect ", "check ", "bench "}) {
      expect_error(limber_program(command + (folder / name)), 1, name);
    }
  }
}

TEST(Inspect, TextNamesWhatIsInside) {
  const Outcome outcome = limber_program("inspect builtin:resnet8");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"image", "logits", "f32[N,3,32,32]", "Conv", "parameters", "FLOP"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
}

TEST(Inspect, CostGrowsWithTheBatch) {
  const json one = json_of(limber_program("inspect builtin:resnet8 --json"));
  const json four = json_of(limber_program("inspect builtin:resnet8 --json --batch 4"));
  ASSERT_FALSE(one.is_discarded() || four.is_discarded());
  EXPECT_GT(one["flops"].get<double>(), 1e6);
  EXPECT_NEAR(four["flops"].get<double>() / one["flops"].get<double>(), 4, 0.01);
  EXPECT_EQ(one["inputs"][0]["name"], "image");
}

TEST(Inspect, GraphAndPlanAreText) {
  EXPECT_TRUE(contains(limber_program("inspect builtin:vit --graph").out, "MatMul"));
  const Outcome plan = limber_program("inspect builtin:resnet8 --plan");
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_TRUE(contains(plan.out, "Conv")) << plan.out;
}

TEST(Check, ListsOperatorsWithForwardAndGradient) {
  const Outcome text = limber_program("check builtin:mobilenet");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part : {"operator", "forward", "gradient", "Conv", "Clip"})
    EXPECT_TRUE(contains(text.out, part));
  const json list = json_of(limber_program("check builtin:mobilenet --json"));
  ASSERT_FALSE(list.is_discarded());
  EXPECT_EQ(list["supported"], true);
  for (const json& use : list["operators"]) EXPECT_EQ(use["forward"], true) << use;
}

TEST(Run, ImagesMakeABatchAndEveryOutputIsWritten) {
  const Folder folder;
  for (int i = 0; i < 3; ++i) {
    const auto png = encode_png(*draw_image(40 + i, 50, static_cast<uint64_t>(i)));
    ASSERT_TRUE(png.ok());
    write_text(folder / ("picture" + std::to_string(i) + ".png"), *png);
  }
  write_text(folder / "labels.txt", "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n");
  const std::string pictures =
      (folder / "picture0.png") + " " + (folder / "picture1.png") + " " + (folder / "picture2.png");
  const Outcome outcome =
      limber_program("run builtin:resnet8 --input " + pictures + " --mean 0.5 --std 0.25,0.25,0.25" +
                     " --top 3 --labels " + (folder / "labels.txt") + " --output " + (folder / "out"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto logits = read_npy(folder / "out/logits.npy");
  ASSERT_TRUE(logits.ok()) << logits.status().message();
  EXPECT_EQ(logits->type().to_string(), "f32[3,10]");
  const json list = json::parse(read_text(folder / "out/outputs.json"), nullptr, false);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0],
            (json{{"name", "logits"}, {"file", "logits.npy"}, {"dtype", "f32"}, {"shape", {3, 10}}}));
  const std::string top = read_text(folder / "out/top.txt");
  for (const char* part : {"picture0.png", "picture2.png", " %"}) EXPECT_TRUE(contains(top, part)) << top;
  EXPECT_TRUE(contains(outcome.out, top)) << outcome.out;
}

TEST(Run, ArraysAndImagesGiveTheSameAnswer) {
  const Folder folder;
  const Tensor image = *draw_image(32, 32, 5);
  write_text(folder / "x.png", *encode_png(image));
  std::vector<float> chw(3 * 32 * 32);
  normalise(image, 3, {}, chw);
  ASSERT_TRUE(
      write_npy(folder / "x.npy", Tensor::from(std::span<const float>(chw), Shape{1, 3, 32, 32})).ok());
  for (const char* name : {"png", "npy"}) {
    const Outcome outcome = limber_program("run builtin:resnet8 --input image=" + (folder / "x.") + name +
                                           " --output " + (folder / name));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  EXPECT_EQ(read_text(folder / "png/logits.npy"), read_text(folder / "npy/logits.npy"));
}

TEST(Run, ReferenceBackendAgrees) {
  const Folder folder;
  for (const char* backend : {"cpu", "ref"}) {
    const Outcome outcome = limber_program(std::string("run builtin:vit --input builtin:image --backend ") +
                                           backend + " --output " + (folder / backend));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  const auto fast = read_npy(folder / "cpu/logits.npy"), slow = read_npy(folder / "ref/logits.npy");
  ASSERT_TRUE(fast.ok() && slow.ok());
  for (int64_t i = 0; i < slow->elements(); ++i) {
    EXPECT_NEAR(element_as_double(*fast, i), element_as_double(*slow, i), 1e-4) << i;
  }
}

TEST(Run, InputsThatDoNotFitAreExplained) {
  const Folder folder;
  ASSERT_TRUE(write_npy(folder / "small.npy", Tensor::from({1.F, 2.F}, Shape{1, 2})).ok());
  expect_error(limber_program("run builtin:resnet8 --input " + (folder / "small.npy")), 1, "f32[N,3,32,32]");
  expect_error(limber_program("run builtin:resnet8 --input " + (folder / "none.npy")), 1, "none.npy");
  write_text(folder / "bad.png", "\x89PNG\r\n\x1a\nrubbish");
  expect_error(limber_program("run builtin:resnet8 --input " + (folder / "bad.png")), 1, "bad.png");
  expect_error(limber_program("run builtin:resnet8 --input builtin:image --size 16"), 1, "32x32");
}

TEST(Run, JsonHasTheOutputs) {
  const json out = json_of(limber_program("run builtin:resnet8 --input builtin:image --json"));
  ASSERT_EQ(out["outputs"].size(), 1U);
  EXPECT_EQ(out["outputs"][0]["shape"], json({1, 10}));
  ASSERT_EQ(out["outputs"][0]["values"].size(), 10U);
  const size_t best = out["top"][0]["top"][0]["class"];
  for (const json& value : out["outputs"][0]["values"]) EXPECT_LE(value, out["outputs"][0]["values"][best]);
}

TEST(Predict, CsvAndJsonOfAFolder) {
  const Folder folder;
  std::filesystem::create_directories(folder / "images/deep");
  write_text(folder / "images/a,b.png", *encode_png(*draw_image(40, 50, 1)));
  write_text(folder / "images/deep/c.png", *encode_png(*draw_image(40, 50, 2)));
  const std::string command = "predict builtin:resnet8 " + (folder / "images") + " --top 2 ";
  const json out = json_of(limber_program(command + "--json"));
  ASSERT_EQ(out["predictions"].size(), 2U);
  EXPECT_GE(out["predictions"][0]["top"][0]["confidence"], out["predictions"][1]["top"][0]["confidence"]);
  const Outcome csv = limber_program(command + "-o " + (folder / "answers.csv"));
  ASSERT_EQ(csv.code, 0) << csv.err;
  const std::string text = read_text(folder / "answers.csv");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_TRUE(contains(text, "a,b.png\",")) << text;
}

TEST(Compare, TableAndJson) {
  const std::string command =
      "compare builtin:resnet8 builtin:resnet14 --data synthetic:count=40 --seconds 0.1 ";
  const json out = json_of(limber_program(command + "--json"));
  EXPECT_EQ(out["images"], 40);
  EXPECT_LT(out["a"]["parameters"], out["b"]["parameters"]);
  EXPECT_GT(out["latency_ratio"], 0);
  const auto right = [&](const char* side, const char* alone) {
    const double images = out["both_right"].get<double>() + out[alone].get<double>();
    EXPECT_NEAR(out[side]["accuracy"], images / 40, 1e-9);
  };
  right("a", "only_a_right");
  right("b", "only_b_right");
  const Outcome table = limber_program(command);
  ASSERT_EQ(table.code, 0) << table.err;
  for (const char* part : {"A: builtin:resnet8", "B: builtin:resnet14", "accuracy", "latency", "parameters",
                           "40 images of the test part of synthetic:count=40"})
    EXPECT_TRUE(contains(table.out, part)) << part << "\n" << table.out;
  expect_error(limber_program("compare builtin:resnet8 nothing.onnx"), 1, "nothing.onnx");
  expect_error(limber_program("compare builtin:resnet8 builtin:resnet8 --variant-a original"), 2,
               "builtin:resnet8 is no elastic model");
}

TEST(Doctor, TextAndJson) {
  const Outcome text =
      limber_program("doctor --tune-cache ''");  // timings that are kept nowhere are one finding
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part :
       {"limber ", "kernels", "CPU", "cores", "memory", "ceiling", "network", "tuning", "What is slow here"})
    EXPECT_TRUE(contains(text.out, part)) << part << "\n" << text.out;
  const json out = json_of(limber_program("doctor --json --threads 1"));
  EXPECT_FALSE(out.is_discarded());
  EXPECT_EQ(out["threads"], 1);
  expect_error(limber_program("doctor --threads few"), 2, "--threads");
}

// libgomp says itself how long its threads wait, before main() begins.
TEST(Waits, AreBoundedUnlessTheEnvironmentSaysHow) {
  const auto turns = [](const std::string& environment) {
    const Folder folder;
    const std::string command = environment + " OMP_DISPLAY_ENV=verbose '" LIMBER_BINARY "' --version >'" +
                                (folder / "out") + "' 2>'" + (folder / "err") + "'";
    EXPECT_EQ(std::system(command.c_str()), 0);
    const std::string said = read_text(folder / "err"), key = "GOMP_SPINCOUNT = '";
    const size_t at = said.find(key) + key.size();
    return said.substr(at, said.find('\'', at) - at);
  };
  EXPECT_EQ(turns("env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY"), "1000");
  EXPECT_EQ(turns("env -u OMP_WAIT_POLICY GOMP_SPINCOUNT=7"), "7");
  EXPECT_EQ(turns("env -u GOMP_SPINCOUNT OMP_WAIT_POLICY=passive"), "0");
}

// Redirected by the shell's last word on it: what limber_program() adds is commented out.
int code_of(const std::string& command) { return limber_program(command + "; exit $? #").code; }

TEST(Commands, OutputThatCannotBeWrittenIsAFailure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  EXPECT_EQ(code_of("check builtin:resnet8 2>/dev/null >/dev/full"), 1);
  EXPECT_EQ(code_of("inspect builtin:resnet14 --graph 2>/dev/null >/dev/full"), 1);  // more than a buffer
  const Folder folder;
  EXPECT_EQ(code_of("train builtin:resnet8 --data synthetic:count=32 --epochs 1 --batch 16 -o " +
                    (folder / "run") + " >/dev/null 2>/dev/full"),
            0)
      << "what nobody can read is not the work";
}

TEST(Commands, MessagesNameOptionsAsTheyAreTyped) {
  const Folder folder;
  write_text(folder / "labels.txt", "one\n");
  std::filesystem::create_directories(folder / "photos/cat");
  write_text(folder / "photos/cat/1.png", *encode_png(*draw_image(40, 50, 1)));
  expect_error(limber_program("eval builtin:resnet8 --data " + (folder / "photos")), 1, "(--labels)");
}

TEST(Commands, NumbersAndTimesMustMeanSomething) {
  EXPECT_EQ(limber_program("inspect builtin:resnet8 --batch 1e1").code, 0);
  expect_error(limber_program("inspect builtin:resnet8 --batch 1.5"), 2, "should be a whole number");
  expect_error(limber_program("bench builtin:resnet8 --seconds nan"), 2, "should be a number");
  expect_error(limber_program("exits nowhere --data synthetic --max-drop nan"), 2, "should be a number");
  expect_error(limber_program("search nowhere --data synthetic --latency 60"), 2, "'60' has no unit");
  expect_error(limber_program("inspect builtin:resnet8 --batch 2.5"), 2, "a whole number");
}

TEST(AdaptCommand, FollowsAStreamAndNamesWhatIsWrongWithIt) {
  const std::string adapt = "adapt builtin:resnet8 --source-images 100 --threads 1 --stream ";
  expect_error(limber_program(adapt + "synthetic:foog@3"), 1, "stream, at 11: 'foog'");
  expect_error(limber_program(adapt + "synthetic --strategy nune"), 2, "no strategy named 'nune'");
  const Outcome text = limber_program(adapt + "synthetic:contrast@5*200 --strategy bn");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "adapted by bn")) << text.out;
  EXPECT_TRUE(contains(text.out, "of the model as it came")) << text.out;
  const json out = json_of(limber_program(adapt + "synthetic:contrast@5*200 --json"));
  ASSERT_FALSE(out.is_discarded());
  EXPECT_EQ(out["frames"], 200);
  EXPECT_EQ(out["summary"]["accuracy"], out["summary"]["frozen_accuracy"]) << "nothing is learnt";
}

TEST(Profile, TableAndJson) {
  const Outcome text = limber_program("profile builtin:resnet8 --runs 2 --tune off");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part : {"GFLOP/s", "share", "roof", "Conv"})
    EXPECT_TRUE(contains(text.out, part)) << text.out;
  size_t start = 0;
  for (size_t end; (end = text.out.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(end - start, 110U) << text.out.substr(start, end - start);
  }
  const json rows = json_of(limber_program("profile builtin:resnet8 --runs 2 --tune off --per-op --json"));
  ASSERT_FALSE(rows.is_discarded());
  double share = 0;
  for (const json& row : rows["rows"]) share += row["share"].get<double>();
  EXPECT_NEAR(share, 1, 1e-6);
  EXPECT_GT(rows["roofline"]["flops_per_s"].get<double>(), 0);
}

TEST(Bench, ReportsPercentilesInOrder) {
  const json out =
      json_of(limber_program("bench builtin:resnet8 --runs 20 --tune off --threads 1 --batch 2 --json"));
  ASSERT_FALSE(out.is_discarded());
  EXPECT_EQ(out["runs"], 20);
  EXPECT_EQ(out["threads"], 1);
  EXPECT_EQ(out["batch"], 2);
  EXPECT_LE(out["min_s"], out["p50_s"]);
  EXPECT_LE(out["p50_s"], out["p95_s"]);
  EXPECT_LE(out["p95_s"], out["p99_s"]);
  EXPECT_LE(out["p99_s"], out["max_s"]);
  EXPECT_GT(out["items_per_s"].get<double>(), 0);
}

TEST(Bench, WorkerObeysLines) {
  const Folder folder;
  const std::vector<float> zeros(3 * 32 * 32);
  ASSERT_TRUE(
      write_npy(folder / "in.npy", Tensor::from(std::span<const float>(zeros), Shape{1, 3, 32, 32})).ok());
  const std::string lines =
      "run 3\ncheck " + (folder / "in.npy") + " " + (folder / "out.npy") + "\nquit\nrun 1\n";
  const Outcome outcome = limber_program("bench builtin:resnet8 --worker --tune off", lines);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  double a = 0, b = 0, c = 0;
  char rest[8] = {};
  ASSERT_EQ(std::sscanf(outcome.out.c_str(), "ready\n%lf %lf %lf\n%7s", &a, &b, &c, rest), 4) << outcome.out;
  EXPECT_STREQ(rest, "done");
  EXPECT_GT(a, 0);
  const auto logits = read_npy(folder / "out.npy");
  ASSERT_TRUE(logits.ok());
  EXPECT_EQ(logits->type().to_string(), "f32[1,10]");
}

TEST(Bench, TrainingWorkerObeysLines) {
  const std::string lines = "run 2\ninfo\nmemory\ntoggle 12 8 1\nquit\n";
  const Outcome outcome =
      limber_program("bench builtin:resnet8 --train --batch 2 --worker --warm-up 0 --tune off", lines);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream out(outcome.out);
  std::string ready, times, info, memory, toggle;
  for (std::string* line : {&ready, &times, &info, &memory, &toggle}) std::getline(out, *line);
  EXPECT_EQ(ready, "ready");
  EXPECT_GT(json::parse(info)["trained_elements"].get<int64_t>(), 70000);
  size_t idle = 0, peak = 0;
  ASSERT_EQ(std::sscanf(memory.c_str(), "%zu %zu", &idle, &peak), 2) << memory;
  EXPECT_GT(peak, idle);
  const json switches = json::parse(toggle);
  EXPECT_EQ(switches["new_ms"].size(), switches["sets_seen"].get<size_t>());
  EXPECT_EQ(switches["new_ms"].size() + switches["known_ms"].size(), 12U);
}

TEST(Export, FoldedModelGivesTheSameAnswersWithFewerNodes) {
  const Folder folder;
  for (const char* model : {"resnet8", "mobilenet", "vit"}) {
    const std::string name = model, plain = folder / (name + ".onnx"),
                      folded = folder / (name + "-folded.onnx");
    ASSERT_EQ(limber_program("export builtin:" + name + " -o " + plain).code, 0);
    const Outcome fold = limber_program("export builtin:" + name + " --fold -o " + folded);
    ASSERT_EQ(fold.code, 0) << fold.err;
    std::vector<Tensor> answers;
    for (const std::string& source : {"builtin:" + name, plain, folded}) {
      const Outcome run = limber_program("run " + source + " --input builtin:image builtin:image --output " +
                                         (folder / "out"));
      ASSERT_EQ(run.code, 0) << source << run.err;
      answers.push_back(*read_npy(folder / "out/logits.npy"));
      ASSERT_EQ(answers.back().shape().dim(0), 2);
    }
    for (int64_t i = 0; i < answers[0].elements(); ++i) {
      EXPECT_NEAR(element_as_double(answers[1], i), element_as_double(answers[0], i), 1e-4) << name;
      EXPECT_NEAR(element_as_double(answers[2], i), element_as_double(answers[0], i), 1e-4) << name;
    }
    const json before = json_of(limber_program("inspect --json " + plain));
    const json after = json_of(limber_program("inspect --json " + folded));
    EXPECT_LT(after["parameters"].get<int64_t>(),
              before["parameters"].get<int64_t>() + (name == "vit" ? 1 : 0));
  }
}

}  // namespace
}  // namespace limber
