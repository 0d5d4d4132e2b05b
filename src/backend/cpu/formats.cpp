#include "backend/cpu/formats.h"

#include <algorithm>

#include "backend/cpu/simd/own_kernels.h"

namespace limber {
namespace {

using onednn::Format;

Layout layout(Format format) { return Layout{static_cast<uint32_t>(format)}; }
int64_t block_of(Format format) {
  return format == Format::kBlocked16 ? 16 : format == Format::kBlocked8 ? 8 : 1;
}

class SharedKernel : public Kernel {
 public:
  explicit SharedKernel(std::shared_ptr<const Kernel> kernel) : kernel_(std::move(kernel)) {}
  size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  Result<std::unique_ptr<BoundKernel>> bind(KernelIo io) const override {
    return kernel_->bind(std::move(io));
  }

 private:
  std::shared_ptr<const Kernel> kernel_;
};

bool is_image(const TensorType& type) {
  return type.dtype == DType::kF32 && type.rank() >= 3 && type.rank() <= 5 && type.shape.elements() > 0;
}

// With one pixel per channel and whole blocks, every format is the same bytes as plain.
bool same_as_plain(const TensorType& type, Format format) {
  if (type.rank() < 3 || type.shape.dim(1) % block_of(format) != 0) return false;
  for (int i = 2; i < type.rank(); ++i) {
    if (type.shape.dim(i) != 1) return false;
  }
  return true;
}

// Elements in memory, padding to whole channel blocks included.
int64_t padded_elements(const TensorType& type, Format format) {
  const int64_t block = block_of(format), channels = type.shape.dim(1);
  return type.shape.elements() / std::max<int64_t>(channels, 1) * ((channels + block - 1) / block * block);
}

// Padding must stay zero: these keep it so.
bool keeps_zero(OpKind op) {
  switch (op) {
    case OpKind::kRelu:
    case OpKind::kLeakyRelu:
    case OpKind::kSilu:
    case OpKind::kHardSwish:
    case OpKind::kMish:
    case OpKind::kGelu:
    case OpKind::kElu:
    case OpKind::kCelu:
    case OpKind::kSelu:
    case OpKind::kTanh:
    case OpKind::kErf:
    case OpKind::kAbs:
    case OpKind::kNeg:
    case OpKind::kSqrt:
    case OpKind::kSoftsign:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kMin:
    case OpKind::kMax:
    case OpKind::kActivationBackward:  // dy is zero there
      return true;
    default:
      return false;
  }
}

// A graph of one node: `node` on inputs of other types.
struct OneNode {
  Graph graph;
  NodeId id;
};

std::optional<OneNode> one_node(OpKind op, const std::vector<TensorType>& inputs, Attrs attrs,
                                int num_outputs) {
  OneNode one;
  std::vector<ValueId> values;
  for (const TensorType& type : inputs) values.push_back(one.graph.add_input("x", type));
  auto id = emit_node(one.graph, op, std::move(values), std::move(attrs), num_outputs);
  if (!id.ok() || !own_supports(one.graph, one.graph.node(*id))) return std::nullopt;
  one.id = *id;
  return one;
}

// A graph of nothing but this node.
OneNode alone(const Graph& g, const Node& node) {
  OneNode one;
  std::vector<ValueId> inputs;
  std::vector<TensorType> types;
  for (ValueId v : node.inputs)
    inputs.push_back(v == kNoValue ? kNoValue : one.graph.add_input("x", g.type(v)));
  for (ValueId v : node.outputs) types.push_back(v == kNoValue ? TensorType{} : g.type(v));
  one.id = one.graph.add_node(node.op, std::move(inputs), node.attrs, std::move(types));
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (node.outputs[k] == kNoValue) one.graph.mutable_node(one.id).outputs[k] = kNoValue;
  }
  return one;
}

std::optional<FormatWay> own_way(std::optional<OneNode> one, std::vector<Layout> inputs,
                                 std::vector<Layout> outputs) {
  if (!one) return std::nullopt;
  FormatWay way;
  way.inputs = std::move(inputs);
  way.outputs = std::move(outputs);
  way.impl = "simd";
  way.make = [one = std::make_shared<OneNode>(std::move(*one))] {
    return own_kernel(one->graph, one->graph.node(one->id));
  };
  return way;
}

// Element by element over the memory as it lies: any format will do.
std::optional<FormatWay> flat(const Graph& g, const Node& node, Format format) {
  if (!is_image(g.type(node.inputs[0]))) return std::nullopt;
  std::vector<TensorType> inputs;
  for (ValueId v : node.inputs) {
    if (v == kNoValue || g.type(v) != g.type(node.inputs[0])) return std::nullopt;
    inputs.push_back({DType::kF32, Shape{Dim(padded_elements(g.type(v), format))}});
  }
  if (g.type(node.outputs[0]).dtype != DType::kF32) return std::nullopt;
  const TensorType& type = g.type(node.inputs[0]);
  if (padded_elements(type, format) != type.shape.elements() && !keeps_zero(node.op)) return std::nullopt;
  const Layout l = layout(format);
  auto way = own_way(one_node(node.op, inputs, node.attrs, 1), std::vector<Layout>(inputs.size(), l), {l});
  if (way) way->may_alias = 0;
  return way;
}

// Axis of an N,C,spatial.. tensor in its channels-last form.
int64_t last_axis(int64_t axis, int rank) { return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1; }

template <typename T>
std::vector<T> to_last(const std::vector<T>& per_axis) {
  std::vector<T> out(per_axis.size());
  for (size_t i = 0; i < per_axis.size(); ++i) {
    out[static_cast<size_t>(last_axis(static_cast<int64_t>(i), static_cast<int>(per_axis.size())))] =
        per_axis[i];
  }
  return out;
}

TensorType channels_last(const TensorType& type) {
  return {type.dtype, Shape::of(to_last(type.shape.dims()))};
}

// Broadcasting in channels-last: an operand of lower rank gets its ones first.
std::optional<FormatWay> broadcast_last(const Graph& g, const Node& node) {
  const int rank = g.type(node.outputs[0]).rank();
  std::vector<TensorType> inputs;
  std::vector<Layout> layouts;
  for (ValueId v : node.inputs) {
    if (v == kNoValue) return std::nullopt;
    TensorType type = g.type(v);
    std::vector<int64_t> dims = type.shape.dims();
    dims.insert(dims.begin(), static_cast<size_t>(rank) - dims.size(), 1);
    const auto wide = std::count_if(dims.begin() + 1, dims.end(), [](int64_t d) { return d != 1; });
    // One axis besides the batch: the bytes are the same in every order.
    if (type.rank() != rank && wide > 1) return std::nullopt;
    layouts.push_back(wide > 1 ? layout(Format::kChannelsLast) : kPlain);
    inputs.push_back(channels_last({type.dtype, Shape::of(dims)}));
  }
  if (std::all_of(layouts.begin(), layouts.end(), [](Layout l) { return l == kPlain; })) return std::nullopt;
  auto way = own_way(one_node(node.op, inputs, node.attrs, 1), layouts, {layout(Format::kChannelsLast)});
  if (way && g.type(node.inputs[0]).shape == g.type(node.outputs[0]).shape &&
      g.type(node.inputs[0]).dtype == g.type(node.outputs[0]).dtype) {
    way->may_alias = 0;
  }
  return way;
}

// a op b with b one number per channel, in blocked formats.
std::optional<FormatWay> broadcast_blocked(const Graph& g, const Node& node, Format format,
                                           onednn::Library& library) {
  if (node.op != OpKind::kAdd && node.op != OpKind::kMul && node.op != OpKind::kSub) return std::nullopt;
  const TensorType &a = g.type(node.inputs[0]), &b = g.type(node.inputs[1]);
  if (a.shape != g.type(node.outputs[0]).shape || b.rank() > a.rank() || a.dtype != DType::kF32)
    return std::nullopt;
  onednn::Binary spec{a.shape.dims(), b.shape.dims(), node.op, format};
  spec.b.insert(spec.b.begin(), spec.a.size() - spec.b.size(), 1);
  const TensorType full{b.dtype, Shape::of(spec.b)};
  const bool padded = spec.a[1] % block_of(format) != 0;
  if (padded || spec.b[1] != spec.a[1] || !same_as_plain(full, format)) return std::nullopt;
  if (spec.b[0] != 1 && spec.b[0] != spec.a[0]) return std::nullopt;
  auto compiled = library.create(spec);
  if (!compiled.ok()) return std::nullopt;
  FormatWay way;
  way.inputs = {layout(format), kPlain};
  way.outputs = {layout(format)};
  way.impl = compiled->impl;
  way.may_alias = 0;
  way.make = [kernel = compiled->kernel]() -> Result<std::unique_ptr<Kernel>> {
    return shared_kernel(kernel);
  };
  return way;
}

std::optional<onednn::Pooling> describe_pooling(const Graph& g, const Node& node) {
  onednn::Pooling p;
  if (!is_image(g.type(node.inputs[0])) || node.outputs.size() > 1) return std::nullopt;
  p.src = g.type(node.inputs[0]).shape.dims();
  const size_t spatial = p.src.size() - 2;
  const std::vector<int64_t> ones(spatial, 1), zeros(spatial, 0);
  p.maximum = node.op == OpKind::kMaxPool || node.op == OpKind::kGlobalMaxPool;
  if (node.op == OpKind::kMaxPool || node.op == OpKind::kAveragePool) {
    p.dst = g.type(node.outputs[0]).shape.dims();
    p.kernel = node.attrs.ints("kernel");
    p.strides = node.attrs.ints("strides");
    p.dilations = node.attrs.has("dilations") ? node.attrs.ints("dilations") : ones;
    const auto& pads = node.attrs.ints("pads");
    p.pad_begin.assign(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(spatial));
    p.pad_end.assign(pads.begin() + static_cast<ptrdiff_t>(spatial), pads.end());
    p.include_padding = node.attrs.i("count_include_pad", 0) != 0;
    for (size_t i = 0; i < spatial; ++i) {
      const int64_t reach = (p.dst[i + 2] - 1) * p.strides[i] + (p.kernel[i] - 1) * p.dilations[i] + 1;
      const int64_t needed = reach - p.src[i + 2] - p.pad_begin[i];
      if (needed > p.pad_end[i] && p.include_padding) return std::nullopt;  // ceil mode: not counted by ONNX
      p.pad_end[i] = std::max(p.pad_end[i], needed);
      if (p.pad_end[i] >= p.kernel[i] * p.dilations[i] || p.pad_begin[i] >= p.kernel[i]) return std::nullopt;
    }
    return p;
  }
  const bool global = node.op == OpKind::kGlobalAveragePool || node.op == OpKind::kGlobalMaxPool;
  bool mean = node.op == OpKind::kReduceMean && node.attrs.i("keepdims", 1) != 0;
  if (mean) {
    const auto& axes = node.attrs.ints("axes");
    mean = axes.size() == spatial && axes.front() == 2;
  }
  if (!global && !mean) return std::nullopt;
  p.dst = p.src;
  std::fill(p.dst.begin() + 2, p.dst.end(), 1);
  p.kernel.assign(p.src.begin() + 2, p.src.end());
  p.strides = p.dilations = ones;
  p.pad_begin = p.pad_end = zeros;
  return p;
}

std::optional<FormatWay> pooling(const Graph& g, const Node& node, Format format, onednn::Library& library) {
  auto spec = describe_pooling(g, node);
  if (!spec) return std::nullopt;
  spec->format = format;
  auto compiled = library.create(*spec);
  if (!compiled.ok()) return std::nullopt;
  FormatWay way;
  way.inputs = {layout(format)};
  way.outputs = {same_as_plain(g.type(node.outputs[0]), format) ? kPlain : layout(format)};
  way.impl = compiled->impl;
  way.make = [kernel = compiled->kernel]() -> Result<std::unique_ptr<Kernel>> {
    return shared_kernel(kernel);
  };
  return way;
}

std::optional<FormatWay> concat(const Graph& g, const Node& node, Format format, onednn::Library& library) {
  onednn::Concat spec;
  spec.axis = static_cast<int>(node.attrs.i("axis"));
  spec.format = format;
  for (ValueId v : node.inputs) {
    if (!is_image(g.type(v))) return std::nullopt;
    if (spec.axis == 1 && g.type(v).shape.dim(1) % block_of(format) != 0) return std::nullopt;
    spec.srcs.push_back(g.type(v).shape.dims());
  }
  auto compiled = library.create(spec);
  if (!compiled.ok()) return std::nullopt;
  FormatWay way;
  way.inputs.assign(node.inputs.size(), layout(format));
  way.outputs = {layout(format)};
  way.impl = compiled->impl;
  way.make = [kernel = compiled->kernel]() -> Result<std::unique_ptr<Kernel>> {
    return shared_kernel(kernel);
  };
  return way;
}

// Moving data in channels-last is the same operator on the permuted tensor.
std::optional<FormatWay> move_last(const Graph& g, const Node& node) {
  std::vector<TensorType> inputs;
  const int rank = g.type(node.inputs[0]).rank();
  for (ValueId v : node.inputs) inputs.push_back(channels_last(g.type(v)));
  Attrs attrs = node.attrs;
  if (node.op == OpKind::kSlice) {
    std::vector<int64_t> axes = attrs.ints("axes");
    for (int64_t& axis : axes) axis = last_axis(axis, rank);
    attrs.set("axes", axes);
  } else if (node.op == OpKind::kPad) {
    const auto& pads = attrs.ints("pads");
    const auto middle = pads.begin() + rank;
    std::vector<int64_t> begin = to_last(std::vector<int64_t>(pads.begin(), middle));
    const std::vector<int64_t> end = to_last(std::vector<int64_t>(middle, pads.end()));
    begin.insert(begin.end(), end.begin(), end.end());
    attrs.set("pads", begin);
  } else {
    attrs.set("axis", last_axis(attrs.i("axis"), rank));
  }
  const Layout last = layout(Format::kChannelsLast);
  const size_t outputs = node.outputs.size();
  return own_way(one_node(node.op, inputs, std::move(attrs), static_cast<int>(outputs)),
                 std::vector<Layout>(inputs.size(), last), std::vector<Layout>(outputs, last));
}

ChannelOrder channel_order(Format format) {
  switch (format) {
    case Format::kChannelsLast:
      return ChannelOrder::kLast;
    case Format::kBlocked8:
      return ChannelOrder::kBlocked8;
    case Format::kBlocked16:
      return ChannelOrder::kBlocked16;
    default:
      return ChannelOrder::kPlanes;
  }
}

// Own kernels that take images in any order of channels; the rest of what they read and write is plain.
std::optional<FormatWay> by_channels(const Graph& g, const Node& node, Format format) {
  const ChannelOrder order = channel_order(format);
  if (own_channel_kernel(g, node, order) == nullptr) return std::nullopt;
  const auto layouts = [&](const std::vector<ValueId>& values) {
    std::vector<Layout> out;
    for (ValueId v : values) out.push_back(v != kNoValue && is_image(g.type(v)) ? layout(format) : kPlain);
    return out;
  };
  FormatWay way;
  way.inputs = layouts(node.inputs);
  way.outputs = layouts(node.outputs);
  way.impl = "simd";
  way.may_alias = own_may_alias(g, node);
  way.make = [one = std::make_shared<OneNode>(alone(g, node)), order]() -> Result<std::unique_ptr<Kernel>> {
    return own_channel_kernel(one->graph, one->graph.node(one->id), order);
  };
  return way;
}

// Channels-last memory is the plain memory of the permuted tensor.
std::optional<FormatWay> permuted_view(const Graph& g, const Node& node) {
  const auto& perm = node.attrs.ints("perm");
  const int rank = static_cast<int>(perm.size());
  std::vector<int64_t> to(perm.size()), from(perm.size());
  for (int i = 0; i < rank; ++i) {
    to[static_cast<size_t>(last_axis(i, rank))] = i;
    from[static_cast<size_t>(i)] = last_axis(i, rank);
  }
  if (!is_image(g.type(node.inputs[0])) || (perm != to && perm != from)) return std::nullopt;
  FormatWay way;
  way.view = true;
  way.impl = "view";
  way.inputs = {perm == to ? layout(Format::kChannelsLast) : kPlain};
  way.outputs = {perm == to ? kPlain : layout(Format::kChannelsLast)};
  return way;
}

}  // namespace

std::unique_ptr<Kernel> shared_kernel(std::shared_ptr<const Kernel> kernel) {
  return std::make_unique<SharedKernel>(std::move(kernel));
}

std::optional<FormatWay> plain_pooling(const Graph& g, const Node& node, onednn::Library& library) {
  return pooling(g, node, Format::kPlain, library);
}

std::vector<FormatWay> format_ways(const Graph& g, const Node& node, Format format,
                                   onednn::Library& library) {
  std::vector<FormatWay> ways;
  const auto add = [&](std::optional<FormatWay> way) {
    if (way) ways.push_back(std::move(*way));
  };
  if (node.inputs.empty() || node.inputs[0] == kNoValue || node.outputs.empty() ||
      node.outputs[0] == kNoValue)
    return ways;
  if (!is_image(g.type(node.outputs[0]))) return ways;
  const bool last = format == Format::kChannelsLast;
  switch (node.op) {
    case OpKind::kActivationBackward:
      add(flat(g, node, format));
      break;
    case OpKind::kBatchNormTraining:
    case OpKind::kBatchNormBackward:
    case OpKind::kBatchNormApply:
    case OpKind::kMaxPoolBackward:
    case OpKind::kAveragePoolBackward:
    case OpKind::kGather:
      add(by_channels(g, node, format));
      break;
    case OpKind::kConcat:
      add(concat(g, node, format, library));
      break;
    case OpKind::kSlice:
    case OpKind::kPad:
    case OpKind::kSplit:
      if (last && is_image(g.type(node.inputs[0]))) add(move_last(g, node));
      break;
    case OpKind::kTranspose:
      if (last) add(permuted_view(g, node));
      break;
    default:
      if (is_unary(node.op)) {
        add(flat(g, node, format));
      } else if (is_binary(node.op)) {
        if (auto way = flat(g, node, format)) {
          add(std::move(way));
        } else {
          add(last ? broadcast_last(g, node) : broadcast_blocked(g, node, format, library));
        }
      } else {
        add(pooling(g, node, format, library));
      }
  }
  return ways;
}

}  // namespace limber
