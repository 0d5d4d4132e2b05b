#include "ops/slice.h"

#include <algorithm>

#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber {
namespace {

using namespace rules;

// A position given by the user as a distance from the begin or the end of a symbolic axis.
// nullopt: whether it lies inside depends on the symbol.
std::optional<Dim> symbolic_position(const Dim& size, int64_t position) {
  const int64_t smallest = size.scale() + size.offset();  // symbols are at least 1
  if (position >= kMaxElements) return size;
  if (position <= -kMaxElements) return Dim(0);
  if (position < 0) return -position <= smallest ? add(size, Dim(position)) : std::nullopt;
  return position <= smallest ? std::optional<Dim>(Dim(position)) : std::nullopt;
}

// The length of start:end:step; only steps forward are needed for symbolic axes, except full reversal.
std::optional<Dim> symbolic_count(const Dim& size, int64_t start, int64_t end, int64_t step) {
  if (step == -1 && (start == -1 || start >= kMaxElements) && end <= -kMaxElements) return size;
  if (step < 1) return std::nullopt;
  const auto from = symbolic_position(size, start), to = symbolic_position(size, end);
  const auto span = from && to ? sub(*to, *from) : std::nullopt;
  if (!span || span->scale() % step != 0) return std::nullopt;
  const int64_t offset = ceil_div(span->offset(), step);
  if (span->is_constant()) return Dim(std::max<int64_t>(offset, 0));
  if (span->scale() < 0 || span->scale() / step + offset < 0) return std::nullopt;  // may be empty
  return Dim(span->symbol(), span->scale() / step, offset);
}

Status check_slice_attrs(const InferArgs& args) {
  const int rank = args.input(0).rank();
  const auto& axes = args.attrs.ints("axes");
  const int count = static_cast<int>(std::min<size_t>(axes.size(), kMaxRank + 1));
  LIMBER_TRY(check_ints(args, "axes", std::min(count, rank), 0, rank - 1));
  for (const char* name : {"starts", "ends", "steps"})
    LIMBER_TRY(check_ints(args, name, count, INT64_MIN, INT64_MAX));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (std::count(axes.begin(), axes.end(), axes[i]) > 1)
      return invalid("attribute 'axes' holds {} twice", axes[i]);
    if (args.attrs.ints("steps")[i] == 0) return invalid("attribute 'steps' holds 0 for axis {}", axes[i]);
  }
  return {};
}

Result<Types> infer_slice(const InferArgs& args) {
  LIMBER_TRY(check_slice_attrs(args));
  TensorType y = args.input(0);
  const auto &axes = args.attrs.ints("axes"), &starts = args.attrs.ints("starts"),
             &ends = args.attrs.ints("ends"), &steps = args.attrs.ints("steps");
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& size = y.shape[static_cast<int>(axes[i])];
    if (size.is_constant()) {
      size = slice_range(size.value(), starts[i], ends[i], steps[i]).count;
      continue;
    }
    LIMBER_ASSIGN(size, expressible(symbolic_count(size, starts[i], ends[i], steps[i]),
                                    fmt::format("the slice {}:{}:{} of symbolic axis {} ({})", starts[i],
                                                ends[i], steps[i], axes[i], size.to_string())));
  }
  return Types{std::move(y)};
}

constexpr AttrSpec kSliceAttrs[] = {required("axes", AttrKind::kInts), required("starts", AttrKind::kInts),
                                    required("ends", AttrKind::kInts), required("steps", AttrKind::kInts)};

}  // namespace

SliceRange slice_range(int64_t size, int64_t start, int64_t end, int64_t step) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto place = [&](int64_t position) {
    return std::clamp(position < 0 ? position + size : position, low, high);
  };
  const int64_t first = place(start), last = place(end);
  int64_t count = 0;
  if (step > 0 && last > first) count = (last - first - 1) / step + 1;
  if (step < 0 && first > last) count = (last - first + 1) / step + 1;
  return {count == 0 ? 0 : first, step, count};
}

constinit const OpDef kSliceOp =
    gradients::with({OpKind::kSlice, 1, 1, 1, 1, kSliceAttrs, infer_slice, no_flops}, gradients::slice);

}  // namespace limber
