// Accuracy of many variants on the same images, what they have in common computed once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "data/loader.h"
#include "passes/answers.h"
#include "runtime/session.h"
#include "variant/elastic_model.h"
#include "variant/pieces.h"

namespace limber {

// Images in memory, by batches of equal size but for the last, which may be shorter.
struct EvaluationSet {
  std::vector<Tensor> images;                // each [batch, ...]
  std::vector<std::vector<int64_t>> labels;  // by batch and image; empty: see label_by_original()

  int64_t count() const;  // images
  // "200 images 0123456789abcdef": equal names, equal images and labels. For VariantGroup::data.
  std::string name() const;
};

// The first `count` images of the loader's data set, or all when it is 0, in the loader's order of epoch 0.
Result<EvaluationSet> load_evaluation_set(Loader& loader, int64_t count = 0);

struct BlockRunnerOptions {
  int64_t batch = 50;  // that of the sets; a model with a fixed batch uses its own
  int threads = 1;
  // Features that wait for other variants may take so many bytes; 0: none wait, all is computed again.
  size_t cache_bytes = size_t{256} << 20;
  Answers answers = Answers::kClasses;  // that the model gives
};

// Since the runner was made.
struct ReuseCounts {
  int64_t executed = 0;  // blocks (alternatives, exits) that ran, once per batch of images
  int64_t saved = 0;     // that would have run too if every variant had run by itself
  size_t peak_cached_bytes = 0;
  // The share of all that was saved.
  double saving() const {
    return executed + saved > 0 ? static_cast<double>(saved) / static_cast<double>(executed + saved) : 0;
  }
};

// Has a session for every alternative that was used so far; all share one arena. Parameters that change are
// seen by the next call. Use from one thread. The model must outlive it.
class BlockRunner {
 public:
  // kInvalidArgument when the model gives other answers.
  static Result<std::unique_ptr<BlockRunner>> create(const ElasticModel& model,
                                                     std::vector<std::shared_ptr<Backend>> backends,
                                                     const BlockRunnerOptions& options = {});

  // For each variant the number of images whose label is its best class. Confidence is not looked at.
  // kInvalidArgument when the model has no such variant, or the set has no labels or others than the model.
  // kResourceExhausted when `stop` became true meanwhile. REQUIRES: answers are classes
  Result<std::vector<int64_t>> count_correct(std::span<const Variant> variants, const EvaluationSet& set,
                                             const std::atomic<bool>* stop = nullptr);
  // For each variant how good it is, 0..1: of classes the share of images that count_correct() counts; else
  // how near it is to what the original says (Agreement), whatever the labels.
  Result<std::vector<double>> score(std::span<const Variant> variants, const EvaluationSet& set,
                                    const std::atomic<bool>* stop = nullptr);
  // Logits for one batch of a set; rows behind a short one mean nothing. Valid until the next call.
  Result<Tensor> run(const Variant& variant, const Tensor& images);
  // The labels become the best classes of the original. REQUIRES: answers are classes
  Status label_by_original(EvaluationSet& set);

  const ReuseCounts& counts() const { return counts_; }

 private:
  struct TreeNode {
    VariantPiece piece;  // the root has none
    std::vector<TreeNode> next;
    std::vector<size_t> variants;  // that end here
  };
  // Where features come from: a tensor, and what must still run on it.
  struct Source {
    Tensor features;
    std::vector<VariantPiece> pieces;
  };
  using Visit = std::function<Status(size_t variant, const Tensor& output)>;

  BlockRunner(const ElasticModel& model, std::vector<std::shared_ptr<Backend>> backends,
              const BlockRunnerOptions& options)
      : model_(model), backends_(std::move(backends)), options_(options) {}
  Status visit_set(std::span<const Variant> variants, const EvaluationSet& set, const std::atomic<bool>* stop,
                   const std::function<Status(size_t batch, size_t variant, const Tensor& output)>& visit);
  Result<TreeNode> make_tree(std::span<const Variant> variants, int64_t& pieces) const;
  Status visit_tree(const TreeNode& node, Source source, const Visit& visit);
  Result<Tensor> execute(const Source& source);
  Result<Tensor> execute(const VariantPiece& piece, const Tensor& features);
  Result<Session*> session(const VariantPiece& piece);

  const ElasticModel& model_;
  const std::vector<std::shared_ptr<Backend>> backends_;
  const BlockRunnerOptions options_;
  int64_t classes_ = 0;
  std::shared_ptr<WorkArena> memory_;
  std::map<std::pair<int, int>, std::unique_ptr<Session>> sessions_;  // by VariantPiece::block and choice
  size_t cached_bytes_ = 0;
  ReuseCounts counts_;
};

}  // namespace limber
