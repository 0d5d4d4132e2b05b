#include "variant/variant_table.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/data/files.h"
#include "tests/variant/table_case.h"

namespace limber::test {
namespace {

namespace fs = std::filesystem;

// What a table should hold, by group and name.
using Expected = std::map<std::pair<VariantGroup, std::string>, VariantRecord>;

std::vector<VariantRecord> records_of(const Expected& expected, const VariantGroup& group) {
  std::vector<VariantRecord> records;
  for (const auto& [key, record] : expected) {
    if (key.first == group) records.push_back(record);
  }
  return records;
}

const VariantGroup kGroups[] = {{"cpu/1 thread", "100 images"},
                                {"cpu/1 thread", "2000 images"},
                                {"cpu/4 threads", "100 images"},
                                {"cpu/4 threads", "2000 images"},
                                {"none", "100 images"}};

bool fits(const VariantRecord& r, const VariantLimits& limits) {
  return r.latency_s() <= limits.latency_s && r.memory_bytes <= limits.memory_bytes &&
         r.flops <= limits.flops;
}

// In short words what a lookup is about.
auto worth(const VariantRecord& r) { return std::pair(r.accuracy, -r.latency_s()); }

void expect_same(const VariantIndex& index, const ElasticModel& model, const Expected& held, Random& random) {
  EXPECT_EQ(index.size(), held.size());
  for (const VariantGroup& group : kGroups) {
    const auto all = records_of(held, group);
    EXPECT_EQ(index.all(group).size(), all.size());
    for (const VariantRecord& r : index.all(group)) EXPECT_EQ(r, held.at({group, print(model, r.variant)}));
    for (int i = 0; i < 20; ++i) {
      const double low = 0.001 * static_cast<double>(random.below(45)),
                   high = 0.001 * static_cast<double>(random.below(45));
      const auto range = index.range(group, low, high);
      EXPECT_EQ(static_cast<long>(range.size()), std::count_if(all.begin(), all.end(), [&](const auto& r) {
                  return low <= r.latency_s() && r.latency_s() <= high;
                }));
      EXPECT_TRUE(std::is_sorted(range.begin(), range.end(),
                                 [](const auto& a, const auto& b) { return a.latency_s() < b.latency_s(); }));
      VariantLimits limits;
      if (random.below(4) != 0) limits.latency_s = high;
      if (random.below(2) == 0) limits.memory_bytes = 1000 * random.below(50);
      if (random.below(2) == 0) limits.flops = 1e6 * static_cast<double>(random.below(50));
      const VariantRecord* expected = nullptr;
      for (const VariantRecord& r : all) {
        if (fits(r, limits) && (expected == nullptr || worth(r) > worth(*expected))) expected = &r;
      }
      const VariantRecord* best = index.best(group, limits);
      ASSERT_EQ(best == nullptr, expected == nullptr);
      if (best == nullptr) continue;
      EXPECT_EQ(worth(*best), worth(*expected));
      EXPECT_TRUE(fits(*best, limits));
    }
    // Nobody beats one of the front; everybody outside is beaten by, or equal to, one of it.
    const auto front = index.front(group);
    const auto beats = [](const VariantRecord& a, const VariantRecord& b) {
      return a.latency_s() <= b.latency_s() && a.accuracy >= b.accuracy &&
             (a.latency_s() < b.latency_s() || a.accuracy > b.accuracy);
    };
    for (size_t i = 0; i < front.size(); ++i) {
      for (const VariantRecord& r : all) EXPECT_FALSE(beats(r, *front[i]));
      if (i == 0) continue;
      EXPECT_TRUE(front[i]->latency_s() > front[i - 1]->latency_s() &&
                  front[i]->accuracy > front[i - 1]->accuracy);
    }
    for (const VariantRecord& r : all) {
      EXPECT_TRUE(std::any_of(front.begin(), front.end(), [&](const VariantRecord* f) {
        return beats(*f, r) || (f->latency_s() == r.latency_s() && f->accuracy == r.accuracy);
      }));
    }
  }
}

TEST(VariantTable, AnswersAsBruteForceDoes) {
  const Folder folder;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Random random(seed);
    const ElasticModel model = table_model();
    Expected held;
    const std::string path = folder / fmt::format("t{}.db", seed);
    auto table = open_table(path, model);
    for (int round = 0; round < 8; ++round) {
      std::vector<VariantRecord> batch;
      for (auto n = random.below(60); n > 0; --n) batch.push_back(random_record(random, model));
      for (const VariantRecord& r : batch) held[{r.group, print(model, r.variant)}] = r;
      ASSERT_TRUE(table->put(batch).ok());
      for (auto n = random.below(10); n > 0 && !held.empty(); --n) {
        auto it = held.begin();
        std::advance(it, random.below(held.size()));
        ASSERT_TRUE(table->erase(it->first.first, it->second.variant).ok());
        held.erase(it);
      }
      expect_same(**table->index(), model, held, random);
      for (const VariantRecord& r : batch) {
        const auto got = table->get(r.group, r.variant);
        ASSERT_TRUE(got.ok());
        const auto it = held.find({r.group, print(model, r.variant)});
        EXPECT_EQ(got->has_value(), it != held.end());
        if (got->has_value()) {
          EXPECT_EQ(**got, it->second);
        }
      }
      if (random.below(2) == 0) {
        table.reset();
        table = open_table(path, model);
      }
    }
  }
}

TEST(VariantTable, WhatIsNotThere) {
  const Folder folder;
  const ElasticModel model = table_model();
  auto table = open_table(folder / "t.db", model);
  const Variant original = original_variant(model);
  const VariantGroup group{"cpu", "some images"};
  EXPECT_FALSE(table->get(group, original)->has_value());
  EXPECT_EQ(table->erase(group, original).code(), Code::kNotFound);
  EXPECT_EQ((*table->index())->best(group, {}), nullptr);
  EXPECT_EQ((*table->index())->widest("cpu"), nullptr);
  EXPECT_TRUE((*table->index())->front(group).empty());
  EXPECT_TRUE((*table->index())->groups().empty());
  EXPECT_EQ(table->refused().value(), "");
  expect_failure(VariantTable::open(folder / "none/t.db", model), Code::kNotFound, {"none/t.db"});
  expect_failure(VariantTable::open(folder.path(), model), Code::kInvalidArgument, {"not a regular file"});
}

TEST(VariantTable, RecordsThatMakeNoSenseAreRefused) {
  const Folder folder;
  const ElasticModel model = table_model();
  auto table = open_table(folder / "t.db", model);
  const auto refused = [&](auto change) {
    VariantRecord r;
    r.group = {"cpu", "2 images"};
    r.variant = original_variant(model);
    EXPECT_TRUE(check_record(r).ok());
    change(r);
    EXPECT_EQ(table->put(r).code(), Code::kInvalidArgument);
  };
  refused([](VariantRecord& r) { r.group.context = ""; });
  refused([](VariantRecord& r) { r.group.data = ""; });
  refused([](VariantRecord& r) { r.group.context = "a\nb"; });
  refused([](VariantRecord& r) { r.group.context = std::string(kMaxContext + 1, 'x'); });
  refused([](VariantRecord& r) { r.group.data = std::string(kMaxContext + 1, 'x'); });
  refused([](VariantRecord& r) { r.variant.choices.clear(); });
  refused([](VariantRecord& r) { r.variant.choices[0] = -3; });
  refused([](VariantRecord& r) { r.variant.choices[0] = 5; });
  refused([](VariantRecord& r) { r.variant.exit = 3; });
  refused([](VariantRecord& r) { r.variant.confidence = 2; });
  refused([](VariantRecord& r) { r.predicted_s = -1; });
  refused([](VariantRecord& r) { r.predicted_s = NAN; });
  refused([](VariantRecord& r) { r.measured_s = INFINITY; });
  refused([](VariantRecord& r) { r.accuracy = 1.01; });
  refused([](VariantRecord& r) { r.images = -1; });
  refused([](VariantRecord& r) { r.flops = NAN; });
  refused([](VariantRecord& r) { r.energy_j = -0.5; });
  refused([](VariantRecord& r) { r.memory_bytes = UINT64_MAX; });
  EXPECT_EQ((*table->index())->size(), 0u);
}

// Names that need pages of their own, and page after page of free ones.
TEST(VariantTable, HoldsLongVariantsAndManyChanges) {
  const Folder folder;
  const std::string path = folder / "t.db";
  const ElasticModel model = table_model(100);
  Random random(2);
  Expected held;
  for (int round = 0; round < 8; ++round) {
    auto table = open_table(path, model);
    ASSERT_NE(table, nullptr);
    std::vector<VariantRecord> batch;
    for (int n = 0; n < 20; ++n) batch.push_back(random_record(random, model, random.below(100)));
    for (const VariantRecord& r : batch) held[{r.group, print(model, r.variant)}] = r;
    ASSERT_TRUE(table->put(batch).ok());
    while (held.size() > 70) {
      const VariantRecord r = held.begin()->second;
      ASSERT_TRUE(table->erase(r.group, r.variant).ok());
      held.erase(held.begin());
    }
    expect_same(**table->index(), model, held, random);
  }
}

VariantRecord record_of(const Variant& variant) {
  VariantRecord r;
  r.group = {"cpu", "10 images"};
  r.variant = variant;
  r.accuracy = 0.5;
  r.images = 10;
  return r;
}

// Gives the alternative a weight of its own, which teaching changes.
void teach(ElasticModel& model, Alternative& alternative, float value) {
  Tensor weight = *Tensor::allocate({DType::kF32, Shape{4}});
  for (float& x : weight.data<float>()) x = value;
  model.params->set("w", weight);
  Graph graph;
  const ValueId x = graph.add_input("x", {DType::kF32, Shape{1, 4}});
  const ValueId w = graph.add_parameter("w", {DType::kF32, Shape{4}});
  graph.add_output(*emit(graph, OpKind::kAdd, {x, w}), "y");
  alternative.graph = graph;
}

TEST(VariantTable, RecordsMeanTheSameWhenAlternativesComeAndGo) {
  const Folder folder;
  ElasticModel model = table_model();
  Variant low_rank = original_variant(model);
  low_rank.choices[1] = 3;
  ASSERT_TRUE(open_table(folder / "t.db", model)->put(record_of(low_rank)).ok());
  auto& alternatives = model.blocks[1].alternatives;
  alternatives.insert(alternatives.begin() + 1, Alternative{"merge2", 2, model.base, 0});
  auto table = open_table(folder / "t.db", model);
  auto index = *table->index();
  ASSERT_EQ(index->size(), 1u) << table->refused().value();
  EXPECT_EQ(index->all({"cpu", "10 images"})[0].variant.choices, (std::vector<int>{0, 4, 0, 0}));
  EXPECT_EQ(print(model, index->all({"cpu", "10 images"})[0].variant), "/layer1/Relu%2C1=low_rank25");
  // Without it, the record speaks of nothing; it is not taken for one of another alternative.
  alternatives.erase(alternatives.begin() + 4);
  table = open_table(folder / "t.db", model);
  EXPECT_EQ((*table->index())->size(), 0u);
  EXPECT_NE(table->refused()->find("there is no alternative 'low_rank25'"), std::string::npos)
      << table->refused().value();
  ASSERT_TRUE(table->erase_refused().ok());
  EXPECT_EQ(table->refused().value(), "");
}

TEST(VariantTable, RecordsOfWhatHasLearntSinceAreRefused) {
  const Folder folder;
  ElasticModel model = table_model();
  teach(model, model.blocks[2].alternatives[1], 1);
  Variant taught = original_variant(model), other = taught;
  taught.choices[2] = 1;
  other.choices[0] = 2;
  const std::vector<VariantRecord> records = {record_of(taught), record_of(other),
                                              record_of(original_variant(model))};
  ASSERT_TRUE(open_table(folder / "t.db", model)->put(records).ok());
  EXPECT_EQ((*open_table(folder / "t.db", model)->index())->size(), 3u);
  teach(model, model.blocks[2].alternatives[1], 2);
  auto table = open_table(folder / "t.db", model);
  EXPECT_EQ((*table->index())->size(), 2u);
  EXPECT_FALSE(table->get(records[0].group, taught)->has_value());
  EXPECT_TRUE(table->get(records[1].group, other)->has_value());
  const std::string why = table->refused().value();
  for (const char* part : {"t.db", "1 of its records", "shrink50", "fingerprint", "limber search"})
    EXPECT_NE(why.find(part), std::string::npos) << why;
  // Judged anew, it holds.
  ASSERT_TRUE(table->put(records[0]).ok());
  EXPECT_EQ((*table->index())->size(), 3u);
  EXPECT_EQ(table->refused().value(), "");
}

TEST(VariantTable, RecordsOfAnotherModelAreRefused) {
  const Folder folder;
  ElasticModel one = table_model(), two = table_model();
  teach(one, one.blocks[0].alternatives[0], 1);
  teach(two, two.blocks[0].alternatives[0], -1);
  ASSERT_TRUE(open_table(folder / "t.db", one)->put(record_of(original_variant(one))).ok());
  const auto table = open_table(folder / "t.db", two);
  EXPECT_EQ((*table->index())->size(), 0u);
  EXPECT_NE(table->refused()->find("another model"), std::string::npos);
}

TEST(VariantTable, ATableOfAnEarlierVersionIsNamed) {
  const Folder folder;
  folder.write("variants.mdb", "whatever it held");
  const auto table = open_table(folder / "variants.db");
  EXPECT_NE(table->refused()->find("variants.mdb: an earlier version wrote it"), std::string::npos);
}

// Accuracies on other images are no reason to prefer a variant.
TEST(VariantTable, JudgedOnOtherImagesIsAnotherFront) {
  VariantRecord few = record_of({{0}}), many = record_of({{1}});
  few.group.data = "4 images";
  few.images = 4;
  few.accuracy = 1;
  many.accuracy = 0.7;
  many.predicted_s = 1;
  const VariantIndex index({few, many});
  ASSERT_EQ(index.groups().size(), 2u);
  EXPECT_EQ(index.front(many.group).size(), 1u);
  EXPECT_EQ(index.best(many.group, {})->accuracy, 0.7);
  EXPECT_EQ(index.widest("cpu")->data, "10 images");
}

TEST(VariantTable, TheBestIsFoundInAboutAMicrosecond) {
  std::vector<VariantRecord> records;
  Random random(4);
  for (int i = 0; i < 5000; ++i) {
    VariantRecord r = random_record(random);
    r.variant.choices[0] = i;
    r.group = {"cpu/12 threads of a machine", "5000 images 0123456789abcdef"};
    r.measured_s = random.uniform(0.001, 0.1);
    r.accuracy = std::min(1.0, 0.5 + 4 * *r.measured_s + random.uniform(0, 0.1));
    records.push_back(r);
  }
  const VariantGroup group = records[0].group;
  const VariantIndex index(std::move(records));
  constexpr int kTimes = 100000;
  double sum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimes; ++i) {
    const VariantRecord* best = index.best(group, {.latency_s = 0.001 * (1 + i % 100)});
    if (best != nullptr) sum += best->accuracy;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_GT(sum, 0);
  EXPECT_LT(took.count() / kTimes, 10e-6);  // ten times what it should take, for busy machines and sanitizers
  RecordProperty("nanoseconds", static_cast<int>(took.count() / kTimes * 1e9));
}

TEST(VariantTable, TablesOfOneFileSeeEachOther) {
  const Folder folder;
  auto one = open_table(folder / "t.db"),
       two = open_table(folder / "../" + fs::path(folder.path()).filename().string() + "/t.db");
  ASSERT_TRUE(one && two);
  Random random(1);
  const VariantRecord r = random_record(random);
  const auto before = *two->index();
  EXPECT_EQ(before, *two->index());
  ASSERT_TRUE(one->put(r).ok());
  EXPECT_EQ((*two->index())->size(), 1u);
  EXPECT_EQ(before->size(), 0u);
  one.reset();
  EXPECT_TRUE(two->put(random_record(random)).ok());
}

TEST(VariantTable, ThreadsReadWhileOneWrites) {
  const Folder folder;
  auto table = open_table(folder / "t.db");
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      size_t last = 0;
      while (!stop) {
        const auto index = table->index();
        ASSERT_TRUE(index.ok());
        EXPECT_GE((*index)->size(), last);
        last = (*index)->size();
        const VariantGroup group{"cpu/1 thread", "2000 images"};
        const VariantRecord* best = (*index)->best(group, {.latency_s = 0.02});
        if (best != nullptr) {
          EXPECT_TRUE(table->get(group, best->variant)->has_value());
        }
      }
    });
  }
  Random random(8);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(table->put(random_record(random)).ok());
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

// Runs `work` in another process; its result is whether that went well.
template <typename F>
pid_t in_child(const F& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  return child;
}
int wait_for(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// One record for each number below 625.
VariantRecord numbered(const std::string& context, int number) {
  VariantRecord r = record_of({});
  r.group.context = context;
  for (int rest = number, b = 0; b < 4; rest /= 5, ++b) r.variant.choices.push_back(rest % 5);
  return r;
}

TEST(VariantTable, ProcessesShareIt) {
  const Folder folder;
  const std::string path = folder / "t.db";
  const ElasticModel model = table_model();
  const auto writer = [&](const std::string& machine) {
    return in_child([&, machine] {
      auto table = VariantTable::open(path, model);
      for (int i = 0; i < 30 && table.ok(); ++i) {
        const VariantRecord r = numbered(machine, i);
        if (!(*table)->put(r).ok() ||
            (*table)->index().value()->all(r.group).size() != static_cast<size_t>(i + 1))
          return false;
      }
      return table.ok();
    });
  };
  const pid_t children[] = {writer("machine 1"), writer("machine 2")};
  // Opening checks the whole file while others write to it.
  const pid_t opener = in_child([&] {
    for (int i = 0; i < 40; ++i) {
      if (!VariantTable::open(path, model).ok()) return false;
    }
    return true;
  });
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(wait_for(opener), 0);
  const auto table = open_table(path, model);
  EXPECT_EQ((*table->index())->all({"machine 1", "10 images"}).size(), 30u);
  EXPECT_EQ((*table->index())->all({"machine 2", "10 images"}).size(), 30u);
}

TEST(VariantTable, AKilledWriterLeavesWholeBatches) {
  const Folder folder;
  const std::string path = folder / "t.db";
  const ElasticModel model = table_model();
  Random random(3);
  for (int i = 0; i < 12; ++i) {
    const pid_t child = in_child([&] {
      auto table = VariantTable::open(path, model);
      for (int k = 0; table.ok(); ++k) {
        std::vector<VariantRecord> batch;
        for (int n = 0; n < 10; ++n) batch.push_back(numbered(fmt::format("{} {}", i, k), n));
        if (!(*table)->put(batch).ok()) return false;
      }
      return false;
    });
    ::usleep(static_cast<useconds_t>(2000 + random.below(40000)));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(wait_for(child)));
    const auto table = open_table(path, model);
    ASSERT_NE(table, nullptr);
    EXPECT_EQ((*table->index())->size() % 10, 0u);
  }
}

TEST(VariantTable, AFullDiskIsAStatus) {
  const Folder folder;
  const std::string path = folder / "t.db";
  const ElasticModel model = table_model();
  const pid_t child = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    auto table = VariantTable::open(path, model);
    if (!table.ok() || !(*table)->put(numbered("cpu", 0)).ok()) return false;
    rlimit limit{fs::file_size(path) + 40000, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    std::vector<VariantRecord> batch;
    for (int i = 0; i < 600; ++i) batch.push_back(numbered("another", i));
    const Status status = (*table)->put(batch);
    return status.code() == Code::kIo && status.message().find("t.db") != std::string::npos;
  });
  EXPECT_EQ(wait_for(child), 0);
  const auto table = open_table(path, model);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ((*table->index())->size(), 1u);
  EXPECT_TRUE(table->put(numbered("cpu", 1)).ok());
}

}  // namespace
}  // namespace limber::test
