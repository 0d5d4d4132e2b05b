// limber exits: exits for an elastic model, and the confidence to take them with.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "record/elastic_records.h"
#include "tests/cli/program.h"
#include "variant/elastic_folder.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

using nlohmann::json;

void make_elastic_folder(const std::string& dir) {
  const Outcome made = limber_program(
      "elastify builtin:resnet8 --data synthetic:count=64 --batch 8 --threads 1 --operators skip "
      "--budget none -o " +
      dir);
  ASSERT_EQ(made.code, 0) << made.err;
}

const std::string kExits = " --data synthetic:count=160 --batch 16 --threads 1 --storage 20 --images 10 ";

TEST(ExitsCommand, TeachesCalibratesAndRemembers) {
  const Folder folder;
  const std::string dir = folder / "elastic";
  make_elastic_folder(dir);
  const json made = json_of(in_time("exits " + dir + kExits + "--max-drop 5 --json"));
  EXPECT_LE(made["storage"], 0.2);
  EXPECT_EQ(made["images"], 16);  // a tenth
  ASSERT_FALSE(made["exits"].empty());
  EXPECT_GE(made["calibrated"]["accuracy"].get<double>(),
            made["original_accuracy"].get<double>() - 0.05 - 1e-9);
  EXPECT_TRUE(made.contains("test"));
  EXPECT_GT(made["real_s"], 0);
  const auto loaded = load_elastic(dir);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->model.exits.size(), made["exits"].size());
  const auto variant = parse_variant(loaded->model, made["variant"].get<std::string>());
  ASSERT_TRUE(variant.ok());
  const auto index = (*VariantTable::open(variants_in(dir), loaded->model))->index();
  ASSERT_TRUE(index.ok());
  ASSERT_EQ((*index)->groups().size(), 1u);
  const auto records = (*index)->all((*index)->groups()[0]);
  // Each exit, the model, and what was calibrated; that is the model where no image may leave.
  const bool leaves = *variant != original_variant(loaded->model);
  EXPECT_EQ(records.size(), made["exits"].size() + (leaves ? 2 : 1));
  const auto same = [&](const VariantRecord& record) { return record.variant == *variant; };
  EXPECT_EQ(std::count_if(records.begin(), records.end(), same), 1);

  // A second time it only calibrates, on the same images whatever the seed.
  const json again = json_of(limber_program("exits " + dir + kExits + "--seed 9 --max-drop 5 --json"));
  EXPECT_EQ(again["exits"].size(), made["exits"].size());
  EXPECT_EQ(again["exits"][0]["accuracy"], made["exits"][0]["accuracy"]);
  const Outcome table = limber_program("exits " + dir + kExits + "--latency 50%");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(contains(table.out, "within the latency")) << table.out;
  const std::string last = folder / "exit.onnx";
  const std::string early = print(loaded->model, {original_variant(loaded->model).choices, 0});
  ASSERT_EQ(limber_program("export " + dir + " --variant " + early + " -o " + last).code, 0);
  EXPECT_EQ(limber_program("check " + last).code, 0);
}

TEST(ExitsCommand, MakesThemAnewWhenAsked) {
  const Folder folder;
  const std::string dir = folder / "elastic";
  make_elastic_folder(dir);
  ASSERT_EQ(in_time("exits " + dir + kExits + "--exits 1 --labels model").code, 0);
  const json again = json_of(in_time("exits " + dir + kExits + "--exits 2 --again --json"));
  EXPECT_LE(again["exits"].size(), 2u);
  EXPECT_GE(again["exits"].size(), 1u);
}

TEST(ExitsCommand, ASubnetMayGoFirst) {
  const Folder folder;
  const std::string dir = folder / "elastic";
  make_elastic_folder(dir);
  auto loaded = load_elastic(dir);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  put_note(loaded->info.notes, TeachingNote{});
  ASSERT_TRUE(save_elastic(dir, loaded->model, loaded->info).ok());
  const Outcome none = limber_program("exits " + dir + kExits + "--blocks subnet");
  EXPECT_NE(none.code, 0);
  EXPECT_TRUE(contains(none.err, "no tuned subnet")) << none.err;

  Variant subnet = original_variant(loaded->model);
  for (size_t b = 0; b < loaded->model.blocks.size(); ++b) {
    if (loaded->model.blocks[b].alternatives.size() > 1) subnet.choices[b] = 1;
  }
  put_note(loaded->info.notes, TeachingNote{.tuned = {print(loaded->model, subnet)}});
  ASSERT_TRUE(save_elastic(dir, loaded->model, loaded->info).ok());
  const json made = json_of(limber_program("exits " + dir + kExits + "--blocks subnet --max-drop 5 --json"));
  ASSERT_EQ(made["exits"].size(), 1u);
  EXPECT_EQ(made["exits"][0]["after"], 0);
  EXPECT_EQ(made["storage"], 0);
  EXPECT_GE(made["calibrated"]["accuracy"].get<double>(),
            made["original_accuracy"].get<double>() - 0.05 - 1e-9);
  const json again = json_of(limber_program("exits " + dir + kExits + "--max-drop 5 --json"));
  ASSERT_EQ(again["exits"].size(), 1u);
  EXPECT_EQ(again["exits"][0]["accuracy"], made["exits"][0]["accuracy"]);
  const json other = json_of(in_time("exits " + dir + kExits + "--exits 1 --again --json"));
  EXPECT_GT(other["exits"][0]["after"], 0);
}

TEST(ExitsCommand, WrongUse) {
  const Folder folder;
  const std::string dir = folder / "elastic";
  make_elastic_folder(dir);
  const auto expect = [&](const std::string& arguments, int code, const std::string& part) {
    const Outcome outcome = limber_program(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  };
  expect("exits builtin:resnet8 --data synthetic", 2, "elastify");
  expect("exits " + dir, 2, "--data");
  expect("exits " + dir + " --data synthetic --latency 600%", 2, "60%");
  expect("exits " + dir + " --data synthetic --budget soon", 2, "20min");
  expect("exits " + dir + " --data synthetic --order stages", 2, "tuned");
  expect("exits " + dir + " --data synthetic --dropout 1", 2, "--dropout");
  expect("exits " + dir + " --data synthetic --sparse 100", 2, "--sparse");
  expect("exits " + dir + " --data synthetic:count=64 --threads 1 --storage 0.01", 1, "storage");
  expect("exits " + dir + " --data synthetic:count=64 --held 64 --threads 1", 1, "hold out");
  expect("exits " + dir + " --data " + (folder / "nothing"), 1, "nothing");
  std::ofstream(dir + "/manifest.json", std::ios::app) << "x";
  expect("exits " + dir + " --data synthetic", 1, "manifest.json");
}

}  // namespace
}  // namespace limber
