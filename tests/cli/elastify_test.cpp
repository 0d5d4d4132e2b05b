// limber elastify, search, export --variant: from a model to a smaller one.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "tests/cli/program.h"
#include "variant/elastic_folder.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

using nlohmann::json;

const std::string kElastify =
    "elastify builtin:resnet8 --data synthetic:count=64 --batch 8 --threads 1 --operators skip shrink50 ";

TEST(Elastify, MakesSearchesAndExports) {
  const Folder folder;
  const std::string dir = folder / "elastic";
  const json made = json_of(in_time(kElastify + "--json -o " + dir));
  EXPECT_EQ(made["blocks"], 5);
  EXPECT_GT(made["alternatives"], 0);
  EXPECT_GT(made["variants"], 1);
  EXPECT_EQ(made["stopped"], false);
  EXPECT_EQ(made["judged_on"], "64 images of the test part of synthetic:count=64");
  const json found = json_of(limber_program(
      "search " + dir +
      " --data synthetic:count=32 --latency 10s --images 32 --evaluations 10 --threads 1 --json"));
  EXPECT_LE(found["measured_s"], found["limit_s"]);
  EXPECT_EQ(found["images"], 32);
  EXPECT_GE(found["accuracy"].get<double>(), 0);
  EXPECT_FALSE(found["front"].empty());
  const std::string small = folder / "small.onnx", whole = folder / "whole.onnx";
  const Outcome exported =
      limber_program("export " + dir + " --variant " + found["variant"].get<std::string>() + " -o " + small);
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(limber_program("check " + small).code, 0);
  // The original is the model.
  ASSERT_EQ(limber_program("export " + dir + " -o " + whole).code, 0);
  const std::string run = " --input builtin:image --json";
  EXPECT_EQ(json_of(limber_program("run " + whole + run))["outputs"],
            json_of(limber_program("run builtin:resnet8" + run))["outputs"]);
  // Other commands say how to get there.
  for (const char* command : {"inspect ", "check ", "eval --data synthetic:count=8 "}) {
    const Outcome refused = limber_program(command + dir);
    EXPECT_EQ(refused.code, 1);
    EXPECT_TRUE(contains(refused.err, "limber export " + dir)) << refused.err;
  }
}

TEST(Elastify, MakesAMaster) {
  const Folder folder;
  const std::string dir = folder / "master", whole = folder / "whole.onnx";
  const std::string gates =
      "elastify builtin:resnet8 --data synthetic:count=64 --batch 8 --threads 1 --gates ";
  const json made = json_of(in_time(gates + "--json -o " + dir));
  EXPECT_EQ(made["stopped"], false);
  ASSERT_EQ(made["levels"].size(), 6u);
  EXPECT_EQ(made["levels"][0]["share"], 1);
  EXPECT_LT(made["levels"][5]["operations"], made["levels"][4]["operations"]);
  EXPECT_GE(made["levels"][4]["by_size"], 0);
  EXPECT_EQ(made["judged_on"], "64 images of the test part of synthetic:count=64");
  ASSERT_EQ(limber_program("export " + dir + " -o " + whole).code, 0);
  EXPECT_EQ(limber_program("run " + whole + " --input builtin:image").code, 0);
  const Outcome again = limber_program(gates + "--budget 2s -o " + dir);
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(contains(again.err, "resume")) << again.err;
  for (const char* useless :
       {"--operators skip", "--tune-for 60%", "--size-limit 2", "--answers values", "--budget none"}) {
    const Outcome refused = limber_program(gates + "-o " + dir + "2 " + useless);
    EXPECT_EQ(refused.code, 1) << useless;
    EXPECT_TRUE(contains(refused.err, "--gates")) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(dir + "2"));
  }
}

TEST(Elastify, GoesOnOrRefuses) {
  const Folder folder;
  const std::string dir = folder / "elastic";
  ASSERT_EQ(limber_program(kElastify + "--budget none -o " + dir).code, 0);
  const Outcome again = limber_program(kElastify + "--budget 200ms -o " + dir);
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(contains(again.err, "resume")) << again.err;
  const Outcome more = limber_program(kElastify + "--budget 4s --resume -o " + dir);
  EXPECT_EQ(more.code, 0) << more.err;
  const Outcome other =
      limber_program("elastify builtin:vit --data synthetic:count=64 --batch 8 --resume -o " + dir);
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(contains(other.err, "another model")) << other.err;
  std::ofstream(dir + "/manifest.json", std::ios::app) << "x";
  const Outcome damaged = limber_program("search " + dir + " --data synthetic:count=32 --latency 60%");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_TRUE(contains(damaged.err, "manifest.json")) << damaged.err;
  const std::string before = read_text(dir + "/manifest.json");
  for (const char* how : {"", "--resume "}) {  // what may be mended is not written over
    const Outcome over = limber_program(kElastify + "--budget 200ms " + how + "-o " + dir);
    EXPECT_EQ(over.code, 1) << how;
    EXPECT_TRUE(contains(over.err, "damaged")) << over.err;
    EXPECT_EQ(read_text(dir + "/manifest.json"), before);
  }
}

// Teaching further makes what a search found out stale; weights of another training are not those it knows.
TEST(Elastify, ForgetsWhatNoLongerHolds) {
  const Folder folder;
  const std::string model = folder / "model.onnx", dir = folder / "elastic", run = folder / "run";
  ASSERT_EQ(limber_program("export builtin:resnet8 -o " + model).code, 0);
  const std::string rest = " --data synthetic:count=64 --batch 8 --threads 1 ";
  const std::string elastify = " --operators shrink50 -o " + dir;
  ASSERT_EQ(limber_program("elastify " + model + rest + "--budget none" + elastify).code, 0);
  ASSERT_EQ(limber_program("search " + dir + rest + "--latency 10s --images 16 --evaluations 4").code, 0);
  const auto variants = [&] {
    const auto loaded = load_elastic(dir);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    const auto table = VariantTable::open(variants_in(dir), loaded->model);
    EXPECT_TRUE(table.ok()) << table.status().message();
    EXPECT_EQ((*table)->refused().value(), "");
    std::set<std::string> names;
    const auto index = *(*table)->index();
    for (const VariantGroup& group : index->groups()) {
      for (const VariantRecord& record : index->all(group))
        names.insert(print(loaded->model, record.variant));
    }
    return names;
  };
  const auto before = variants();
  EXPECT_GT(before.size(), 1u);
  // Nothing learns: all of it holds.
  ASSERT_EQ(limber_program("elastify " + model + rest + "--resume --budget none" + elastify).code, 0);
  EXPECT_EQ(variants(), before);
#ifdef LIMBER_SANITIZED
  const std::string enough = "25s";  // what is around teaching takes several times as long
#else
  const std::string enough = "4s";
#endif
  ASSERT_EQ(limber_program("elastify " + model + rest + "--resume --budget " + enough + elastify).code, 0);
  EXPECT_EQ(variants(), std::set<std::string>{"original"});  // which learns nothing
  ASSERT_EQ(limber_program("train " + model + rest + "--epochs 1 -o " + run).code, 0);
  const Outcome other = limber_program("elastify " + run + rest + "--resume" + elastify);
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(contains(other.err, "other weights")) << other.err;
}

class SearchCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = folder_ / "elastic";
    ASSERT_EQ(limber_program(kElastify + "--budget none -o " + dir_).code, 0);
  }
  std::string command(const std::string& more) const {
    return "search " + dir_ + " --images 32 --threads 1 --json " + more;
  }
  std::vector<VariantRecord> records() const {
    const auto loaded = load_elastic(dir_);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    const auto table = VariantTable::open(variants_in(dir_), loaded->model);
    EXPECT_TRUE(table.ok()) << table.status().message();
    const auto index = *(*table)->index();
    std::vector<VariantRecord> all;
    for (const VariantGroup& group : index->groups()) {
      const auto some = index->all(group);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  const Folder folder_;
  std::string dir_;
  const std::string data_ = "--data synthetic:count=48 ";
};

TEST_F(SearchCommandTest, KeepsWhatItEvaluatedForTheSameImages) {
  const json first = json_of(limber_program(command(data_ + "--latency 10s --evaluations 6")));
  EXPECT_EQ(first["evaluated"], 6);
  EXPECT_EQ(first["known"], 0);
  EXPECT_EQ(records().size(), 6u);
  const json second = json_of(limber_program(command(data_ + "--latency 99% --evaluations 6")));
  EXPECT_EQ(second["known"], 6);
  const size_t all = records().size();
  EXPECT_EQ(all, 6 + second["evaluated"].get<size_t>());
  // Other images: nothing that is known can be compared.
  const json third = json_of(limber_program(command(data_ + "--latency 10s --evaluations 4 --seed 1")));
  EXPECT_EQ(third["known"], 0);
  EXPECT_EQ(records().size(), all + 4);
}

TEST_F(SearchCommandTest, GoesOnAfterASignal) {
  const std::string search = command(data_ + "--latency 99% --evaluations 1000000");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string line = "exec '" LIMBER_BINARY "' " + search + " >/dev/null 2>&1";
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 600 && !std::filesystem::exists(variants_in(dir_)); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (int i = 0; i < 600 && records().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "the signal ended it";
  const size_t kept = records().size();
  ASSERT_GT(kept, 0u);
  const json rest = json_of(limber_program(command(data_ + "--latency 99% --evaluations 4")));
  EXPECT_EQ(rest["known"], kept);
}

TEST_F(SearchCommandTest, ReturnsWhatKeepsAllLimits) {
  const json free = json_of(limber_program(command(data_ + "--latency 10s --evaluations 12")));
  EXPECT_EQ(free["within"], true);
  EXPECT_LE(free["measured_s"], free["limit_s"]);
  const int most = static_cast<int>(0.9 * free["original_parameters"].get<double>());
  const json small = json_of(
      limber_program(command(data_ + "--latency 10s --evaluations 12 --max-params " + std::to_string(most))));
  EXPECT_LE(small["parameters"], most);
  const auto memory = free["memory_bytes"].get<uint64_t>();
  const json tight = json_of(limber_program(
      command(data_ + "--latency 10s --evaluations 12 --max-memory " + std::to_string(memory))));
  EXPECT_LE(tight["memory_bytes"], memory);
  const Outcome none = limber_program(command(data_ + "--latency 10s --evaluations 4 --max-memory 1K"));
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(contains(none.err, "1024 bytes")) << none.err;
  for (const VariantRecord& record : records()) {
    EXPECT_EQ(record.memory_bytes > 0, record.measured_s.has_value());
  }
}

TEST_F(SearchCommandTest, TakesTheOriginalsAnswersForLabels) {
  const json found =
      json_of(limber_program(command(data_ + "--latency 10s --evaluations 3 --labels original")));
  EXPECT_EQ(found["original_accuracy"], 1.0);
}

TEST_F(SearchCommandTest, PrintsTheBestPerLevel) {
  const json found = json_of(limber_program(command(data_ + "--latency 10s --evaluations 12")));
  double seconds = 0, accuracy = -1;
  for (const json& one : found["front"]) {
    EXPECT_GT(one["predicted_s"], seconds);
    EXPECT_GT(one["accuracy"], accuracy);
    seconds = one["predicted_s"];
    accuracy = one["accuracy"];
  }
  EXPECT_GT(accuracy, -1);
}

TEST_F(SearchCommandTest, IsBenched) {
  const Outcome outcome =
      limber_program("bench " + dir_ + " --worker --threads 1 --images 16 " + data_,
                     "table\nsubnets 2\nsearch plain-evolution 0.95 4 0\nreuse 0.95 4\nuniform shrink50 0.5\n"
                     "accuracy original\nchain\nquit\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line) && line == "ready");
  for (const char* key :
       {"original_ms", "subnets", "curve", "time_saving", "share", "accuracy", "variants"}) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_TRUE(json::parse(line).contains(key)) << key << ": " << line;
  }
  EXPECT_EQ(limber_program("bench " + dir_).code, 2);
}

TEST(Elastify, WrongUse) {
  const Folder folder;
  const auto expect = [&](const std::string& arguments, int code, const std::string& part) {
    const Outcome outcome = limber_program(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  };
  expect("elastify builtin:resnet8 --data synthetic -o x --budget soon", 2, "20min");
  expect("elastify builtin:resnet8 --data synthetic --operators wider -o " + (folder / "x"), 1, "wider");
  expect("search builtin:resnet8 --data synthetic --latency 60%", 2, "elastify");
  expect("search builtin:resnet8 --data synthetic", 2, "latency is missing");
  expect("search builtin:resnet8 --data synthetic --latency 600%", 2, "60%");
  expect("search builtin:resnet8 --data synthetic --latency 60% --max-params few", 2, "1.5M");
  expect("export builtin:resnet8 --variant original -o " + (folder / "x.onnx"), 2,
         "variant is for the folder");
}

}  // namespace
}  // namespace limber
