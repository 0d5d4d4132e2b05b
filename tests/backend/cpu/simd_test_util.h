// Runs one node through the own kernels of every instruction set this machine has and compares the results
// with the reference backend's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/simd/own_kernels.h"
#include "backend/cpu/simd/simd.h"
#include "base/random.h"
#include "ir/graph.h"

namespace limber {

struct NodeCase {
  OpKind op;
  std::vector<Tensor> inputs;  // an invalid tensor: an absent optional input
  Attrs attrs = {};
  int outputs = 1;
  std::vector<int> constants = {};  // inputs that the graph holds itself
  double relative = 1e-5, absolute = 1e-6;
};

// Expects an own kernel that agrees with the reference, with one thread and with two.
void expect_same_as_reference(const NodeCase& test);
// Expects every way the CPU backend offers to run the node, in every layout, to agree with the reference and
// to leave zeros where the layout pads. `tune`: every implementation of a layer, not just the first. Returns
// how many there were.
size_t expect_candidates_match(const NodeCase& test, bool tune = true);
// Expects that output 0 may be written over an input, and that doing so gives the same result.
void expect_same_in_place(const NodeCase& test);
// Expects that there is no own kernel.
void expect_unsupported(const NodeCase& test);
// The outputs of the own kernel of the given table. REQUIRES: supported
std::vector<Tensor> run_own(const NodeCase& test, const SimdTable& table, int threads);

Tensor random_tensor(const Shape& shape, uint64_t seed, double low = -2.0, double high = 2.0);
Tensor random_ints(const Shape& shape, uint64_t seed, int64_t low, int64_t high);

// While alive, simd() is `table`.
class ForcedSimd {
 public:
  explicit ForcedSimd(const SimdTable* table) { force_simd(table); }
  ~ForcedSimd() { force_simd(nullptr); }
};

}  // namespace limber
