#include "elastic/step_costs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "base/median.h"
#include "ops/op_def.h"

namespace limber {
namespace {

constexpr size_t kRemembered = 5;  // times of a node: enough for a median, few enough to follow the machine
// Operations by byte; nodes with fewer take the time of reading and writing, as a core does about so many
// while it reads one byte from memory.
constexpr double kFlopsPerByte = 16;
constexpr char kAgain = '#';  // before the count of a key that was there before
// After the name of a node that is executed again (passes/recompute.h).
constexpr std::string_view kCopyOf = "/again";
constexpr char kLight = '~';  // after the key of a forward node before which nothing is trained

using Bits = std::vector<uint64_t>;

void merge(Bits& into, const Bits& from) {
  for (size_t i = 0; i < into.size(); ++i) into[i] |= from[i];
}

int count(const Bits& bits) {
  int total = 0;
  for (uint64_t word : bits) total += __builtin_popcountll(word);
  return total;
}

// A name for each node that is the same in the steps of different subsets: gradients of one node have the
// same name, but differ in operator or type.
std::vector<std::string> node_keys(const Graph& graph) {
  std::map<std::string, int> seen;
  std::vector<std::string> keys;
  for (const Node& node : graph.nodes()) {
    std::string key = std::string(op_name(node.op)) + ' ' + node.name;
    for (ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      key += ' ' + graph.type(v).to_string();
      break;
    }
    const int before = seen[key]++;
    keys.push_back(before == 0 ? key : key + kAgain + std::to_string(before));
  }
  return keys;
}

// By step of a plan: the node it is counted for. A reorder counts for the node that reads its result, or
// else for the one that made what it reorders.
std::vector<NodeId> served_nodes(const Plan& plan) {
  std::vector<NodeId> served(plan.steps.size(), kNoNode);
  std::map<int, NodeId> reader;  // by slot
  for (size_t s = plan.steps.size(); s-- > 0;) {
    const Step& step = plan.steps[s];
    served[s] = step.node;
    for (size_t i = 0; i < step.outputs.size() && served[s] == kNoNode; ++i) {
      const auto it = reader.find(step.outputs[i]);
      if (it != reader.end()) served[s] = it->second;
    }
    for (int slot : step.inputs) reader[slot] = served[s];
  }
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    if (served[s] != kNoNode || plan.steps[s].inputs.empty()) continue;
    const ValueId v = plan.slots[static_cast<size_t>(plan.steps[s].inputs[0])].value;
    if (v != kNoValue) served[s] = plan.graph.value(v).producer;
  }
  return served;
}

// What each node of a plan took, by its key.
std::map<std::string, double> sums_by_key(const Plan& plan, std::span<const double> seconds) {
  const std::vector<std::string> keys = node_keys(plan.graph);
  const std::vector<NodeId> served = served_nodes(plan);
  std::map<std::string, double> sums;
  for (size_t s = 0; s < served.size(); ++s) {
    if (served[s] != kNoNode) sums[keys[served[s].index]] += seconds[s];
  }
  return sums;
}

}  // namespace

std::vector<size_t> indices_of(const TensorMask& mask) {
  std::vector<size_t> indices;
  for (size_t k = 0; k < mask.size(); ++k) {
    if (mask[k]) indices.push_back(k);
  }
  return indices;
}

StepCosts::StepCosts(const Graph& full, std::vector<std::string> tensors)
    : tensors_(std::move(tensors)), nodes_(full.num_nodes()) {
  const std::vector<std::string> keys = node_keys(full);
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    nodes_[n].key = keys[n];
    const double bytes = node_bytes(full, NodeId{n}), flops = node_flops(full, NodeId{n});
    nodes_[n].moves_data = flops < kFlopsPerByte * bytes;
    nodes_[n].work = nodes_[n].moves_data ? bytes : flops;
  }
  find_uses(full);
  find_changes(full);
}

void StepCosts::find_uses(const Graph& full) {
  const Bits none((tensors_.size() + 63) / 64, 0);
  std::vector<Bits> serves(full.num_values(), none);
  std::vector<bool> always(full.num_values(), false);
  std::map<std::string_view, size_t> index;
  for (size_t k = 0; k < tensors_.size(); ++k) index[tensors_[k]] = k;
  // An update of a parameter, of state of its optimiser ("optimizer/<what>/<parameter>") or an effect.
  const auto tensor_of = [&](std::string_view name) -> int64_t {
    for (;;) {
      if (const auto it = index.find(name); it != index.end()) return static_cast<int64_t>(it->second);
      const size_t slash = name.find('/');
      if (slash == std::string_view::npos) return -1;
      name.remove_prefix(slash + 1);
    }
  };
  for (const Output& output : full.outputs()) {
    const std::string_view name =
        output.into != kNoValue ? std::string_view(full.value(output.into).name) : output.name;
    const int64_t k = tensor_of(name);
    if (k < 0) {
      always[output.value.index] = true;
    } else {
      serves[output.value.index][static_cast<size_t>(k) / 64] |= uint64_t{1} << (k % 64);
    }
  }
  for (size_t n = full.num_nodes(); n-- > 0;) {
    const Node& node = full.nodes()[n];
    NodeCost& cost = nodes_[n];
    cost.serves = cost.kept_for = none;
    for (ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      merge(cost.serves, serves[v.index]);
      cost.always = cost.always || always[v.index];
    }
    for (ValueId v : node.inputs) {
      if (v == kNoValue) continue;
      merge(serves[v.index], cost.serves);
      if (cost.always) always[v.index] = true;
    }
  }
  // What forward nodes make and nodes that only serve updates read.
  for (size_t n = 0; n < full.num_nodes(); ++n) {
    if (nodes_[n].always) continue;
    for (ValueId v : full.nodes()[n].inputs) {
      if (v == kNoValue || full.value(v).producer == kNoNode) continue;
      NodeCost& maker = nodes_[full.value(v).producer.index];
      if (!maker.always) continue;
      maker.kept_bytes = std::max(maker.kept_bytes, static_cast<int64_t>(full.type(v).bytes()));
      merge(maker.kept_for, nodes_[n].serves);
    }
  }
}

void StepCosts::find_changes(const Graph& full) {
  const Bits none((tensors_.size() + 63) / 64, 0);
  std::vector<Bits> changed_by(full.num_values(), none);
  for (size_t k = 0; k < tensors_.size(); ++k) {
    if (const auto v = full.find(tensors_[k])) changed_by[v->index][k / 64] |= uint64_t{1} << (k % 64);
  }
  for (size_t n = 0; n < full.num_nodes(); ++n) {
    if (!nodes_[n].always) continue;
    Bits& bits = nodes_[n].changed_by = none;
    for (ValueId v : full.nodes()[n].inputs) {
      if (v != kNoValue) merge(bits, changed_by[v.index]);
    }
    for (ValueId v : full.nodes()[n].outputs) {
      if (v != kNoValue) changed_by[v.index] = bits;
    }
  }
}

// Nodes of the plan that make an activation which it makes again, or read one that it made again.
std::set<std::string> StepCosts::beside_copies(const Plan& plan) const {
  std::set<std::string_view> ours;
  for (const NodeCost& node : nodes_) ours.insert(node.key);
  const std::vector<std::string> keys = node_keys(plan.graph);
  std::vector<bool> copy(plan.graph.num_values(), false);
  std::set<std::string> copied, found;  // names of nodes, and keys
  for (uint32_t n = 0; n < plan.graph.num_nodes(); ++n) {
    const Node& node = plan.graph.nodes()[n];
    if (ours.count(keys[n]) == 0 && node.name.ends_with(kCopyOf)) {
      copied.insert(node.name.substr(0, node.name.size() - kCopyOf.size()));
      for (ValueId v : node.outputs) {
        if (v != kNoValue) copy[v.index] = true;
      }
    }
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId v) { return v != kNoValue && copy[v.index]; });
    if (reads) found.insert(keys[n]);
  }
  for (uint32_t n = 0; n < plan.graph.num_nodes(); ++n) {
    if (copied.count(plan.graph.nodes()[n].name) > 0) found.insert(keys[n]);
  }
  return found;
}

// Calls take(samples, seconds, always) for each node of the plan: where its times are held, the new one, and
// whether every step executes it.
template <typename Take>
void StepCosts::for_each_time(const Plan& plan, const std::map<std::string, double>& sums, const Take& take) {
  const Bits mask = trained_by(plan);
  const std::set<std::string> thrifty = beside_copies(plan);
  const auto light = [&](const NodeCost& node) { return node.always && !any(node.changed_by, mask); };
  const auto time_of = [&](const std::string& key) {  // views take none, nor does what was fused away
    const auto it = sums.find(key);
    return it == sums.end() ? 0.0 : it->second;
  };
  for (const NodeCost& node : nodes_) {
    if (light(node)) take(times_[node.key + kLight], time_of(node.key), true);
  }
  std::map<std::string_view, const NodeCost*> by_key;
  for (const NodeCost& node : nodes_) by_key[node.key] = &node;
  for (const std::string& key : node_keys(plan.graph)) {
    const auto node = by_key.find(key);
    if (node != by_key.end() && light(*node->second)) continue;
    Times& times = thrifty.count(key) > 0 ? thrifty_times_ : times_;
    take(times[key], time_of(key), node != by_key.end() && node->second->always);
  }
}

void StepCosts::survey(const Plan& plan, std::span<const double> seconds) {
  for_each_time(plan, sums_by_key(plan, seconds), [](std::vector<double>& samples, double time, bool) {
    samples.assign(1, samples.empty() ? time : std::min(samples[0], time));
  });
}

void StepCosts::end_survey() {
  slower_ = 1;
  take_times();
}

double StepCosts::observe(const Plan& plan, std::span<const double> seconds) {
  const std::map<std::string, double> sums = sums_by_key(plan, seconds);
  slower_ = how_slow(sums, trained_by(plan));
  for_each_time(plan, sums, [this](std::vector<double>& samples, double time, bool always) {
    if (always && !samples.empty()) return;  // what others are measured by stays
    if (samples.size() == kRemembered) samples.erase(samples.begin());
    samples.push_back(time / slower_);
  });
  take_times();
  return slower_;
}

double StepCosts::spent_twice(const Plan& plan, std::span<const double> seconds) const {
  std::set<std::string_view> ours;
  for (const NodeCost& node : nodes_) ours.insert(node.key);
  double total = 0;
  for (const auto& [key, time] : sums_by_key(plan, seconds)) {
    if (ours.count(key) == 0) total += time;
  }
  return total;
}

Bits StepCosts::trained_by(const Plan& plan) const {
  const std::set<std::string_view> updated(plan.updates.begin(), plan.updates.end());
  TensorMask mask;
  for (const std::string& name : tensors_) mask.push_back(updated.count(name) > 0);
  return bits_of(mask);
}

// Judged by forward nodes that ran in the same way before, the median of their ratios by time; when there are
// too few, as at the last observation.
double StepCosts::how_slow(const std::map<std::string, double>& sums, const Bits& mask) const {
  double weight = 0, all = 0;
  std::vector<std::pair<double, double>> ratios;  // to the time before, which is its weight
  for (const NodeCost& node : nodes_) {
    const auto it = sums.find(node.key);
    if (!node.always || it == sums.end()) continue;
    all += it->second;
    const bool light = !any(node.changed_by, mask);
    const std::string key = light ? node.key + kLight : node.key;
    if (times_.count(key) == 0 && thrifty_times_.count(key) == 0) continue;
    const double before = light ? node.light_seconds : node.seconds;
    if (before > 0) ratios.emplace_back(it->second / before, before);
    weight += before;
  }
  if (ratios.empty() || weight * slower_ < 0.25 * all) return slower_;
  std::sort(ratios.begin(), ratios.end());
  double below = 0;
  for (const auto& [ratio, before] : ratios) {
    below += before;
    if (2 * below >= weight) return ratio;
  }
  return slower_;
}

void StepCosts::set_times(Times times, Times thrifty_times) {
  times_ = std::move(times);
  thrifty_times_ = std::move(thrifty_times);
  take_times();
}

// How much longer gradients take where activations are kept.
double StepCosts::thrift_ratio() const {
  double thrifty = 0, kept = 0;
  for (const NodeCost& node : nodes_) {
    const auto twice = thrifty_times_.find(node.key), once = times_.find(node.key);
    if (node.always || twice == thrifty_times_.end() || once == times_.end()) continue;
    thrifty += median(twice->second);
    kept += median(once->second);
  }
  return thrifty > 0 && kept > 0 ? kept / thrifty : 1;
}

void StepCosts::take_times() {
  const double ratio = thrift_ratio();
  const auto time_of = [&](const std::string& key, double scale) -> std::optional<double> {
    if (const auto it = times_.find(key); it != times_.end()) return median(it->second);
    if (const auto it = thrifty_times_.find(key); it != thrifty_times_.end())
      return scale * median(it->second);
    return std::nullopt;
  };
  for (NodeCost& node : nodes_) {
    auto heavy = time_of(node.key, node.always ? 1 : ratio);
    const auto light = time_of(node.key + kLight, 1);
    // Of two alike a smaller step may have only one.
    if (!heavy && !light) heavy = time_of(node.key.substr(0, node.key.rfind(kAgain)), ratio);
    node.known = heavy || light;
    if (!node.known) continue;
    node.seconds = heavy ? *heavy : *light;
    node.light_seconds = light ? *light : node.seconds;
  }
  estimate_others();
}

// Which activations are made again depends on who reads them, so that parts may lack a node of the full step;
// and a memory limit may keep some tensors from ever being trained.
void StepCosts::estimate_others() {
  for (const bool moves_data : {false, true}) {
    double seconds = 0, work = 0;
    for (const NodeCost& node : nodes_) {
      if (!node.known || node.moves_data != moves_data) continue;
      seconds += node.seconds;
      work += node.work;
    }
    for (NodeCost& node : nodes_) {
      if (node.known || node.moves_data != moves_data || work <= 0) continue;
      node.seconds = node.light_seconds = node.work * seconds / work;
    }
  }
}

bool StepCosts::complete() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const NodeCost& node) { return node.known || node.moves_data; });
}

Bits StepCosts::bits_of(const TensorMask& mask) const {
  Bits bits((tensors_.size() + 63) / 64, 0);
  for (size_t k = 0; k < mask.size(); ++k) {
    if (mask[k]) bits[k / 64] |= uint64_t{1} << (k % 64);
  }
  return bits;
}

double StepCosts::seconds_of(const NodeCost& node, const Bits& mask) {
  if (node.always) return any(node.changed_by, mask) ? node.seconds : node.light_seconds;
  return any(node.serves, mask) ? node.seconds : 0;
}

bool StepCosts::any(const Bits& bits, const Bits& mask) {
  for (size_t i = 0; i < bits.size(); ++i) {
    if ((bits[i] & mask[i]) != 0) return true;
  }
  return false;
}

double StepCosts::predict(const TensorMask& mask) const {
  const Bits bits = bits_of(mask);
  double total = 0;
  for (const NodeCost& node : nodes_) total += seconds_of(node, bits);
  return total;
}

double StepCosts::full() const { return predict(TensorMask(tensors_.size(), true)); }
double StepCosts::forward() const { return predict(TensorMask(tensors_.size(), false)); }

double StepCosts::kept_bytes(const TensorMask& mask) const {
  const Bits bits = bits_of(mask);
  double total = 0;
  for (const NodeCost& node : nodes_) {
    if (node.always && any(node.kept_for, bits)) total += static_cast<double>(node.kept_bytes);
  }
  return total;
}

StepCosts::Chain StepCosts::chain() const {
  const size_t tensors = tensors_.size();
  Chain chain{std::vector<size_t>(tensors), std::vector<double>(tensors, 0), std::vector<double>(tensors, 0)};
  std::vector<size_t> first(tensors, nodes_.size());  // the node that completes its gradient
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const NodeCost& node = nodes_[n];
    const Bits& serves = node.always ? node.changed_by : node.serves;
    const double seconds = node.always ? node.seconds - node.light_seconds : node.seconds;
    const bool shared = count(serves) > 1;
    for (size_t k = 0; k < tensors; ++k) {
      if ((serves[k / 64] >> (k % 64) & 1) == 0) continue;
      (shared ? chain.reach : chain.own)[k] += seconds;
      if (!shared && !node.always) first[k] = std::min(first[k], n);
    }
  }
  for (size_t k = 0; k < tensors; ++k) {  // a result that is kept may make a node faster, by chance
    chain.reach[k] = std::max(chain.reach[k], 0.0);
    chain.own[k] = std::max(chain.own[k], 0.0);
  }
  std::iota(chain.order.begin(), chain.order.end(), size_t{0});
  std::stable_sort(chain.order.begin(), chain.order.end(), [&](size_t a, size_t b) {
    return std::pair(chain.reach[a], first[a]) < std::pair(chain.reach[b], first[b]);
  });
  return chain;
}

}  // namespace limber
