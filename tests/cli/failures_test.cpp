// What each command says and returns when something is wrong around it, and what its JSON promises.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "data/image.h"
#include "tests/cli/program.h"

namespace limber {
namespace {

using nlohmann::json;

const std::string kCommands[] = {"demo",   "doctor",  "inspect", "check",   "run",    "predict", "profile",
                                 "bench",  "compare", "export",  "train",   "eval",   "report",  "elastify",
                                 "search", "exits",   "serve",   "loadgen", "device", "apps"};

void expect_failure(const Outcome& outcome, int code, const std::string& part) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "limber: error: ")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
}

TEST(EveryCommand, RefusesWhatItDoesNotKnow) {
  for (const std::string& command : kCommands) {
    expect_failure(limber_program(command + " --no-such-option"), 2, "limber " + command + " --help");
    expect_failure(limber_program(command + " --log-level shout"), 2, "--log-level");
  }
}

TEST(EveryCommand, ExplainsItself) {
  for (const std::string& command : kCommands) {
    const Outcome help = limber_program(command + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_TRUE(contains(help.out, "--help") && contains(help.out, "--log-level")) << help.out;
    EXPECT_EQ(help.err, "") << command;
  }
}

TEST(EveryCommand, NeedsItsModel) {
  for (const char* command :
       {"inspect", "run --input x.npy", "predict", "profile", "bench", "export -o x.onnx", "compare",
        "train --data synthetic -o x", "eval --data synthetic", "report", "exits --data synthetic",
        "elastify --data synthetic -o x", "search --data synthetic --latency 5ms", "check"}) {
    const Outcome outcome = limber_program(command);
    EXPECT_EQ(outcome.code, 2) << command << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << command;
  }
}

TEST(EveryCommand, NamesAModelThatIsNotThere) {
  const Folder folder;
  const std::string none = folder / "none.onnx";
  for (const std::string& command :
       {"inspect " + none, "check " + none, "run " + none + " --input builtin:image",
        "predict " + none + " builtin:image", "profile " + none, "bench " + none,
        "export " + none + " -o " + (folder / "x.onnx"), "compare builtin:resnet8 " + none,
        "eval " + none + " --data synthetic:count=4", "report " + none,
        "train " + none + " --data synthetic:count=4 -o " + (folder / "run"),
        "elastify " + none + " --data synthetic:count=4 -o " + (folder / "shapes")}) {
    expect_failure(limber_program(command), 1, "none.onnx");
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "x.onnx"));
}

// /dev/full takes nothing.
Outcome without_space(const std::string& arguments) {
  const Folder folder;
  const std::string command = "'" LIMBER_BINARY "' " + arguments + " >/dev/full 2>'" + (folder / "err") + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, "", read_text(folder / "err")};
}

// The last word before the exit must have been written, or it was no success.
TEST(FullDisk, OutputThatIsLostIsAFailure) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  for (const char* arguments :
       {"inspect builtin:resnet8 --json", "inspect builtin:resnet8 --graph", "check --list", "--version",
        "--help", "inspect --help", "--man", "--completion bash"}) {
    SCOPED_TRACE(arguments);
    expect_failure(without_space(arguments), 1, "what was printed could not be written");
  }
  expect_failure(without_space("inspect builtin:resnet8 --json"), 1, "No space left on device");
  EXPECT_EQ(without_space("inspect none.onnx").code, 1) << "the first failure counts";
  EXPECT_EQ(without_space("inspect --nothing").code, 2);
}

TEST(FullDisk, AFileThatCannotBeWrittenIsNamed) {
  const Folder folder;
  write_text(folder / "file", "");
  write_text(folder / "x.png", *encode_png(*draw_image(40, 50, 1)));
  const std::string below = folder / "file/below";  // a file is no folder
  expect_failure(limber_program("export builtin:resnet8 -o " + below + ".onnx"), 1, "file");
  expect_failure(limber_program("run builtin:resnet8 --input builtin:image -o " + below), 1, "file");
  expect_failure(limber_program("predict builtin:resnet8 " + (folder / "x.png") + " -o " + below + ".csv"), 1,
                 "file/below");
  expect_failure(
      limber_program("train builtin:resnet8 --data synthetic:count=8 --batch 4 --epochs 1 --threads 1 -o " +
                     below),
      1, "file");
  expect_failure(
      limber_program("elastify builtin:resnet8 --data synthetic:count=8 --budget none --threads 1 -o " +
                     below),
      1, "file");
  EXPECT_EQ(read_text(folder / "file"), "");
}

TEST(FullDisk, AFolderWithoutPermissionIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const Folder folder;
  std::filesystem::create_directories(folder / "locked");
  ASSERT_EQ(::chmod((folder / "locked").c_str(), 0500), 0);
  expect_failure(limber_program("export builtin:resnet8 -o " + (folder / "locked/x.onnx")), 1, "locked");
  ASSERT_EQ(::chmod((folder / "locked").c_str(), 0700), 0);
}

// A slip in a path is told before the work begins; the last folder of it is made.
TEST(Output, GoesToFoldersThatAreThere) {
  const Folder folder;
  const std::string deep = folder / "a/b";
  for (const std::string& command :
       {"run builtin:resnet8 --input builtin:image -o " + deep, "export builtin:resnet8 -o " + deep + ".onnx",
        "train builtin:resnet8 --data synthetic:count=8 --epochs 1 --threads 1 -o " + deep,
        "elastify builtin:resnet8 --data synthetic:count=8 --budget none --threads 1 -o " + deep,
        "eval builtin:resnet8 --data synthetic:count=8 --threads 1 --page " + deep + ".html",
        "device --once --record " + deep + ".jsonl", "demo --quick -o " + deep}) {
    expect_failure(limber_program(command), 1, "there is no folder " + (folder / "a"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  ASSERT_EQ(limber_program("run builtin:resnet8 --input builtin:image -o " + (folder / "out")).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "out/logits.npy"));
}

// The keys the pages of the commands promise.
void expect_keys(const json& object, std::initializer_list<const char*> keys, const std::string& of) {
  ASSERT_TRUE(object.is_object()) << of << ": " << object;
  for (const char* key : keys)
    EXPECT_TRUE(object.contains(key)) << of << " has no '" << key << "': " << object;
}

TEST(JsonKeys, OfCommandsThatLook) {
  const json inspect = json_of(limber_program("inspect builtin:resnet8 --json --threads 1"));
  expect_keys(inspect,
              {"inputs", "outputs", "parameters", "parameter_bytes", "operators", "flops", "arena_bytes",
               "input_output_bytes", "plan"},
              "inspect");
  double flops = 0;
  int64_t nodes = 0;
  for (const json& op : inspect["operators"]) {
    flops += op["flops"].get<double>();
    nodes += op["count"].get<int64_t>();
  }
  EXPECT_DOUBLE_EQ(flops, inspect["flops"].get<double>());
  EXPECT_EQ(nodes, inspect["nodes"].get<int64_t>());

  const json check = json_of(limber_program("check builtin:vit --json"));
  expect_keys(check, {"model", "supported", "operators"}, "check");
  expect_keys(check["operators"][0], {"op", "domain", "version", "count", "forward", "gradient"},
              "an operator");
  const json all = json_of(limber_program("check --list --json"));
  EXPECT_GT(all.size(), 100u);
  for (const json& op : all) {
    expect_keys(op, {"op", "first", "last", "forward", "gradient"}, "an operator");
    EXPECT_LE(op["first"], op["last"]) << op;
  }
  const json doctor = json_of(limber_program("doctor --json --threads 1"));
  expect_keys(doctor, {"version",     "kernels",      "system",  "cpu",        "features",
                       "cores",       "online_cores", "threads", "cpu_limit",  "memory_bytes",
                       "free_bytes",  "memory_limit", "load",    "governor",   "flops_per_s",
                       "bytes_per_s", "quick_s",      "slow_s",  "tune_cache", "findings"},
              "doctor");
  EXPECT_LE(doctor["quick_s"], doctor["slow_s"]);
  EXPECT_EQ(doctor["threads"], 1);
}

TEST(JsonKeys, OfCommandsThatRun) {
  const std::string few = " --threads 1 --tune off --json";
  const json run = json_of(limber_program("run builtin:resnet8 --input builtin:image" + few));
  expect_keys(run, {"outputs", "top"}, "run");
  expect_keys(run["outputs"][0], {"name", "dtype", "shape", "values"}, "an output");
  const Folder folder;
  write_text(folder / "x.png", *encode_png(*draw_image(40, 50, 1)));
  const json predict = json_of(limber_program("predict builtin:resnet8 " + (folder / "x.png") + few));
  expect_keys(predict, {"model", "images", "seconds", "predictions", "skipped"}, "predict");
  const json bench = json_of(limber_program("bench builtin:resnet8 --runs 5" + few));
  expect_keys(bench, {"runs", "threads", "batch", "min_s", "p50_s", "p95_s", "p99_s", "max_s", "items_per_s"},
              "bench");
  const json profile = json_of(limber_program("profile builtin:resnet8 --runs 2" + few));
  expect_keys(profile, {"rows", "roofline"}, "profile");
  const json compare =
      json_of(limber_program("compare builtin:resnet8 builtin:resnet14 --data synthetic:count=20 --images "
                             "10 --seconds 0.05 --threads 1 --json"));
  expect_keys(compare,
              {"a", "b", "latency_ratio", "gain", "gain_95", "agreement", "images", "judged_on", "both_right",
               "only_a_right", "only_b_right"},
              "compare");
  for (const char* side : {"a", "b"}) {
    expect_keys(compare[side],
                {"name", "accuracy", "accuracy_95", "seconds", "flops", "classes", "parameters",
                 "parameter_bytes", "memory_bytes"},
                side);
  }
  EXPECT_LE(compare["both_right"].get<int>() + compare["only_a_right"].get<int>() +
                compare["only_b_right"].get<int>(),
            compare["images"].get<int>());
}

TEST(JsonKeys, OfCommandsThatLearn) {
  const Folder folder;
  const std::string run = folder / "run", few = " --threads 1 --json";
  const json train = json_of(limber_program(
      "train builtin:resnet8 --data synthetic:count=32 --val synthetic:count=8 --epochs 1 --batch 4 -o " +
      run + few));
  expect_keys(train,
              {"run", "ending", "step", "epoch", "images", "validation_images", "validated_on", "best_epoch",
               "best_accuracy", "loss", "accuracy", "images_per_s"},
              "train");
  EXPECT_EQ(train["ending"], "finished");
  EXPECT_EQ(train["validated_on"], "given images");
  const json eval = json_of(limber_program("eval " + run + " --data synthetic:count=16 --details" + few));
  expect_keys(eval, {"accuracy", "accuracy_95", "skipped", "seconds", "images_per_s", "details"}, "eval");
  expect_keys(eval["details"], {"classes", "confusions", "worst", "confidence"}, "details");
  const json report = json_of(limber_program("report " + run + " --json"));
  expect_keys(report["runs"][0],
              {"run", "path", "strategy", "epochs", "steps", "resumed", "damaged_lines", "missing"},
              "report");
}

}  // namespace
}  // namespace limber
