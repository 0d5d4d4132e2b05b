#include <array>

#include "ops/op_def.h"
#include "passes/passes.h"

namespace limber {
namespace {

constexpr bool kVerify =
#ifdef LIMBER_CHECKS
    true;
#else
    false;
#endif

Status run_checked(Graph& graph, const Pass& pass) {
  const Graph before = graph;
  LIMBER_TRY(pass.run(graph).in(fmt::format("pass '{}'", pass.name)));
  const Status broken = verify(graph);
  if (broken.ok()) return {};
  return error(Code::kInternal, "pass '{}' broke the graph: {}\n--- before\n{}--- after\n{}", pass.name,
               broken.message(), print(before), print(graph));
}

// Twice what enables more of itself: folding shows new patterns, fusing shows new neighbours.
constexpr std::array kInference = {
    Pass{"fold_constants", fold_constants},
    Pass{"simplify", simplify},
    Pass{"merge_common", merge_common},
    Pass{"fuse_activation_patterns", fuse_activation_patterns},
    Pass{"fuse_norms", fuse_norms},
    Pass{"use_global_pools", use_global_pools},
    Pass{"gemm_to_matmul", gemm_to_matmul},
    Pass{"fuse_attention", fuse_attention},
    Pass{"simplify", simplify},
    Pass{"fold_transpose_matmul", fold_transpose_matmul},
    Pass{"fold_pad", fold_pad},
    Pass{"fold_batch_norm", fold_batch_norm},
    Pass{"fuse_activation", fuse_activation},
    Pass{"fuse_residual", fuse_residual},
    Pass{"fuse_activation", fuse_activation},
};

}  // namespace

Status run_passes(Graph& graph, std::span<const Pass> passes) {
  for (const Pass& pass : passes) {
    if (kVerify) {
      LIMBER_TRY(run_checked(graph, pass));
    } else {
      LIMBER_TRY(pass.run(graph).in(fmt::format("pass '{}'", pass.name)));
    }
  }
  return {};
}

Status optimize_for_inference(Graph& graph) {
  constexpr int kMaxRounds = 4;  // two are usual: the second finds nothing
  uint64_t before = hash(graph);
  for (int round = 0; round < kMaxRounds; ++round) {
    LIMBER_TRY(run_passes(graph, kInference));
    const uint64_t after = hash(graph);
    if (after == before) break;
    before = after;
  }
  return {};
}

}  // namespace limber
