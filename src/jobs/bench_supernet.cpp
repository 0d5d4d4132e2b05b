#include "jobs/bench_supernet.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/clock.h"
#include "base/median.h"
#include "jobs/json.h"
#include "supernet/teach/tune.h"

namespace limber {
namespace {

constexpr std::string_view kVerbs =
    "table, subnets COUNT, search METHOD SHARE EVALUATIONS SEED, reuse SHARE COUNT, accuracy VARIANT, "
    "chain, uniform ALTERNATIVE SHARE, quit";
constexpr double kMeasureSeconds = 0.1;  // of one whole variant

const std::map<std::string, SearchMethod> kMethods = {{"evolution", SearchMethod::kEvolution},
                                                      {"annealing", SearchMethod::kAnnealing},
                                                      {"plain-evolution", SearchMethod::kPlainEvolution},
                                                      {"plain-annealing", SearchMethod::kPlainAnnealing}};

// Which alternative of each block has the name; 0 where none has.
std::vector<int> choices_named(const ElasticModel& model, const std::string& name) {
  std::vector<int> choices;
  for (const Block& block : model.blocks) {
    const auto found =
        std::find_if(block.alternatives.begin(), block.alternatives.end(),
                     [&](const Alternative& one) { return one.name == name && one.span == 1; });
    choices.push_back(
        found == block.alternatives.end() ? 0 : static_cast<int>(found - block.alternatives.begin()));
  }
  return choices;
}

}  // namespace

Result<std::string> SupernetAnswers::answer(const std::string& line) {
  std::istringstream words(line);
  std::string verb, name;
  int count = 0;
  double share = 0;
  uint64_t seed = 0;
  words >> verb;
  if (verb == "table") return table();
  if (verb == "subnets" && words >> count && count > 0) return subnets(count);
  if (verb == "search" && words >> name >> share >> count >> seed && kMethods.contains(name))
    return search(name, share, count, seed);
  if (verb == "reuse" && words >> share >> count && count > 0) return reuse(share, count);
  if (verb == "accuracy" && words >> name) return accuracy(name);
  if (verb == "chain") return chain();
  if (verb == "uniform" && words >> name >> share) return uniform(name, share);
  return invalid("'{}' is none of: {}", line, kVerbs);
}

Result<std::string> SupernetAnswers::table() {
  const double start = now_seconds();
  LIMBER_ASSIGN(work_.table, time_blocks(work_.folder.model, work_.backends, work_.threads, "", {}));
  size_t alternatives = 0;
  for (const auto& block : work_.table.blocks) alternatives += block.size();
  return Json::object({{"seconds", now_seconds() - start},
                       {"blocks", work_.table.blocks.size()},
                       {"alternatives", alternatives},
                       {"original_ms", 1e3 * work_.table.original()}})
      .line();
}

Result<std::string> SupernetAnswers::subnets(int count) {
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work_.folder.model, work_.table));
  // What the table was made from is measured again: how much faster or slower the machine is by now.
  constexpr size_t kAgain = 9;
  const size_t again = std::min(kAgain, work_.table.samples.size());
  std::vector<Variant> variants;
  for (size_t i = 0; i < again; ++i) variants.push_back(work_.table.samples[i].variant);
  for (int i = 0; i < count; ++i) variants.push_back(random_variant(space, random_));
  LIMBER_ASSIGN(const auto measured,
                measure_variants(work_.folder.model, variants, work_.backends,
                                 {.threads = work_.threads, .seconds = kMeasureSeconds}));
  std::vector<double> drifts;
  for (size_t i = 0; i < again; ++i) drifts.push_back(measured[i] / work_.table.samples[i].seconds);
  Json list = Json::array();
  for (size_t i = again; i < variants.size(); ++i) {
    list.push(Json::object({{"variant", print(work_.folder.model, variants[i])},
                            {"predicted_ms", 1e3 * work_.table.predict(variants[i])},
                            {"measured_ms", 1e3 * measured[i]}}));
  }
  Json out = Json::object({{"drift", median(drifts)}});
  out.set("subnets", std::move(list));
  return out.line();
}

Result<std::string> SupernetAnswers::search(const std::string& method, double share, int evaluations,
                                            uint64_t seed) {
  const double start = now_seconds();
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work_.folder.model, work_.table));
  const SearchOptions how{
      .latency_share = share, .method = kMethods.at(method), .max_evaluations = evaluations, .seed = seed};
  LIMBER_ASSIGN(
      const SearchResult result,
      search_variants(
          space, [&](std::span<const Variant> variants) { return work_.evaluate(variants, {}); }, how));
  Json curve = Json::array();
  for (const double accuracy : result.curve) curve.push(accuracy);
  Json out = Json::object({{"accuracy", result.best.accuracy},
                           {"variant", print(work_.folder.model, result.best.variant)},
                           {"seconds", now_seconds() - start}});
  out.set("curve", std::move(curve));
  return out.line();
}

Result<std::string> SupernetAnswers::reuse(double share, int count) {
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work_.folder.model, work_.table));
  double together = 0;
  std::vector<double> found;
  const auto evaluate = [&](std::span<const Variant> variants) -> Result<std::vector<double>> {
    const double start = now_seconds();
    LIMBER_ASSIGN(auto accuracies, work_.evaluate(variants, {}));
    together += now_seconds() - start;
    return accuracies;
  };
  // Once before: sessions are compiled when they are first used.
  const SearchOptions how{.latency_share = share, .max_evaluations = count};
  LIMBER_TRY(search_variants(space, evaluate, how).status());
  const ReuseCounts before = work_.runner->counts();
  together = 0;
  LIMBER_ASSIGN(const SearchResult result, search_variants(space, evaluate, how));
  const ReuseCounts after = work_.runner->counts();
  double alone = 0;
  for (const Scored& one : result.evaluated) {
    const double start = now_seconds();
    LIMBER_ASSIGN(const auto accuracy, work_.evaluate(std::span(&one.variant, 1), {}));
    alone += now_seconds() - start;
    if (accuracy[0] != one.accuracy)
      return error(Code::kInternal, "{}: accuracy {} alone, {} among others",
                   print(work_.folder.model, one.variant), accuracy[0], one.accuracy);
  }
  const auto executed = static_cast<double>(after.executed - before.executed);
  const auto saved = static_cast<double>(after.saved - before.saved);
  return Json::object({{"variants", result.evaluated.size()},
                       {"together_s", together},
                       {"alone_s", alone},
                       {"time_saving", 1 - together / alone},
                       {"block_saving", saved / (executed + saved)},
                       {"cached_bytes", after.peak_cached_bytes}})
      .line();
}

Result<std::string> SupernetAnswers::accuracy(const std::string& variant) {
  LIMBER_ASSIGN(const Variant parsed, parse_variant(work_.folder.model, variant));
  LIMBER_ASSIGN(const auto accuracy, work_.evaluate(std::span(&parsed, 1), {}));
  LIMBER_ASSIGN(const double measured,
                measure_variant(work_.folder.model, parsed, work_.backends,
                                {.threads = work_.threads, .seconds = kMeasureSeconds}));
  return Json::object({{"accuracy", accuracy[0]}, {"measured_ms", 1e3 * measured}}).line();
}

Result<std::string> SupernetAnswers::chain() {
  std::vector<Variant> variants = tuned_variants(work_.folder.model, work_.folder.info);
  variants.insert(variants.begin(), original_variant(work_.folder.model));
  LIMBER_ASSIGN(const auto accuracies, work_.evaluate(variants, {}));
  LIMBER_ASSIGN(const auto seconds, measure_variants(work_.folder.model, variants, work_.backends,
                                                     {.threads = work_.threads, .seconds = kMeasureSeconds}));
  Json list = Json::array();
  for (size_t i = 0; i < variants.size(); ++i)
    list.push(Json::object({{"variant", print(work_.folder.model, variants[i])},
                            {"share", seconds[i] / seconds[0]},
                            {"accuracy", accuracies[i]}}));
  Json out = Json::object({});
  out.set("variants", std::move(list));
  return out.line();
}

Result<std::string> SupernetAnswers::uniform(const std::string& alternative, double share) const {
  const std::vector<int> choices = choices_named(work_.folder.model, alternative);
  std::vector<size_t> places;
  for (size_t b = 0; b < choices.size(); ++b) {
    if (choices[b] != 0) places.push_back(b);
  }
  Variant variant = original_variant(work_.folder.model);
  for (size_t count = 0; count <= places.size(); ++count) {
    variant = original_variant(work_.folder.model);
    for (size_t i = 0; i < count; ++i) {
      const size_t place = places[(2 * i + 1) * places.size() / (2 * count)];
      variant.choices[place] = choices[place];
    }
    if (work_.table.predict(variant) <= share * work_.table.original()) break;
  }
  return Json::object({{"variant", print(work_.folder.model, variant)},
                       {"blocks", places.size()},
                       {"share", work_.table.predict(variant) / work_.table.original()}})
      .line();
}

}  // namespace limber
