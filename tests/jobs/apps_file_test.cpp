#include "jobs/apps_file.h"

#include <cmath>

#include "tests/jobs/tiny.h"

namespace limber {
namespace {

using test::contains;

TEST(AppsFile, SaysWhatEachApplicationIs) {
  const Folder folder;
  test::write_tiny(folder, "tiny.onnx");
  test::write_classes(folder, {"a", "b"});
  const auto apps = parse_apps(R"(
window = "45s"
[[app]]
name = "gate"
model = "tiny.onnx"
latency = "20ms"
importance = 2
minimum_accuracy = 0.6
adapt = "bn"
adapt_data = "images"
size = [16, 24]
mean = 0.5
std = [0.2, 0.3, 0.4]
[[app]]
name = "yard-2"
model = "builtin:resnet8"
)",
                               folder / "apps.toml");
  ASSERT_TRUE(apps.ok()) << apps.status().message();
  EXPECT_EQ(apps->window_s, 45);
  ASSERT_EQ(apps->apps.size(), 2U);
  const ServedApp& gate = apps->apps[0];
  EXPECT_EQ(gate.name, "gate");
  EXPECT_EQ(gate.model, folder / "tiny.onnx");
  EXPECT_EQ(gate.latency_s, 0.02);
  EXPECT_EQ(gate.importance, 2);
  EXPECT_EQ(gate.minimum_accuracy, 0.6);
  EXPECT_EQ(gate.adapt.method, "bn");
  EXPECT_EQ(gate.adapt.data, folder / "images");
  EXPECT_EQ(gate.image.size, (std::vector<int64_t>{16, 24}));
  EXPECT_EQ(gate.image.normalisation->mean[2], 0.5F);
  EXPECT_EQ(gate.image.normalisation->std[1], 0.3F);
  const ServedApp& yard = apps->apps[1];
  EXPECT_EQ(yard.model, "builtin:resnet8");
  EXPECT_TRUE(std::isinf(yard.latency_s));
  EXPECT_EQ(yard.importance, 1);
  EXPECT_TRUE(yard.adapt.method.empty());
}

TEST(AppsFile, IsServedAnewByWhatItsServerGoesByAlone) {
  const auto served_as = [](const std::string& more) {
    const auto apps = parse_apps("[[app]]\nname = \"a\"\nmodel = \"builtin:resnet8\"\n" + more, "apps.toml");
    EXPECT_TRUE(apps.ok()) << apps.status().message();
    return apps->apps[0].served_as;
  };
  EXPECT_EQ(served_as(""), served_as("importance = 3\nminimum_accuracy = 0.5"));
  EXPECT_NE(served_as(""), served_as("latency = \"5ms\""));
  EXPECT_NE(served_as("size = [16, 24]"), served_as("size = [16, 32]"));
}

TEST(AppsFile, OfWhatIsDamagedTheReasonIsSaidOrItIsAnotherFile) {
  const std::string text =
      "window = \"9s\"\n[[app]]\nname = \"a\"\nmodel = \"builtin:resnet8\"\nlatency = \"2ms\"\nimportance = "
      "2\n"
      "adapt = \"bn\"\nadapt_data = \"synthetic\"\nsize = [16, 24]\nmean = 0.5\nstd = [0.2, 0.3, 0.4]\n";
  ASSERT_TRUE(parse_apps(text, "apps.toml").ok());
  const auto check = [](const std::string& damaged) {
    const auto apps = parse_apps(damaged, "apps.toml");
    if (apps.ok()) {
      EXPECT_FALSE(apps->apps.empty());
    } else {
      EXPECT_TRUE(apps.status().message().starts_with("apps.toml")) << apps.status().message();
    }
  };
  for (size_t i = 0; i < text.size(); ++i) {
    check(text.substr(0, i));
    for (const char other : {'"', '[', ']', '=', '.', '{', '\n', '#', '-', '9', 'e', '\0', '\xff'}) {
      std::string damaged = text;
      damaged[i] = other;
      check(damaged);
    }
  }
}

TEST(AppsFile, SaysWhereWhatIsWrong) {
  const auto said = [](const std::string& text) {
    const auto apps = parse_apps(text, "apps.toml");
    EXPECT_FALSE(apps.ok()) << text;
    return apps.status().message();
  };
  const std::string app = "[[app]]\nname = \"a\"\nmodel = \"builtin:resnet8\"\n";
  EXPECT_EQ(
      said(app + "latency = \"20\""),
      "apps.toml:4: app 'a': latency is \"20\"; expected a time with its unit in quotes, such as \"20ms\"");
  EXPECT_TRUE(contains(said(app + "latency = 20"), "apps.toml:4: app 'a': latency is 20; expected a time"));
  EXPECT_TRUE(
      contains(said(app + "latncy = \"20ms\""), "4: app 'a': unknown key 'latncy'; there are: adapt"));
  EXPECT_TRUE(contains(said("windw = \"3s\"\n" + app), "apps.toml:1: unknown key 'windw'"));
  EXPECT_TRUE(contains(said(app + "importance = \"high\""), "importance is \"high\"; expected a number"));
  EXPECT_TRUE(contains(said(app + "importance = 0"), "importance is 0; expected a number"));
  EXPECT_TRUE(
      contains(said(app + "minimum_accuracy = 60"), "minimum_accuracy is 60; expected a number, 0 to 1"));
  EXPECT_TRUE(contains(said(app + app), "apps.toml:5: app 'a' is named twice"));
  EXPECT_TRUE(contains(said("[[app]]\nmodel = \"m\""), "apps.toml:1: app 1: has no name"));
  EXPECT_TRUE(contains(said("[[app]]\nname = \"a/b\"\nmodel = \"m\""), "name is \"a/b\"; expected letters"));
  EXPECT_TRUE(contains(said("[[app]]\nname = \"a\""), "apps.toml:1: app 'a': has no model"));
  EXPECT_TRUE(contains(said("[[app]]\nname = \"a\"\nmodel = \"nowhere.onnx\""), "'nowhere.onnx' is not"));
  EXPECT_TRUE(contains(said(app + "adapt = \"magic\"\nadapt_data = \"synthetic\""), "magic"));
  EXPECT_TRUE(contains(said(app + "adapt = \"bn\""), "apps.toml:4: app 'a': adapt: no images of the source"));
  EXPECT_TRUE(contains(said(app + "adapt = \"bn\"\nadapt_data = \"nowhere\""), "adapt_data is \"nowhere\""));
  EXPECT_TRUE(contains(said(app + "adapt_data = \"synthetic\""), "'adapt' names no method"));
  EXPECT_TRUE(contains(said(app + "size = 0"), "size is 0; expected a side"));
  EXPECT_TRUE(contains(said(app + "std = 0"), "std is 0; expected"));
  EXPECT_TRUE(contains(said(app + "preprocess = \"magic\""), "expected one of"));
  EXPECT_TRUE(contains(said("app = 3"), "app is 3; expected tables, each below a line [[app]]"));
  EXPECT_TRUE(contains(said(""), "names no application"));
  EXPECT_TRUE(contains(said("[[app]\n"), "apps.toml:1: "));
  EXPECT_TRUE(contains(said(app + "# Tür"), "apps.toml:4: holds a character that is not ASCII"));
  std::string many;
  for (int i = 0; i < 65; ++i)
    many += fmt::format("[[app]]\nname = \"a{}\"\nmodel = \"builtin:resnet8\"\n", i);
  EXPECT_TRUE(contains(said(many), "names 65 applications; expected at most 64"));
  EXPECT_TRUE(contains(read_apps("nowhere.toml").status().message(), "nowhere.toml"));
}

}  // namespace
}  // namespace limber
