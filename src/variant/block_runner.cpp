#include "variant/block_runner.h"

#include <algorithm>

#include "base/hash.h"
#include "ops/op_def.h"
#include "passes/classifier.h"
#include "runtime/compile.h"
#include "variant/agreement.h"
#include "variant/rows.h"

namespace limber {
namespace {

Status check_set(const EvaluationSet& set, int64_t classes) {
  if (set.labels.size() != set.images.size())
    return invalid("labels for {} batches of images, there are {}", set.labels.size(), set.images.size());
  for (size_t i = 0; i < set.images.size(); ++i) {
    if (static_cast<int64_t>(set.labels[i].size()) != set.images[i].shape().dim(0)) {
      return invalid("batch {} has {} labels for {} images", i, set.labels[i].size(),
                     set.images[i].shape().dim(0));
    }
    for (const int64_t label : set.labels[i]) {
      if (label < 0 || label >= classes)
        return invalid("batch {}: class {} of an image, the model has {} classes", i, label, classes);
    }
  }
  return {};
}

// The first `count` rows.
Tensor head_of(const Tensor& tensor, int64_t count) {
  std::vector<Dim> dims;
  for (int axis = 0; axis < tensor.type().rank(); ++axis)
    dims.push_back(Dim(axis == 0 ? count : tensor.shape().dim(axis)));
  return Tensor({tensor.dtype(), Shape(dims)}, tensor.buffer());
}

bool ends_model(const ElasticModel& model, const VariantPiece& piece) {
  if (piece.block == VariantPiece::kExit) return true;
  const auto block = static_cast<size_t>(piece.block);
  const int span = model.blocks[block].alternatives[static_cast<size_t>(piece.choice)].span;
  return block + static_cast<size_t>(span) == model.blocks.size();
}

}  // namespace

int64_t EvaluationSet::count() const {
  int64_t sum = 0;
  for (const Tensor& batch : images) sum += batch.shape().dim(0);
  return sum;
}

std::string EvaluationSet::name() const {
  Hasher hasher;
  for (size_t b = 0; b < images.size(); ++b) {
    hasher.add({static_cast<const char*>(images[b].raw()), images[b].bytes()});
    for (size_t i = 0; b < labels.size() && i < labels[b].size(); ++i)
      hasher.add(static_cast<uint64_t>(labels[b][i]));
  }
  return fmt::format("{} images {:016x}", count(), hasher.digest());
}

Result<EvaluationSet> load_evaluation_set(Loader& loader, int64_t count) {
  EvaluationSet set;
  LIMBER_TRY(loader.start_epoch(0));
  for (int64_t loaded = 0; count <= 0 || loaded < count;) {
    LIMBER_ASSIGN(const Batch batch, loader.next());
    if (batch.size == 0) break;
    const int64_t size = count <= 0 ? batch.size : std::min(batch.size, count - loaded);
    const auto labels = batch.labels.data<int64_t>().first(static_cast<size_t>(size));
    set.images.push_back(size == batch.size ? batch.images : head_of(batch.images, size));
    set.labels.emplace_back(labels.begin(), labels.end());
    loaded += size;
  }
  return set;
}

Result<std::unique_ptr<BlockRunner>> BlockRunner::create(const ElasticModel& model,
                                                         std::vector<std::shared_ptr<Backend>> backends,
                                                         const BlockRunnerOptions& options) {
  if (options.batch < 1) return invalid("batches of {} images, expected 1 or more", options.batch);
  std::unique_ptr<BlockRunner> runner(new BlockRunner(model, std::move(backends), options));
  LIMBER_TRY(check_answers(model.base, options.answers));
  if (options.answers == Answers::kClasses) {
    LIMBER_ASSIGN(runner->classes_, count_classes(model.base));
  }
  LIMBER_ASSIGN(runner->memory_, WorkArena::reserve(CompileSettings{}.max_bytes));
  return runner;
}

Result<Session*> BlockRunner::session(const VariantPiece& piece) {
  std::unique_ptr<Session>& made = sessions_[{piece.block, piece.choice}];
  if (made != nullptr) return made.get();
  const CompileSettings how = batch_settings(*piece.graph, options_.batch, options_.threads);
  const Graph graph = ends_model(model_, piece) ? answers_of(*piece.graph, options_.answers) : *piece.graph;
  auto plan = compile(graph, model_.params, backends_, how);
  if (!plan.ok()) return plan.status().in(describe(model_, piece));
  LIMBER_ASSIGN(made, Session::create(*std::move(plan), memory_));
  return made.get();
}

Result<Tensor> BlockRunner::execute(const VariantPiece& piece, const Tensor& features) {
  LIMBER_ASSIGN(Session* const session, this->session(piece));
  LIMBER_TRY(feed(features, session->input(0)));
  LIMBER_TRY(session->run());
  ++counts_.executed;
  return session->output(0);
}

Result<Tensor> BlockRunner::execute(const Source& source) {
  Tensor features = source.features;
  for (const VariantPiece& piece : source.pieces) {
    LIMBER_ASSIGN(features, execute(piece, features));
  }
  return features;
}

Result<BlockRunner::TreeNode> BlockRunner::make_tree(std::span<const Variant> variants,
                                                     int64_t& count) const {
  TreeNode root;
  for (size_t v = 0; v < variants.size(); ++v) {
    LIMBER_ASSIGN(const auto pieces, pieces_of(model_, variants[v]));
    count += static_cast<int64_t>(pieces.size());
    TreeNode* node = &root;
    for (const VariantPiece& piece : pieces) {
      auto next = std::find_if(node->next.begin(), node->next.end(),
                               [&](const TreeNode& other) { return other.piece.same_as(piece); });
      if (next == node->next.end()) next = node->next.insert(next, TreeNode{.piece = piece});
      node = &*next;
    }
    node->variants.push_back(v);
  }
  return root;
}

// `source` gives the output of `node`, and nothing of it has been computed yet.
Status BlockRunner::visit_tree(const TreeNode& node, Source source, const Visit& visit) {
  if (node.next.empty()) {
    LIMBER_ASSIGN(const Tensor output, execute(source));
    for (const size_t variant : node.variants) LIMBER_TRY(visit(variant, output));
    return {};
  }
  size_t cached = 0;
  if (node.next.size() > 1 && !source.pieces.empty()) {
    LIMBER_ASSIGN(const Session* const last, session(source.pieces.back()));
    const size_t bytes = last->output(0).bytes();
    if (cached_bytes_ + bytes <= options_.cache_bytes) {
      LIMBER_ASSIGN(const Tensor output, execute(source));
      LIMBER_ASSIGN(source.features, output.copy());
      source.pieces.clear();
      cached = bytes;
    }
  }
  cached_bytes_ += cached;
  counts_.peak_cached_bytes = std::max(counts_.peak_cached_bytes, cached_bytes_);
  Status status;
  for (const TreeNode& next : node.next) {
    Source longer = source;
    longer.pieces.push_back(next.piece);
    status = visit_tree(next, std::move(longer), visit);
    if (!status.ok()) break;
  }
  cached_bytes_ -= cached;
  return status;
}

// What the first variant says of a batch is seen before what the others do.
Status BlockRunner::visit_set(
    std::span<const Variant> variants, const EvaluationSet& set, const std::atomic<bool>* stop,
    const std::function<Status(size_t batch, size_t variant, const Tensor& output)>& visit) {
  int64_t alone = 0;
  LIMBER_ASSIGN(const TreeNode root, make_tree(variants, alone));
  for (size_t b = 0; b < set.images.size() && !variants.empty(); ++b) {
    const int64_t before = counts_.executed;
    const Visit each = [&](size_t variant, const Tensor& output) -> Status {
      LIMBER_TRY(visit(b, variant, output));
      if (stop != nullptr && stop->load())
        return error(Code::kResourceExhausted, "stopped in batch {} of {}", b + 1, set.images.size());
      return {};
    };
    LIMBER_TRY(visit_tree(root, {.features = set.images[b]}, each));
    counts_.saved += alone - (counts_.executed - before);
  }
  return {};
}

Result<std::vector<int64_t>> BlockRunner::count_correct(std::span<const Variant> variants,
                                                        const EvaluationSet& set,
                                                        const std::atomic<bool>* stop) {
  LIMBER_ASSERT(options_.answers == Answers::kClasses);
  LIMBER_TRY(check_set(set, classes_));
  std::vector<int64_t> correct(variants.size(), 0);
  LIMBER_TRY(visit_set(variants, set, stop, [&](size_t b, size_t variant, const Tensor& output) -> Status {
    for (size_t i = 0; i < set.labels[b].size(); ++i)
      correct[variant] += among_best(row_of(output, i), set.labels[b][i], 1) ? 1 : 0;
    return {};
  }));
  return correct;
}

Result<std::vector<double>> BlockRunner::score(std::span<const Variant> variants, const EvaluationSet& set,
                                               const std::atomic<bool>* stop) {
  std::vector<double> shares;
  if (options_.answers == Answers::kClasses) {
    LIMBER_ASSIGN(const auto correct, count_correct(variants, set, stop));
    for (const int64_t right : correct)
      shares.push_back(static_cast<double>(right) / static_cast<double>(set.count()));
    return shares;
  }
  std::vector<Variant> all = {original_variant(model_)};
  all.insert(all.end(), variants.begin(), variants.end());
  std::vector<Agreement> found(all.size(), Agreement(options_.answers, output_sizes(model_.base)));
  Tensor original;
  LIMBER_TRY(visit_set(all, set, stop, [&](size_t b, size_t variant, const Tensor& output) -> Status {
    if (variant == 0) {
      LIMBER_ASSIGN(original, output.copy());
    }
    found[variant].add(output, original, set.images[b].shape().dim(0));
    return {};
  }));
  for (size_t v = 1; v < found.size(); ++v) shares.push_back(found[v].share());
  return shares;
}

Result<Tensor> BlockRunner::run(const Variant& variant, const Tensor& images) {
  LIMBER_ASSIGN(auto pieces, pieces_of(model_, variant));
  return execute(Source{images, std::move(pieces)});
}

Status BlockRunner::label_by_original(EvaluationSet& set) {
  LIMBER_ASSERT(options_.answers == Answers::kClasses);
  const Variant original{.choices = std::vector<int>(model_.blocks.size(), 0)};
  std::vector<std::vector<int64_t>> labels;
  for (const Tensor& images : set.images) {
    LIMBER_ASSIGN(const Tensor output, run(original, images));
    auto& batch = labels.emplace_back();
    for (size_t i = 0; i < static_cast<size_t>(images.shape().dim(0)); ++i) {
      const auto row = row_of(output, i);
      batch.push_back(std::max_element(row.begin(), row.end()) - row.begin());
    }
  }
  set.labels = std::move(labels);
  return {};
}

}  // namespace limber
