// Saving what a master learnt: whole or not at all, and nothing taken on trust.
#include "adapt/surrogate/master_state.h"

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "adapt/surrogate/surrogate.h"
#include "tests/adapt/surrogate/master_case.h"
#include "tests/base/full_disk.h"

namespace limber::adapt {
namespace {

namespace fs = std::filesystem;

Tensor numbers(std::initializer_list<float> values) {
  return Tensor::from(values, Shape{static_cast<int64_t>(values.size())});
}

MasterState some_state(float x) {
  MasterState state;
  state.spread = 0.25;
  state.weights.emplace("w1", numbers({x, 2}));
  state.knowledge.emplace("base/w1", numbers({3, x}));
  state.domains[0] = {{{0, 1}, {2}}, {{1, 0.5}, {x}}, {{"w1", numbers({x})}, {"mean", numbers({4})}}};
  state.domains[7] = {{{1}, {0}}, {{1, 1}, {1}}, {{"w1", numbers({8})}, {"mean", numbers({9})}}};
  return state;
}

using Values = std::map<std::string, std::vector<float>>;

Values values_of(const std::map<std::string, Tensor>& tensors) {
  Values values;
  for (const auto& [name, tensor] : tensors) {
    const auto data = tensor.data<float>();
    values[name].assign(data.begin(), data.end());
  }
  return values;
}

void expect_equal(const MasterState& actual, const MasterState& expected) {
  EXPECT_EQ(actual.spread, expected.spread);
  EXPECT_EQ(values_of(actual.weights), values_of(expected.weights));
  EXPECT_EQ(values_of(actual.knowledge), values_of(expected.knowledge));
  ASSERT_EQ(actual.domains.size(), expected.domains.size());
  for (const auto& [domain, memory] : expected.domains) {
    const DomainMemory& found = actual.domains.at(domain);
    EXPECT_EQ(found.kept, memory.kept);
    EXPECT_EQ(found.gates, memory.gates);
    EXPECT_EQ(values_of(found.weights), values_of(memory.weights));
  }
}

Status save(const std::string& path, const MasterState& state, const FileSystem& files = os_files()) {
  LIMBER_ASSIGN(const StateFolder folder, StateFolder::open(path, "master", files));
  return folder.save(state);
}

Result<MasterState> load(const std::string& path, const std::string& master = "master") {
  LIMBER_ASSIGN(const StateFolder folder, StateFolder::open(path, master));
  LIMBER_ASSIGN(auto state, folder.load());
  if (!state) return error(Code::kNotFound, "there is no state in {}", path);
  return *std::move(state);
}

// But the lock.
std::vector<std::string> entries(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(".")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(MasterState, GivesBackWhatWasSaved) {
  const Folder folder;
  expect_failure(load(folder / "s"), Code::kNotFound, {"no state"});
  ASSERT_TRUE(save(folder / "s", some_state(1)).ok());
  const auto loaded = load(folder / "s");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  expect_equal(*loaded, some_state(1));
}

TEST(MasterState, ADomainThatDidNotChangeIsNotWrittenAgain) {
  const Folder folder;
  ASSERT_TRUE(save(folder / "s", some_state(1)).ok());
  const auto before = entries(folder / "s");
  ASSERT_EQ(before.size(), 4u);  // the manifest, the master, two domains
  std::map<std::string, fs::file_time_type> times;
  for (const std::string& name : before) times[name] = fs::last_write_time(folder / "s/" + name);
  ASSERT_TRUE(save(folder / "s", some_state(2)).ok());
  const auto after = entries(folder / "s");
  EXPECT_EQ(after.size(), 4u) << "what is not needed any more goes";
  for (const std::string& name : after) {
    if (name.starts_with("domain-7")) {
      EXPECT_EQ(fs::last_write_time(folder / "s/" + name), times.at(name));
    }
    if (name.starts_with("domain-0")) {
      EXPECT_FALSE(times.contains(name));
    }
  }
  expect_equal(*load(folder / "s"), some_state(2));
}

// After so many writes the machine stops in the middle of one.
class MachineThatStops : public test::FullDisk {
 public:
  explicit MachineThatStops(int writes) : FullDisk(size_t{1} << 30), left_(writes) {}
  using FileSystem::write;
  Status write(const std::string& path, std::span<const std::string_view> parts) const override {
    if (left_-- > 0) return os_files().write(path, parts);
    std::ofstream(path + ".123.4.tmp") << parts[0].substr(0, parts[0].size() / 2);
    return error(Code::kIo, "{}: the machine stopped", path);
  }

 private:
  mutable int left_;
};

TEST(MasterState, AStopInTheMiddleLeavesTheOldOne) {
  const Folder folder;
  for (int writes = 0; writes < 3; ++writes) {  // the master, a domain, the manifest
    fs::remove_all(folder / "s");
    ASSERT_TRUE(save(folder / "s", some_state(1)).ok());
    EXPECT_EQ(save(folder / "s", some_state(2), MachineThatStops(writes)).code(), Code::kIo) << writes;
    const auto loaded = load(folder / "s");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    expect_equal(*loaded, some_state(1));
  }
  EXPECT_FALSE(save(folder / "s", some_state(2), test::FullDisk(100)).ok());
  expect_equal(*load(folder / "s"), some_state(1));
  ASSERT_TRUE(save(folder / "s", some_state(2)).ok());
  expect_equal(*load(folder / "s"), some_state(2));
  EXPECT_EQ(entries(folder / "s").size(), 4u) << "something was left behind";
}

TEST(MasterState, AKilledProcessLeavesOneOfTheTwo) {
  const Folder folder;
  ASSERT_TRUE(save(folder / "s", some_state(1)).ok());
  Random random(3);
  for (int i = 0; i < 10; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto state = StateFolder::open(folder / "s", "master");
      for (int k = 2; state.ok(); k = 3 - k) {
        if (!state->save(some_state(static_cast<float>(k))).ok()) ::_exit(1);
      }
      ::_exit(1);
    }
    ::usleep(static_cast<useconds_t>(1000 + random.below(10000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not save";
    const auto loaded = load(folder / "s");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    expect_equal(*loaded, some_state(loaded->weights.at("w1").data<float>()[0] == 1 ? 1 : 2));
  }
}

TEST(MasterState, DamageAnywhereIsFoundAndNamed) {
  const Folder folder;
  ASSERT_TRUE(save(folder / "s", some_state(1)).ok());
  for (const std::string& name : entries(folder / "s")) {
    const std::string path = folder / "s/" + name, good = *os_files().read(path, 1 << 20);
    for (size_t at = 0; at < good.size(); at += 1 + good.size() / 40) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x10);
      ASSERT_TRUE(os_files().write(path, bad).ok());
      const auto loaded = load(folder / "s");
      // A changed number in the manifest need not show, anything else must.
      if (loaded.ok() && name == "manifest.json") continue;
      ASSERT_FALSE(loaded.ok()) << name << " at " << at;
    }
    ASSERT_TRUE(os_files().write(path, good.substr(0, good.size() / 2)).ok());
    expect_failure(load(folder / "s"), Code::kCorrupt, {name});
    ASSERT_TRUE(os_files().write(path, good).ok());
  }
  EXPECT_TRUE(load(folder / "s").ok());
}

TEST(MasterState, BelongsToOneMasterAndOneProcess) {
  const Folder folder;
  ASSERT_TRUE(save(folder / "s", some_state(1)).ok());
  expect_failure(load(folder / "s", "another"), Code::kInvalidArgument, {"another master", "delete"});
  const auto held = StateFolder::open(folder / "s", "master");
  ASSERT_TRUE(held.ok());
  expect_failure(StateFolder::open(folder / "s", "master"), Code::kIo, {"another process"});
}

TEST(MasterState, WhatIsNoNumberIsNotSaved) {
  const Folder folder;
  ASSERT_TRUE(save(folder / "s", some_state(1)).ok());
  EXPECT_FALSE(save(folder / "s", some_state(NAN)).ok());
  expect_equal(*load(folder / "s"), some_state(1));
}

// --- of a strategy -------------------------------------------------------------------------------------

SurrogateOptions options_in(const std::string& folder) {
  SurrogateOptions options;
  options.folder = folder;
  options.probe_images = 6;
  options.budget.operations = 0.4;
  options.training.steps = 2;
  return options;
}

TEST(SavedSurrogate, GoesOnInAnotherProcess) {
  for (const double spread : {0.0, 0.2}) {
    const Folder folder;
    SurrogateOptions options = options_in(folder / "adaptation");
    options.knowledge.spread = spread;
    std::map<std::string, std::string> master_bytes, surrogate_bytes;
    {
      const AdaptedModel master = gated_model();
      const auto surrogate = *Surrogate::create(master, options);
      ASSERT_TRUE(surrogate->enter(4).ok());
      ASSERT_TRUE(surrogate->adapt(small_images(12, 1)).ok());
      ASSERT_TRUE(surrogate->keep().ok());
      master_bytes = test::bytes_of(*master.weights);
      surrogate_bytes = test::bytes_of(*surrogate->remodelled()->weights);
      // Not kept, and so not saved.
      ASSERT_TRUE(surrogate->adapt(small_images(12, 2)).ok());
    }
    const AdaptedModel master = gated_model();
    const auto surrogate = Surrogate::create(master, options);
    ASSERT_TRUE(surrogate.ok()) << surrogate.status().message();
    EXPECT_EQ(test::bytes_of(*master.weights), master_bytes);
    ASSERT_TRUE((*surrogate)->enter(4).ok());
    EXPECT_EQ(test::bytes_of(*(*surrogate)->remodelled()->weights), surrogate_bytes);
  }
}

TEST(SavedSurrogate, WhatDoesNotFitTheMasterIsRefused) {
  const Folder folder;
  const SurrogateOptions options = options_in(folder / "adaptation");
  {
    const auto surrogate = *Surrogate::create(gated_model(), options);
    ASSERT_TRUE(surrogate->adapt(small_images(12, 1)).ok());
    ASSERT_TRUE(surrogate->keep().ok());
  }
  expect_failure(Surrogate::create(gated_model(9), options), Code::kInvalidArgument, {"another master"});
  SurrogateOptions other = options;
  other.knowledge.spread = 0.1;
  expect_failure(Surrogate::create(gated_model(), other), Code::kInvalidArgument, {"spread"});
  const std::string path = folder / "adaptation";
  const std::string text = *os_files().read(path + "/manifest.json", 1 << 20);
  const std::string fingerprint = text.substr(text.find("\"master\":\"") + 10, 64);
  const MasterState good = **StateFolder::open(path, fingerprint)->load();
  // Well-formed files that say something else about this master.
  const auto refused = [&](const auto& change, const char* what) {
    MasterState bad = good;
    change(bad, bad.domains.at(0));
    ASSERT_TRUE(StateFolder::open(path, fingerprint)->save(bad).ok());
    expect_failure(Surrogate::create(gated_model(), options), Code::kCorrupt, {what});
  };
  refused([](auto& s, auto&) { s.weights.emplace("other", numbers({1})); }, "'other'");
  refused([](auto& s, auto&) { s.weights.insert_or_assign("w1", numbers({1})); }, "f32[8,3,3,3]");
  refused([](auto& s, auto&) { s.knowledge.emplace("base/w1", numbers({1})); }, "1 tensors");
  refused([](auto&, auto& d) { d.kept.pop_back(); }, "1 lists");
  refused([](auto&, auto& d) { d.kept[0].back() = 8; }, "no unit 8");
  refused([](auto&, auto& d) { d.gates.pop_back(); }, "gates of 2 layers");
  refused([](auto&, auto& d) { d.gates[1].pop_back(); }, "5 gates");
  refused([](auto&, auto& d) { d.weights.erase("s2"); }, "'s2'");
  refused([](auto&, auto& d) { d.weights.insert_or_assign("s2", numbers({1})); }, "'s2' is f32[1]");
  refused([](auto&, auto& d) { d.weights.emplace("more", numbers({1})); }, "the surrogate has");
  ASSERT_TRUE(StateFolder::open(path, fingerprint)->save(good).ok());
  EXPECT_TRUE(Surrogate::create(gated_model(), options).ok());
}

}  // namespace
}  // namespace limber::adapt
