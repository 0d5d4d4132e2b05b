// limber elastify, search, export --variant: from a model to a smaller one.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

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
  const json made = json_of(limber_program(kElastify + "--budget 500ms --json -o " + dir));
  EXPECT_EQ(made["blocks"], 5);
  EXPECT_GT(made["alternatives"], 0);
  EXPECT_GT(made["variants"], 1);
  EXPECT_EQ(made["stopped"], false);
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
}

TEST(Elastify, GoesOnOrRefuses) {
  const Folder folder;
  const std::string dir = folder / "elastic";
  ASSERT_EQ(limber_program(kElastify + "--budget 200ms -o " + dir).code, 0);
  const Outcome again = limber_program(kElastify + "--budget 200ms -o " + dir);
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(contains(again.err, "--resume")) << again.err;
  const Outcome more = limber_program(kElastify + "--budget 400ms --resume -o " + dir);
  EXPECT_EQ(more.code, 0) << more.err;
  const Outcome other =
      limber_program("elastify builtin:vit --data synthetic:count=64 --batch 8 --resume -o " + dir);
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(contains(other.err, "another model")) << other.err;
  std::ofstream(dir + "/manifest.json", std::ios::app) << "x";
  const Outcome damaged = limber_program("search " + dir + " --data synthetic:count=32 --latency 60%");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_TRUE(contains(damaged.err, "manifest.json")) << damaged.err;
}

// Teaching further makes what a search found out stale; weights of another training are not those it knows.
TEST(Elastify, ForgetsWhatNoLongerHolds) {
  const Folder folder;
  const std::string model = folder / "model.onnx", dir = folder / "elastic", run = folder / "run";
  ASSERT_EQ(limber_program("export builtin:resnet8 -o " + model).code, 0);
  const std::string rest = " --data synthetic:count=64 --batch 8 --threads 1 ";
  const std::string elastify = " --operators skip --budget 200ms -o " + dir;
  ASSERT_EQ(limber_program("elastify " + model + rest + elastify).code, 0);
  ASSERT_EQ(limber_program("search " + dir + rest + "--latency 10s --images 16 --evaluations 4").code, 0);
  const auto variants = [&] {
    const auto table = VariantTable::open(variants_in(dir));
    EXPECT_TRUE(table.ok()) << table.status().message();
    return (*(*table)->index())->size();
  };
  EXPECT_GT(variants(), 0u);
  ASSERT_EQ(limber_program("elastify " + model + rest + "--resume" + elastify).code, 0);
  EXPECT_EQ(variants(), 0u);
  ASSERT_EQ(limber_program("train " + model + rest + "--epochs 1 -o " + run).code, 0);
  const Outcome other = limber_program("elastify " + run + rest + "--resume" + elastify);
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(contains(other.err, "other weights")) << other.err;
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
  expect("search builtin:resnet8 --data synthetic", 2, "--latency");
  expect("search builtin:resnet8 --data synthetic --latency 600%", 2, "60%");
  expect("export builtin:resnet8 --variant 0.1 -o " + (folder / "x.onnx"), 2, "--variant");
}

}  // namespace
}  // namespace limber
