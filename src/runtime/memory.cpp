#include <algorithm>

#include "runtime/arena_offsets.h"
#include "runtime/lower.h"

namespace limber {
namespace {

// First and last step at which the memory of each root slot is in use.
std::vector<Lifetime> lifetimes_by_root(const Plan& plan) {
  std::vector<Lifetime> lives(plan.slots.size(), {0, -1, -1});
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    Lifetime& life = lives[static_cast<size_t>(plan.slots[i].root)];
    life.bytes = std::max(life.bytes, plan.slots[i].bytes);
  }
  const auto touch = [&](int slot, int step) {
    if (slot < 0) return;
    Lifetime& life = lives[static_cast<size_t>(plan.slots[static_cast<size_t>(slot)].root)];
    if (life.first < 0) life.first = step;
    life.last = std::max(life.last, step);
  };
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    const Step& step = plan.steps[static_cast<size_t>(s)];
    for (int slot : step.inputs) touch(slot, s);
    for (int slot : step.outputs) touch(slot, s);
    touch(step.scratch, s);
  }
  return lives;
}

void merge_roots(Plan& plan, int from, int into) {
  if (plan.slots[static_cast<size_t>(from)].storage == Storage::kOutput) {
    plan.slots[static_cast<size_t>(into)].storage = Storage::kOutput;
  }
  for (Slot& slot : plan.slots) {
    if (slot.root == from) slot.root = into;
  }
}

// Lets output 0 of each step take over the memory of an input that dies there.
void share_in_place(Plan& plan, const Assignment& assignment) {
  std::vector<Lifetime> lives = lifetimes_by_root(plan);
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    const Step& step = plan.steps[static_cast<size_t>(s)];
    if (step.node == kNoNode || step.outputs.empty() || step.outputs[0] < 0) continue;
    const Candidate& c = assignment.nodes[step.node.index].candidate;
    const int input = c.must_alias >= 0 ? c.must_alias : c.may_alias;
    if (input < 0 || step.inputs[static_cast<size_t>(input)] < 0) continue;
    const int from = plan.slots[static_cast<size_t>(step.outputs[0])].root;
    const int into = plan.slots[static_cast<size_t>(step.inputs[static_cast<size_t>(input)])].root;
    const Storage storage = plan.slots[static_cast<size_t>(into)].storage;
    Lifetime& source = lives[static_cast<size_t>(into)];
    Lifetime& result = lives[static_cast<size_t>(from)];
    const bool dies = source.last == s && storage == Storage::kArena && from != into;
    bool read_twice = false;  // the same memory through another input of this step
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (static_cast<int>(i) == input || step.inputs[i] < 0) continue;
      read_twice = read_twice || plan.slots[static_cast<size_t>(step.inputs[i])].root == into;
    }
    const bool legal = dies && !read_twice && result.bytes <= source.bytes;
    LIMBER_ASSERT(c.must_alias < 0 || legal);  // lowering made a copy where it would not be
    if (!legal) continue;
    merge_roots(plan, from, into);
    source.last = std::max(source.last, result.last);
    source.first = std::min(source.first, result.first);
  }
}

}  // namespace

Status lay_out_memory(Plan& plan, const Assignment& assignment, size_t max_bytes) {
  share_in_place(plan, assignment);
  const std::vector<Lifetime> lives = lifetimes_by_root(plan);
  std::vector<Lifetime> packed;
  std::vector<size_t> roots;
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    if (slot.root != static_cast<int>(i) || slot.storage != Storage::kArena || lives[i].first < 0) continue;
    packed.push_back(lives[i]);
    roots.push_back(i);
  }
  const ArenaOffsets arena = place_in_arena(packed);
  for (size_t i = 0; i < roots.size(); ++i) plan.slots[roots[i]].offset = arena.offsets[i];
  plan.arena_bytes = arena.bytes;
  plan.live_bytes = arena.live_bytes;
  if (arena.bytes > max_bytes) {
    return error(Code::kResourceExhausted, "activations need {} bytes, at most {} are allowed", arena.bytes,
                 max_bytes);
  }
  return {};
}

}  // namespace limber
