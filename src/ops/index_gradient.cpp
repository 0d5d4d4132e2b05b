#include "ops/gradients.h"

namespace limber::gradients {
namespace {

const std::string kAdd = "add";

// Only what replaces or adds: the others would need to know which update won.
bool check_reduction(GradientContext& g, const std::string& reduction) {
  if (reduction == "none" || reduction == kAdd) return true;
  g.fail(unsupported("reduction '{}' has no gradient rule; 'none' and 'add' have", reduction));
  return false;
}

// [batches, per_batch, 1]: the number of each tuple's batch, in the dtype of the indices.
ValueId batch_numbers(GradientContext& g, int64_t batches, int64_t per_batch, DType dtype) {
  Ints numbers;
  for (int64_t b = 0; b < batches; ++b) numbers.insert(numbers.end(), static_cast<size_t>(per_batch), b);
  const ValueId constant = g.constant(Tensor::from<int64_t>(numbers, Shape{batches, per_batch, 1}));
  if (dtype == DType::kI64) return constant;
  return g.emit(OpKind::kCast, {constant}, {{"to", std::string(dtype_name(dtype))}});
}

Shape tail_of(const Shape& shape, int first, std::vector<Dim> head) {
  head.insert(head.end(), shape.begin() + first, shape.end());
  return Shape(std::move(head));
}

// All batch axes as one, whose index becomes the first of every tuple.
ValueId batched_scatter(GradientContext& g, int batch_dims) {
  const TensorType x = g.type(g.x(0)), indices = g.type(g.x(1));
  int64_t batches = 1;
  for (int i = 0; i < batch_dims; ++i) batches *= x.shape.dim(i);
  const int last = indices.rank() - 1;
  int64_t per_batch = 1;
  for (int i = batch_dims; i < last; ++i) per_batch *= indices.shape.dim(i);
  const int64_t tuple = indices.shape.dim(last);
  const ValueId numbers = batch_numbers(g, batches, per_batch, indices.dtype);
  const ValueId tuples =
      g.emit(OpKind::kConcat, {numbers, g.reshape(g.x(1), Shape{batches, per_batch, tuple})},
             {{"axis", int64_t{2}}});
  const int first_kept = batch_dims + static_cast<int>(tuple);
  const ValueId dy = g.reshape(g.dy(), tail_of(x.shape, first_kept, {Dim(batches), Dim(per_batch)}));
  const ValueId zeros = g.zeros({x.dtype, tail_of(x.shape, batch_dims, {Dim(batches)})});
  return g.reshape(g.emit(OpKind::kScatterND, {zeros, tuples, dy}, {{"reduction", kAdd}}), x.shape);
}

}  // namespace

void gather(GradientContext& g) {
  g.give(0, g.emit(OpKind::kGatherBackward, {g.dy(), g.x(1)},
                   {{"shape", g.shape(g.x(0))}, {"axis", g.attrs().i("axis")}}));
}

void gather_elements(GradientContext& g) {
  g.give(0, g.emit(OpKind::kScatterElements, {g.zeros(g.type(g.x(0))), g.x(1), g.dy()},
                   {{"axis", g.attrs().i("axis")}, {"reduction", kAdd}}));
}

void gather_nd(GradientContext& g) {
  const auto batch_dims = static_cast<int>(g.attrs().i("batch_dims", 0));
  if (batch_dims > 0) return g.give(0, batched_scatter(g, batch_dims));
  g.give(0, g.emit(OpKind::kScatterND, {g.zeros(g.type(g.x(0))), g.x(1), g.dy()}, {{"reduction", kAdd}}));
}

void scatter_elements(GradientContext& g) {
  const std::string reduction = g.attrs().s("reduction", "none");
  if (!check_reduction(g, reduction)) return;
  const Attrs axis{{"axis", g.attrs().i("axis")}};
  if (g.wants(0)) {
    g.give(0, reduction == kAdd
                  ? g.dy()
                  : g.emit(OpKind::kScatterElements, {g.dy(), g.x(1), g.zeros(g.type(g.x(2)))}, axis));
  }
  if (g.wants(2)) g.give(2, g.emit(OpKind::kGatherElements, {g.dy(), g.x(1)}, axis));
}

void scatter_nd(GradientContext& g) {
  const std::string reduction = g.attrs().s("reduction", "none");
  if (!check_reduction(g, reduction)) return;
  if (g.wants(0)) {
    g.give(0, reduction == kAdd ? g.dy()
                                : g.emit(OpKind::kScatterND, {g.dy(), g.x(1), g.zeros(g.type(g.x(2)))}));
  }
  if (g.wants(2)) g.give(2, g.emit(OpKind::kGatherND, {g.dy(), g.x(1)}));
}

// Of the two values: each has the sum of dy where it stands.
void one_hot(GradientContext& g) {
  const DType dtype = g.type(g.dy()).dtype;
  const ValueId off_on =
      g.emit(OpKind::kCast, {index_constant(g, {0, 1})}, {{"to", std::string(dtype_name(dtype))}});
  const ValueId hot = g.emit(OpKind::kOneHot, {g.x(0), off_on}, g.attrs());
  const ValueId on = g.mul(g.dy(), hot), off = g.sub(g.dy(), on);
  const Ints all = axes_except(g.shape(on).rank(), -1);
  g.give(1, g.emit(OpKind::kConcat,
                   {g.reshape(g.sum(off, all, false), Shape{1}), g.reshape(g.sum(on, all, false), Shape{1})},
                   {{"axis", int64_t{0}}}));
}

}  // namespace limber::gradients
