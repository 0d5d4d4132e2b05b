#include <numeric>

#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

Status gemm_rule(Rewriter& r, NodeId n) {
  if (r.node(n).op != OpKind::kGemm) return {};
  const Attrs& gemm = r.node(n).attrs;
  const std::string name = r.node(n).name;
  const ValueId y = r.output(n);
  const DType dtype = r.graph().type(y).dtype;
  const double beta = gemm.f("beta", 1);
  ValueId c = beta == 0 ? kNoValue : r.input(n, 2);
  if (!is_float(dtype) && (gemm.f("alpha", 1) != 1 || (c != kNoValue && beta != 1))) return {};

  Attrs attrs;
  for (const char* flag : {"trans_a", "trans_b"}) {
    if (gemm.i(flag, 0) != 0) attrs.set(flag, int64_t{1});
  }
  if (gemm.f("alpha", 1) != 1) attrs.set("alpha", gemm.f("alpha", 1));
  if (c != kNoValue && beta != 1) {
    LIMBER_ASSIGN(const ValueId factor, add_scalar(r, dtype, beta, name + "/beta"));
    LIMBER_ASSIGN(c, r.emit(OpKind::kMul, {c, factor}, {}, name + "/c"));
  }
  std::vector<ValueId> inputs{r.input(n, 0), r.input(n, 1)};
  if (c != kNoValue) inputs.push_back(c);
  LIMBER_ASSIGN(const ValueId product, r.emit(OpKind::kMatMul, std::move(inputs), std::move(attrs), name));
  r.replace(y, product);
  return {};
}

bool swaps_last_two(const std::vector<int64_t>& perm) {
  std::vector<int64_t> expected(perm.size());
  std::iota(expected.begin(), expected.end(), 0);
  if (perm.size() < 2) return false;
  std::swap(expected[perm.size() - 1], expected[perm.size() - 2]);
  return perm == expected;
}

Status transpose_rule(Rewriter& r, NodeId n) {
  if (r.node(n).op != OpKind::kMatMul) return {};
  for (size_t i = 0; i < 2; ++i) {
    const NodeId transpose = r.producer(r.input(n, i), OpKind::kTranspose);
    if (transpose == kNoNode || !swaps_last_two(r.node(transpose).attrs.ints("perm"))) continue;
    const char* flag = i == 0 ? "trans_a" : "trans_b";
    const int64_t toggled = 1 - r.node(n).attrs.i(flag, 0);
    r.set_input(n, i, r.input(transpose, 0));
    if (toggled == 1) {
      r.edit_attrs(n).set(flag, toggled);
    } else {
      r.edit_attrs(n).erase(flag);
    }
  }
  return {};
}

}  // namespace

Status gemm_to_matmul(Graph& graph) { return sweep(graph, gemm_rule).status(); }
Status fold_transpose_matmul(Graph& graph) { return sweep_all(graph, transpose_rule); }

}  // namespace limber
