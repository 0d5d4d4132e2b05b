#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/program.h"

namespace limber {
namespace {

using nlohmann::json;

const std::string kTrain =
    "train builtin:resnet8 --data synthetic:count=64 --val synthetic:count=20 --batch 16 --threads 1 ";

std::string last_weights(const Folder& folder, const std::string& run) {
  std::string name = read_text(folder / (run + "/last"));
  name.pop_back();
  return read_text(folder / (run + "/checkpoints/" + name + "/weights.safetensors"));
}

TEST(Train, TrainsEvaluatesAndExports) {
  const Folder folder;
  const std::string run = folder / "run";
  const json trained = json_of(limber_program(kTrain + "--epochs 2e0 --json -o " + run));
  EXPECT_EQ(trained["ending"], "finished");
  EXPECT_EQ(trained["step"], 8);
  EXPECT_EQ(trained["images"], 64);
  EXPECT_EQ(trained["validation_images"], 20);
  const json of_run = json_of(limber_program("eval " + run + " --data synthetic:count=20 --json"));
  EXPECT_EQ(of_run["images"], 20);
  EXPECT_EQ(of_run["accuracy"], trained["best_accuracy"]);
  const Outcome exported = limber_program("export " + run + " -o " + (folder / "x.onnx"));
  ASSERT_EQ(exported.code, 0) << exported.err;
  const json of_file =
      json_of(limber_program("eval " + (folder / "x.onnx") + " --data synthetic:count=20 --json"));
  EXPECT_EQ(of_file["loss"], of_run["loss"]);
  EXPECT_EQ(limber_program("inspect " + run).code, 0);
  EXPECT_EQ(limber_program("check " + run).code, 0);
}

// A long training into `run`, which gets the signal after its first checkpoint.
void interrupt_training(const std::string& run, int signal) {
  const std::string options = "--epochs 200 --checkpoint-every 3 --log-level off -o ";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string command = "exec '" LIMBER_BINARY "' " + kTrain + options + run + " 2>/dev/null";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 600 && read_text(run + "/last").empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(child, signal);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "the signal ended it";
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(Train, StopsWhenItsTerminalIsClosed) {
  const Folder folder;
  interrupt_training(folder / "run", SIGHUP);
  EXPECT_FALSE(read_text(folder / "run/last").empty());
}

TEST(Train, ResumesAfterASignal) {
  const Folder folder;
  interrupt_training(folder / "run", SIGTERM);
  const Outcome same = limber_program(kTrain + "--epochs 2 -o " + (folder / "run"));
  EXPECT_EQ(same.code, 1);
  EXPECT_TRUE(contains(same.err, "resume")) << same.err;
  const Outcome other = limber_program(kTrain + "--epochs 200 --resume --lr 0.5 -o " + (folder / "run"));
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(contains(other.err, "lr is '0.5'")) << other.err;
  const Outcome rest = limber_program(kTrain + "--epochs 1 --resume -o " + (folder / "run"));
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_TRUE(contains(rest.err, "going on after step")) << rest.err;
}

TEST(Train, ANewClassifierOrAllNewWeights) {
  const Folder folder;
  // Three classes for a model of ten.
  std::string csv = "path,label\n";
  for (int i = 0; i < 12; ++i) csv += "image.png,class" + std::to_string(i % 3) + "\n";
  write_text(folder / "list.csv", csv);
  ASSERT_EQ(limber_program("run builtin:resnet8 --input builtin:image").code, 0);
  const Outcome fewer = limber_program("train builtin:resnet8 --data " + (folder / "list.csv") +
                                       " --batch 4 --epochs 1 -o " + (folder / "run"));
  EXPECT_EQ(fewer.code, 1);  // there is no such image
  EXPECT_TRUE(contains(fewer.err, "a new classifier for 3 classes")) << fewer.err;
  EXPECT_TRUE(contains(fewer.err, "3 of its 12 images, some of each class, are held out")) << fewer.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  EXPECT_TRUE(contains(fewer.err, "image.png")) << fewer.err;
  for (const char* seed : {"1", "2"}) {
    const Outcome scratch = limber_program(kTrain + "--epochs 1 --init random --seed " + seed + " -o " +
                                           (folder / (std::string("scratch") + seed)));
    EXPECT_EQ(scratch.code, 0) << scratch.err;
  }
  EXPECT_NE(last_weights(folder, "scratch1"), last_weights(folder, "scratch2"));
}

TEST(Train, EveryOptionIsUnderstood) {
  const Folder folder;
  const Outcome outcome = limber_program(
      kTrain +
      "--epochs 1 --optimizer adamw --lr 1e-3 --weight-decay 0.01 --schedule step --warmup 0.5 "
      "--label-smoothing 0.1 "
      "--mixup 0.2 --clip-norm 1 --accumulate 2 --padding 4 --flip 0.5 --jitter 0.2,0.1,0 --cutout 8 "
      ""
      "--mean 0.5 --std 0.25,0.25,0.25 --bn frozen --freeze 'conv*' --memory-limit 1G --workers 2 --seed 5 "
      "--patience 2 --checkpoint-every 1 --eval-every 2 --bad-images skip --head keep --size 32 -o " +
      (folder / "run"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string history = read_text(folder / "run/history.jsonl");
  for (const char* part :
       {"\"optimizer\":\"adamw\"", "\"freeze\":\"conv*\"", "\"bn\":\"frozen\"", "\"jitter\":\"0.2,0.1,0\""})
    EXPECT_TRUE(contains(history, part)) << part;
  // What a checkpoint was trained with is what it is evaluated with.
  EXPECT_EQ(limber_program("eval " + (folder / "run") + " --data synthetic:count=20").code, 0);
}

TEST(Train, KeepsFeatures) {
  const Folder folder;
  const std::string last = kTrain + "--epochs 2 --strategy last -o ";
  const Outcome kept = limber_program(last + (folder / "kept") + " --cache-features 64M");
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_TRUE(contains(kept.err, "features of all images are known")) << kept.err;
  const Outcome small = limber_program(last + (folder / "small") + " --cache-features 1K");
  EXPECT_TRUE(contains(small.err, "cache-features allows 1.00 KiB")) << small.err;
  const Outcome random = limber_program(last + (folder / "random") + " --cache-features 64M --flip 0.5");
  EXPECT_EQ(random.code, 0) << random.err;
  EXPECT_TRUE(contains(random.err, "flip makes an image different")) << random.err;
}

TEST(Train, SaysOfHowManyImages) {
  const Folder folder;
  const Outcome trained = limber_program(kTrain + "--epochs 1 -o " + (folder / "run"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(contains(trained.err, "in training")) << trained.err;
  EXPECT_TRUE(contains(trained.out, "on 20 other images (given images)")) << trained.out;
  EXPECT_TRUE(contains(trained.out, " to ")) << trained.out;  // an interval: 20 images say little
  const Outcome details = limber_program("eval " + (folder / "run") + " --data synthetic:count=20 --details");
  ASSERT_EQ(details.code, 0) << details.err;
  for (const char* part : {"test part", "calibration error", "worst mistakes", "taken for"})
    EXPECT_TRUE(contains(details.out, part)) << part << "\n" << details.out;
}

TEST(Train, WrongUse) {
  const Folder folder;
  const auto expect = [&](const std::string& arguments, int code, const std::string& part) {
    const Outcome outcome = limber_program("train " + arguments + " -o " + (folder / "wrong"));
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "limber: error: ")) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  expect("builtin:resnet8", 2, "--data");
  expect("builtin:resnet8 --data synthetic --optimizer sdg", 2, "--optimizer");
  expect("builtin:resnet8 --data synthetic --memory-limit lots", 2, "512M");
  expect("builtin:resnet8 --data synthetic --jitter 2", 2, "brightness");
  expect("builtin:resnet8 --data synthetic --rho 0.5 --speedup 2", 2, "not both");
  expect("builtin:resnet8 --data synthetic --rho 0.5 --strategy last", 2, "elastic and prune");
  expect("builtin:resnet8 --data synthetic --always-train 'conv*'", 2, "always-train");
  expect("builtin:resnet8 --data nowhere", 1, "nowhere");
  expect("builtin:resnet8 --data synthetic:count=20", 1, "a batch of 20");
  expect("builtin:resnet8 --data synthetic:count=64 --size 64", 1, "fixed");
  expect("builtin:resnet8 --data synthetic:count=64 --train 'layer*'", 1, "matches no parameter");
  expect("builtin:resnet8 --data synthetic:count=64 --memory-limit 1K", 1, "limit");
  for (const char* number :
       {"--lr nan", "--rho nan", "--clip-norm nan", "--warmup nan", "--lr inf", "--mean nan"})
    expect(std::string("builtin:resnet8 --data synthetic ") + number, 2, "should be");
  expect("builtin:resnet8 --data synthetic --epochs 1.5", 2, "a whole number");
  EXPECT_FALSE(std::filesystem::exists(folder / "wrong"));
  const Outcome help = limber_program("train --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(contains(help.out, "Examples:"));
}

}  // namespace
}  // namespace limber
