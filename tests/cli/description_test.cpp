// The manual page and the completions, checked against the program's help and tried in the shells themselves.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <sstream>

#include "tests/cli/program.h"

namespace limber {
namespace {

using Words = std::set<std::string>;

Outcome shell(const Folder& folder, const std::string& command) {
  const std::string to = " >'" + (folder / "out") + "' 2>'" + (folder / "err") + "'";
  const std::string path =
      "PATH='" + std::filesystem::path(LIMBER_BINARY).parent_path().string() + "':$PATH; ";
  const int status = std::system((path + "cd '" + (folder / ".") + "' && (" + command + ")" + to).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, read_text(folder / "out"),
          read_text(folder / "err")};
}

bool present(const char* program) {
  return std::system(("command -v " + std::string(program) + " >/dev/null 2>&1").c_str()) == 0;
}

Words lines_of(const std::string& text) {
  Words lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return lines;
}

// First words of the lines of those parts of the help whose heading is wanted.
Words listed(const std::string& help, const std::function<bool(const std::string&)>& wanted) {
  Words words;
  std::istringstream stream(help);
  bool inside = false;
  for (std::string line; std::getline(stream, line);) {
    const bool entry = line.size() > 2 && line.starts_with("  ") && line[2] != ' ';
    if (!line.starts_with(' ')) inside = line.ends_with(':') && wanted(line.substr(0, line.size() - 1));
    if (!inside || !entry) continue;
    const std::string names = line.substr(2, line.find(' ', 2) - 2);
    std::istringstream split(names);
    for (std::string name; std::getline(split, name, ',');) words.insert(name);
  }
  return words;
}

bool about_options(const std::string& heading) { return heading == "Options"; }

// They stand in groups.
Words commands() { return listed(limber_program("--help").out, std::not_fn(about_options)); }
Words options(const std::string& command) {
  return listed(limber_program(command + " --help").out, about_options);
}

class BashCompletion : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!present("bash")) GTEST_SKIP() << "no bash";
    const Outcome script = limber_program("--completion bash");
    ASSERT_EQ(script.code, 0) << script.err;
    write_text(folder_ / "script", script.out);
  }

  // `words`: as bash breaks the line, quoted; the last is to be completed.
  Words complete(const std::string& words) {
    const Outcome outcome =
        shell(folder_, "bash -c 'source ./script; COMP_WORDS=(" + words +
                           "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _limber; "
                           "[ ${#COMPREPLY[@]} -eq 0 ] || printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "") << words;
    return lines_of(outcome.out);
  }

  Folder folder_;
};

TEST_F(BashCompletion, OffersEveryCommandAndEveryOptionOfTheHelp) {
  ASSERT_GE(commands().size(), 12U);
  EXPECT_EQ(complete(R"(limber "")"), commands());
  EXPECT_EQ(complete("limber -"), options(""));
  for (const std::string& command : commands()) {
    ASSERT_GE(options(command).size(), 3U) << command;
    EXPECT_EQ(complete("limber " + command + " -"), options(command)) << command;
  }
}

TEST_F(BashCompletion, CompletesWhatBegins) {
  EXPECT_EQ(complete("limber ins"), Words{"inspect"});
  EXPECT_EQ(complete("limber inspect builtin : resnet8 --tune-"), Words{"--tune-cache"});
  EXPECT_EQ(complete("limber --completion z"), Words{"zsh"});
}

TEST_F(BashCompletion, OffersValuesWhereTheyAreKnown) {
  EXPECT_EQ(complete(R"(limber run --backend "")"), (Words{"cpu", "ref"}));
  EXPECT_EQ(complete("limber train x.onnx --optimizer adam"), (Words{"adam", "adamw"}));
  EXPECT_EQ(complete("limber inspect --tune = o"), (Words{"on", "off"}));
  EXPECT_EQ(complete(R"(limber inspect --threads "")"), Words{});
  EXPECT_EQ(complete(R"(limber nothing "")"), Words{});
}

TEST_F(BashCompletion, OffersModelsAndFiles) {
  write_text(folder_ / "my model.onnx", "");
  write_text(folder_ / "image.npy", "");
  const Words models = {"builtin:resnet8", "builtin:mobilenet", "builtin:vit"};
  Words all = complete(R"(limber inspect "")");
  for (const std::string& model : models) EXPECT_TRUE(all.contains(model)) << model;
  EXPECT_TRUE(all.contains("my model.onnx") && all.contains("image.npy"));
  EXPECT_EQ(complete(R"(limber inspect "my m")"), Words{"my model.onnx"});
  // Bash puts what it gets behind the colon.
  Words builtins;
  for (const std::string& word : all)
    if (word.starts_with("builtin:")) builtins.insert(word.substr(8));
  EXPECT_EQ(complete("limber inspect builtin : mo"), Words{"mobilenet"});
  EXPECT_EQ(complete("limber inspect builtin :"), builtins);
  EXPECT_EQ(complete("limber run builtin : vit --input im"), Words{"image.npy"});
  EXPECT_EQ(complete("limber run builtin : vit --input name = im"), Words{"image.npy"});
  EXPECT_EQ(complete("limber train --data syn"), Words{"synthetic"});
  // A bash that does not break words at these.
  EXPECT_EQ(complete("limber inspect builtin:mo"), Words{"builtin:mobilenet"});
  EXPECT_EQ(complete("limber run builtin:vit --input name=im"), Words{"name=image.npy"});
  EXPECT_EQ(complete("limber inspect --tune=o"), (Words{"--tune=on", "--tune=off"}));
}

TEST(Completion, FishCompletesCommandsOptionsAndValues) {
  if (!present("fish")) GTEST_SKIP() << "no fish";
  const Folder folder;
  write_text(folder / "script", limber_program("--completion fish").out);
  write_text(folder / "net.onnx", "");
  const auto complete = [&](const std::string& line) {
    const Outcome outcome =
        shell(folder, "HOME=\"$PWD\" fish -c 'source script; complete -C \"" + line + "\"' | cut -f1");
    EXPECT_EQ(outcome.err, "");
    return lines_of(outcome.out);
  };
  EXPECT_EQ(complete("limber "), commands());
  EXPECT_EQ(complete("limber run --backend "), (Words{"cpu", "ref"}));
  EXPECT_EQ(complete("limber inspect --thr"), Words{"--threads"});
  EXPECT_EQ(complete("limber inspect --tune=o"), (Words{"--tune=on", "--tune=off"}));
  EXPECT_EQ(complete("limber inspect net"), Words{"net.onnx"});
}

// zsh completes only at a terminal, which the module zpty stands in for.
TEST(Completion, ZshCompletesCommandsOptionsAndValues) {
  if (!present("zsh")) GTEST_SKIP() << "no zsh";
  const Folder folder;
  write_text(folder / "script", limber_program("--completion zsh").out);
  EXPECT_EQ(shell(folder, "zsh -n script").err, "");
  write_text(folder / "terminal", R"(zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; autoload -U compinit; compinit -u -D; source ./script; print re""ady'
zpty -r -m z text '*ready*'
zpty -n -w z "$1"$'\t'
zpty -r -m z text "*$2*" && print -r -- "$text"
zpty -d z
)");
  // Typed and completed; what is never seen ends by the clock.
  const auto becomes = [&](const std::string& line, const std::string& whole) {
    const std::string command = "timeout 60 zsh -f terminal '" + line + "' '" + whole + "'";
    const Outcome outcome = shell(folder, "HOME=\"$PWD\" TERM=dumb " + command);
    EXPECT_TRUE(outcome.code == 0 && contains(outcome.out, whole)) << line << "\n"
                                                                   << outcome.out << outcome.err;
  };
  becomes("limber insp", "limber inspect ");
  becomes("limber inspect --thre", "limber inspect --threads");
  becomes("limber run --backend r", "limber run --backend ref ");
  becomes("limber inspect builtin:mo", "builtin:mobilenet");
}

TEST(Completion, OtherShellsAreNamedInTheError) {
  const Outcome outcome = limber_program("--completion csh");
  EXPECT_EQ(outcome.code, 2);
  for (const char* part : {"csh", "bash", "zsh", "fish"})
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
}

TEST(ManualPage, HasEveryCommandAndOption) {
  std::string page = limber_program("--man").out;
  for (size_t at = 0; (at = page.find("\\-", at)) != std::string::npos;) page.erase(at, 1);
  for (const std::string& command : commands()) {
    EXPECT_TRUE(contains(page, ".SS " + command + "\n")) << command;
    for (const std::string& option : options(command))
      EXPECT_TRUE(contains(page, "\\fB" + option + "\\fR")) << command << " " << option;
  }
  EXPECT_TRUE(contains(page, "cpu|ref"));
}

TEST(ManualPage, IsCorrectRoff) {
  const char* checker = nullptr;
  if (present("mandoc")) checker = "mandoc -T lint -W warning page | grep -v 'missing date' || true";
  if (present("groff")) checker = "groff -man -Tutf8 -ww -z page";
  if (checker == nullptr) GTEST_SKIP() << "no groff, no mandoc";
  const Folder folder;
  write_text(folder / "page", limber_program("--man").out);
  const Outcome outcome = shell(folder, checker);
  EXPECT_EQ(outcome.out + outcome.err, "");
}

}  // namespace
}  // namespace limber
