#include "ops/window.h"

namespace limber::rules {

Status check_window_attrs(const InferArgs& args, int spatial_rank) {
  LIMBER_TRY(check_ints(args, "strides", spatial_rank, 1, kMaxExtent));
  LIMBER_TRY(check_ints(args, "pads", 2 * spatial_rank, 0, kMaxExtent));
  return args.attrs.has("dilations") ? check_ints(args, "dilations", spatial_rank, 1, kMaxExtent) : Status();
}

Window window_at(const InferArgs& args, int spatial_rank, int i, int64_t kernel) {
  const auto at = [&](std::string_view name, int index) {
    return args.attrs.ints(name)[static_cast<size_t>(index)];
  };
  return {.kernel = kernel,
          .stride = at("strides", i),
          .dilation = args.attrs.has("dilations") ? at("dilations", i) : 1,
          .pad_begin = at("pads", i),
          .pad_end = at("pads", spatial_rank + i)};
}

Result<Dim> window_count(const Dim& size, const Window& window, int spatial_axis) {
  const auto room = add(size, Dim(window.pad_begin + window.pad_end - window.extent()));
  LIMBER_ASSERT(room.has_value());  // all bounded, see check_window_attrs
  if (room->is_constant() && room->value() < 0) {
    return invalid(
        "spatial axis {} has size {} and pads {}+{}, too small for a window of {} (kernel {}, dilation {})",
        spatial_axis, size.to_string(), window.pad_begin, window.pad_end, window.extent(), window.kernel,
        window.dilation);
  }
  if (room->scale() % window.stride != 0) {
    return unsupported(
        "spatial axis {} has symbolic size {}, which stride {} does not divide; give '{}' a number (bind)",
        spatial_axis, size.to_string(), window.stride, size.symbol().name());
  }
  int64_t last =
      window.ceil_mode ? ceil_div(room->offset(), window.stride) : floor_div(room->offset(), window.stride);
  // The symbolic parts of where the last window starts and where the padded input ends are equal.
  if (window.ceil_mode && last * window.stride >= size.offset() + window.pad_begin) --last;
  return room->is_constant() ? Dim(last + 1) : Dim(room->symbol(), room->scale() / window.stride, last + 1);
}

Result<TensorType> pooled(const InferArgs& args, const TensorType& x) {
  LIMBER_TRY(need_rank(x, 3, kMaxRank, "x"));
  const int spatial = x.rank() - 2;
  LIMBER_TRY(check_ints(args, "kernel", spatial, 1, kMaxExtent));
  LIMBER_TRY(check_window_attrs(args, spatial));
  LIMBER_ASSIGN(const bool ceil_mode, flag_attr(args, "ceil_mode", false));
  TensorType y{x.dtype, {x.shape[0], x.shape[1]}};
  for (int i = 0; i < spatial; ++i) {
    Window window = window_at(args, spatial, i, args.attrs.ints("kernel")[static_cast<size_t>(i)]);
    window.ceil_mode = ceil_mode;
    if (window.pad_begin >= window.extent() || window.pad_end >= window.extent()) {
      return invalid(
          "spatial axis {} has pads {}+{}, expected less than the window of {} or windows hold only padding",
          i, window.pad_begin, window.pad_end, window.extent());
    }
    LIMBER_ASSIGN(const Dim size, window_count(x.shape[2 + i], window, i));
    y.shape.push_back(size);
  }
  return y;
}

}  // namespace limber::rules
