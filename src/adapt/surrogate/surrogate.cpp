#include "adapt/surrogate/surrogate.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "passes/gates.h"
#include "variant/fingerprint.h"

namespace limber::adapt {
namespace {

constexpr std::array<std::string_view, 5> kRelevanceNames = {"hardest-gates", "mean-gates", "sensitivity",
                                                             "gates-and-sensitivity", "magnitude"};

Status check_options(const SurrogateOptions& o) {
  if (o.batch < 1) return invalid("'surrogate' learns from {} images at a time, expected 1 or more", o.batch);
  if (!(o.budget.operations > 0 && o.budget.operations <= 1)) {
    return invalid("a surrogate of the share {} of the operations, expected more than 0 and at most 1",
                   o.budget.operations);
  }
  LIMBER_TRY(check(o.training));
  if (o.probe_images < 1)
    return invalid("sensitivity is asked of {} images, expected 1 or more", o.probe_images);
  if (o.remembered < 1) return invalid("{} domains are remembered, expected 1 or more", o.remembered);
  if (o.budget.block < 1)
    return invalid("units are kept by {} at a time, expected 1 or more", o.budget.block);
  if (!(o.budget.least >= 0 && o.budget.least <= 1))
    return invalid("the least share of a group is {}, expected 0 to 1", o.budget.least);
  if (!(o.prior >= 0 && o.window_prior >= 0))
    return invalid("priors of {} and {} images, expected 0 or more", o.prior, o.window_prior);
  if (!(o.write_back >= 0 && o.write_back <= 1))
    return invalid("the master takes the share {} of what is learnt, expected 0 to 1", o.write_back);
  return {};
}

bool uses_gates(RelevanceKind kind) {
  return kind != RelevanceKind::kSensitivity && kind != RelevanceKind::kMagnitude;
}
bool uses_sensitivity(RelevanceKind kind) {
  return kind == RelevanceKind::kSensitivity || kind == RelevanceKind::kGatesAndSensitivity;
}

UnitRelevance product(UnitRelevance a, const UnitRelevance& b) {
  for (size_t g = 0; g < a.size(); ++g) {
    for (size_t u = 0; u < a[g].size(); ++u) a[g][u] *= b[g][u];
  }
  return a;
}

bool is_stored(const Value& value) { return value.role == Role::kParameter || value.role == Role::kState; }

// Copies of all that the model reads.
Result<std::map<std::string, Tensor>> weights_of(const AdaptedModel& model) {
  std::map<std::string, Tensor> weights;
  for (const Value& value : model.graph.values()) {
    if (!is_stored(value)) continue;
    LIMBER_ASSIGN(const Tensor tensor, model.weights->get(value.name));
    LIMBER_ASSIGN(weights[value.name], tensor.copy());
  }
  return weights;
}

Status put(const std::map<std::string, Tensor>& weights, Parameters& to) {
  for (const auto& [name, tensor] : weights) {
    LIMBER_ASSIGN(Tensor copy, tensor.copy());
    to.set(name, std::move(copy));
  }
  return {};
}

bool is_statistic(const std::vector<NormNames>& norms, const std::string& name) {
  return std::any_of(norms.begin(), norms.end(),
                     [&](const NormNames& norm) { return norm.mean == name || norm.variance == name; });
}

// What a change behind a gate is in front of it. A filter whose gate is nearly shut learns for this domain
// alone: the whole of it would throw the master far.
float through_gate(float gate) {
  constexpr float kOpen = 0.25F;
  return gate >= kOpen ? 1 / gate : std::max(gate, 0.0F) / (kOpen * kOpen);
}

// What the master's tensor changes by, elements of other units by nothing: those of the surrogate changed
// from `then` to `now`, and were the master's times `factors`. Nothing when nothing changed.
Result<std::optional<Tensor>> change_of(const Tensor& then, const Tensor& now, double share,
                                        const SlicedTensor* slice, const std::vector<float>* factors) {
  if (std::memcmp(then.raw(), now.raw(), now.bytes()) == 0) return std::optional<Tensor>();
  LIMBER_ASSIGN(Tensor change, now.copy());
  for (size_t i = 0; i < change.data<float>().size(); ++i) {
    change.data<float>()[i] = static_cast<float>(
        share * (static_cast<double>(now.data<float>()[i]) - static_cast<double>(then.data<float>()[i])));
  }
  if (slice != nullptr) {
    LIMBER_ASSIGN(Tensor full, Tensor::zeros(slice->full));
    LIMBER_TRY(put_back(*slice, change, full));
    change = std::move(full);
  }
  if (factors != nullptr) {
    const size_t row = change.data<float>().size() / factors->size();
    for (size_t i = 0; i < change.data<float>().size(); ++i) {
      change.data<float>()[i] *= through_gate((*factors)[i / row]);
    }
  }
  return std::optional(std::move(change));
}

}  // namespace

std::string_view relevance_name(RelevanceKind kind) { return kRelevanceNames[static_cast<size_t>(kind)]; }

Result<std::unique_ptr<Surrogate>> Surrogate::create(const AdaptedModel& master,
                                                     const SurrogateOptions& options) {
  LIMBER_TRY(check_options(options));
  std::unique_ptr<Surrogate> made(new Surrogate(master, options));
  LIMBER_ASSIGN(made->plain_, open_plain_master(master.graph));
  LIMBER_TRY(some_norms_of(made->plain_.graph, made->name()).status());
  LIMBER_ASSIGN(made->origin_, weights_of(master));
  LIMBER_ASSIGN(made->knowledge_, Knowledge::create(made->plain_, *master.weights, options.knowledge));
  LIMBER_ASSIGN(made->count_, OperationCount::of(made->plain_.graph, made->plain_.groups));
  if (!options.folder.empty()) LIMBER_TRY(made->open_state());
  if (find_gates(master.graph).empty() && options.relevance != RelevanceKind::kMagnitude)
    made->options_.relevance = RelevanceKind::kSensitivity;
  LIMBER_TRY(made->recall());
  return made;
}

Status Surrogate::enter(int64_t domain) {
  LIMBER_TRY(keep());
  if (domain == domain_) return {};
  domain_ = domain;
  return recall();
}

Status Surrogate::recall() {
  const auto known = domains_.find(domain_);
  cut_due_ = known == domains_.end();
  if (cut_due_) return {};
  const DomainMemory& memory = known->second;
  LIMBER_ASSIGN(current_, build(memory.kept, memory.gates));
  LIMBER_TRY(put(memory.weights, *current_->network.model.weights));
  current_->cut.weights = memory.weights;
  current_->prior = options_.window_prior;
  return {};
}

Result<bool> Surrogate::adapt(const Tensor& images) {
  LIMBER_TRY(check_images(master_.graph, images));
  LIMBER_TRY(keep());
  LIMBER_ASSIGN(const GateReading reading, read_gates(master_, plain_, images));
  if (cut_due_) LIMBER_TRY(cut_for(images, reading));
  LIMBER_TRY(train(images, reading));
  current_->learnt = true;
  return true;
}

Status Surrogate::reset() {
  LIMBER_ASSIGN(knowledge_, Knowledge::create(plain_, *master_.weights, options_.knowledge));
  current_.reset();
  return recall();
}

Status Surrogate::forget(int64_t domain) {
  if (domain == domain_) {
    current_.reset();
    cut_due_ = true;
  }
  kept_at_.erase(domain);
  return domains_.erase(domain) > 0 ? save() : Status();
}

FilterValues Surrogate::gates_of(const GateReading& reading) const {
  FilterValues gates = options_.relevance == RelevanceKind::kHardestGates ? hardest_gates(reading, plain_)
                                                                          : mean_gates(reading, plain_);
  for (std::vector<double>& layer : gates) {
    for (double& gate : layer) gate = static_cast<double>(static_cast<float>(gate));  // as they are saved
  }
  return gates;
}

Result<UnitRelevance> Surrogate::relevance_on(const Tensor& images, const FilterValues& gates) const {
  const RelevanceKind kind = options_.relevance;
  if (kind == RelevanceKind::kMagnitude) return magnitude_relevance(plain_, *master_.weights);
  UnitRelevance relevance;
  if (uses_sensitivity(kind)) {
    LIMBER_ASSIGN(relevance, sensitivity_relevance(master_, plain_, images, options_.probe_images));
  }
  if (!uses_gates(kind)) return relevance;
  UnitRelevance by_gates = gate_relevance(plain_, gates);
  return relevance.empty() ? by_gates : product(std::move(relevance), by_gates);
}

Result<std::unique_ptr<Surrogate::Current>> Surrogate::build(std::vector<std::vector<int64_t>> kept,
                                                             FilterValues gates) {
  auto current = std::make_unique<Current>();
  LIMBER_ASSIGN(current->network, cut_network(plain_, master_, kept, gates));
  const AdaptedModel& model = current->network.model;
  LIMBER_ASSIGN(current->statistics, StatisticsPass::create(model, name()));
  if (options_.training.steps > 0) {
    LIMBER_ASSIGN(current->training, SurrogateTrainer::create(model, options_.training));
  }
  current->cut = {std::move(kept), std::move(gates), {}};
  current->prior = options_.prior;
  std::vector<int64_t> counts;
  for (const auto& units : current->cut.kept) counts.push_back(static_cast<int64_t>(units.size()));
  operations_ = count_->at(counts) / count_->whole();
  return current;
}

Status Surrogate::cut_for(const Tensor& images, const GateReading& reading) {
  FilterValues gates = gates_of(reading);
  LIMBER_ASSIGN(const UnitRelevance relevance, relevance_on(images, gates));
  auto kept = choose_units(*count_, relevance, options_.budget);
  LIMBER_ASSIGN(current_, build(std::move(kept), std::move(gates)));
  LIMBER_ASSIGN(current_->cut.weights, weights_of(current_->network.model));
  cut_due_ = false;
  return {};
}

// Training normalises by the window and lets running statistics drift there; they are made anew, by the
// weights it ends with.
Status Surrogate::train(const Tensor& images, const GateReading& reading) {
  const AdaptedModel& model = current_->network.model;
  LIMBER_ASSIGN(auto statistics, weights_of(model));
  std::erase_if(statistics,
                [&](const auto& entry) { return !is_statistic(current_->statistics->norms(), entry.first); });
  if (current_->training) LIMBER_TRY(current_->training->run(images, reading.probabilities));
  LIMBER_TRY(put(statistics, *model.weights));
  const double prior = current_->prior, count = static_cast<double>(images.shape().dim(0));
  LIMBER_TRY(current_->statistics->run(images, prior / (prior + count)));
  current_->prior = options_.window_prior;
  return {};
}

Status Surrogate::keep() {
  if (!current_ || !current_->learnt) return {};
  LIMBER_ASSIGN(auto now, weights_of(current_->network.model));
  LIMBER_TRY(write_back(now));
  current_->cut.weights = std::move(now);
  current_->learnt = false;
  remember(current_->cut);
  return save();
}

void Surrogate::remember(DomainMemory memory) {
  domains_[domain_] = std::move(memory);
  kept_at_[domain_] = ++keeps_;
  while (domains_.size() > options_.remembered) {
    const auto oldest = std::min_element(domains_.begin(), domains_.end(), [&](const auto& a, const auto& b) {
      return kept_at_[a.first] < kept_at_[b.first];
    });
    kept_at_.erase(oldest->first);
    domains_.erase(oldest);
  }
}

// Statistics are the domain's alone.
Status Surrogate::write_back(const std::map<std::string, Tensor>& now) {
  if (options_.write_back == 0) return {};
  const CutNetwork& network = current_->network;
  for (const auto& [name, tensor] : now) {
    if (is_statistic(current_->statistics->norms(), name)) continue;
    const auto factors = network.factors.find(name);
    LIMBER_ASSIGN(const auto change,
                  change_of(current_->cut.weights.at(name), tensor, options_.write_back, network.find(name),
                            factors == network.factors.end() ? nullptr : &factors->second));
    if (change) LIMBER_TRY(knowledge_->learn(name, *change, *master_.weights));
  }
  return {};
}

Status Surrogate::open_state() {
  auto weights = std::make_shared<Parameters>();
  for (const auto& [name, tensor] : origin_) weights->set(name, tensor);
  LIMBER_ASSIGN(const auto fingerprints, Fingerprints::of({master_.graph, {}, {}, weights}));
  LIMBER_ASSIGN(StateFolder folder, StateFolder::open(options_.folder, fingerprints.model()));
  folder_.emplace(std::move(folder));
  LIMBER_ASSIGN(const auto state, folder_->load());
  return state ? restore(*state).in(options_.folder) : Status();
}

Status Surrogate::restore(const MasterState& state) {
  if (state.spread != options_.knowledge.spread) {
    return invalid(
        "what was learnt has a spread of {}, not {}; ask for the same, or delete the folder to begin "
        "anew",
        state.spread, options_.knowledge.spread);
  }
  for (const auto& [name, tensor] : state.weights) {
    const auto known = origin_.find(name);
    if (known == origin_.end()) return corrupt("the master has no weights called '{}'", name);
    if (known->second.type() != tensor.type()) {
      return corrupt("'{}' is {}, the master's is {}", name, tensor.type().to_string(),
                     known->second.type().to_string());
    }
  }
  for (const auto& [domain, memory] : state.domains)
    LIMBER_TRY(check_memory(memory).in(fmt::format("domain {}", domain)));
  LIMBER_TRY(knowledge_->restore(state.knowledge));
  LIMBER_TRY(put(state.weights, *master_.weights));
  domains_ = state.domains;
  return {};
}

Status Surrogate::check_memory(const DomainMemory& memory) const {
  const auto sliced = slice_channels(plain_.graph, plain_.groups, memory.kept);
  if (!sliced.ok()) return corrupt("{}", sliced.status().message());
  if (memory.gates.size() != plain_.layers.size())
    return corrupt("gates of {} layers, the master has {}", memory.gates.size(), plain_.layers.size());
  for (size_t l = 0; l < memory.gates.size(); ++l) {
    if (memory.gates[l].size() != static_cast<size_t>(plain_.layers[l].filters)) {
      return corrupt("{} gates for the {} filters of '{}'", memory.gates[l].size(), plain_.layers[l].filters,
                     plain_.layers[l].weight);
    }
  }
  size_t stored = 0;
  for (const Value& value : sliced->graph.values()) {
    if (!is_stored(value)) continue;
    ++stored;
    const auto found = memory.weights.find(value.name);
    if (found == memory.weights.end()) return corrupt("there are no weights called '{}'", value.name);
    if (found->second.type() != value.type) {
      return corrupt("'{}' is {}, the surrogate's is {}", value.name, found->second.type().to_string(),
                     value.type.to_string());
    }
  }
  if (stored != memory.weights.size())
    return corrupt("{} weights, the surrogate has {}", memory.weights.size(), stored);
  return {};
}

Status Surrogate::save() {
  if (!folder_) return {};
  MasterState state{options_.knowledge.spread, {}, knowledge_->tensors(), domains_};
  for (const auto& [name, before] : origin_) {
    LIMBER_ASSIGN(Tensor now, master_.weights->get(name));
    if (std::memcmp(before.raw(), now.raw(), now.bytes()) != 0) state.weights.emplace(name, std::move(now));
  }
  return folder_->save(state);
}

}  // namespace limber::adapt
