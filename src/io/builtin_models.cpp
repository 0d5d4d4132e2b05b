#include "io/builtin_models.h"

#include <cctype>
#include <cmath>
#include <map>

#include "base/random.h"
#include "ops/op_def.h"

namespace limber {
namespace {

// Writes a network. The shapes are ours, so a type rule that refuses one is a bug.
class Builder {
 public:
  Builder(std::string_view name, uint64_t seed) : random_(seed) {
    graph_.name = name;
    params_ = std::make_shared<Parameters>();
  }

  ValueId image(int64_t side) {
    return graph_.add_input("image", {DType::kF32, Shape{batch(), 3, side, side}});
  }
  Dim batch() const { return Dim(Symbol("N")); }
  const Graph& graph() const { return graph_; }

  ValueId emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {}, std::string name = {}) {
    if (name.empty()) name = next(op_name(op));
    auto value = limber::emit(graph_, op, std::move(inputs), std::move(attrs), name);
    LIMBER_ASSERT(value.ok());
    return *value;
  }

  ValueId parameter(const std::string& name, Shape shape, double mean, double deviation) {
    const TensorType type{DType::kF32, std::move(shape)};
    auto tensor = Tensor::allocate(type);
    LIMBER_ASSERT(tensor.ok());
    for (float& x : tensor->data<float>()) x = static_cast<float>(mean + deviation * random_.normal());
    params_->set(name, *std::move(tensor));
    return graph_.add_parameter(name, type);
  }

  ValueId conv(ValueId x, int64_t out, int64_t kernel, int64_t stride, int64_t groups = 1) {
    const int64_t in = channels_of(x);
    const int64_t pad = kernel / 2;
    const int64_t fan_in = in / groups * kernel * kernel;
    const double deviation = std::sqrt(2.0 / static_cast<double>(fan_in));
    const std::string name = next("conv");
    const ValueId w = parameter(name + ".weight", Shape{out, in / groups, kernel, kernel}, 0, deviation);
    return emit(OpKind::kConv, {x, w},
                {{"strides", ints({stride, stride})},
                 {"pads", ints({pad, pad, pad, pad})},
                 {"dilations", ints({1, 1})},
                 {"groups", groups}},
                name);
  }

  ValueId batch_norm(ValueId x) {
    const int64_t channels = channels_of(x);
    const std::string name = next("norm");
    const ValueId scale = parameter(name + ".scale", Shape{channels}, 1, 0.05);
    const ValueId bias = parameter(name + ".bias", Shape{channels}, 0, 0.05);
    const ValueId mean = parameter(name + ".mean", Shape{channels}, 0, 0.05);
    const ValueId variance = parameter(name + ".var", Shape{channels}, 1, 0.02);
    return emit(OpKind::kBatchNorm, {x, scale, bias, mean, variance}, {{"epsilon", 1e-5}}, name);
  }

  ValueId layer_norm(ValueId x, int64_t width) {
    const std::string name = next("norm");
    const ValueId scale = parameter(name + ".scale", Shape{width}, 1, 0.05);
    const ValueId bias = parameter(name + ".bias", Shape{width}, 0, 0.05);
    return emit(OpKind::kLayerNorm, {x, scale, bias}, {{"axis", int64_t{2}}, {"epsilon", 1e-5}}, name);
  }

  // x[.., in] * w[in, out] + b
  ValueId dense(ValueId x, int64_t in, int64_t out) {
    const std::string name = next("dense");
    const double deviation = std::sqrt(1.0 / static_cast<double>(in));
    const ValueId w = parameter(name + ".weight", Shape{in, out}, 0, deviation);
    const ValueId b = parameter(name + ".bias", Shape{out}, 0, 0.01);
    return emit(OpKind::kAdd, {emit(OpKind::kMatMul, {x, w}, {}, name), b}, {}, name + ".add");
  }

  ValueId pool_and_classify(ValueId x, int64_t classes) {
    const int64_t channels = channels_of(x);
    x = emit(OpKind::kGlobalAveragePool, {x});
    x = emit(OpKind::kReshape, {x}, {{"shape", Shape{batch(), channels}}});
    const double deviation = std::sqrt(1.0 / static_cast<double>(channels));
    const ValueId w = parameter("classifier.weight", Shape{classes, channels}, 0, deviation);
    const ValueId b = parameter("classifier.bias", Shape{classes}, 0, 0.01);
    return emit(OpKind::kGemm, {x, w, b}, {{"trans_b", int64_t{1}}}, "classifier");
  }

  int64_t channels_of(ValueId x) const { return graph_.type(x).shape[1].value(); }

  Model finish(ValueId logits) {
    graph_.add_output(logits, "logits");
    Model model;
    model.graph = std::move(graph_);
    model.params = std::move(params_);
    model.opset = 17;
    model.producer = "limber (built in)";
    return model;
  }

 private:
  static std::vector<int64_t> ints(std::vector<int64_t> values) { return values; }
  // "conv3": the third of its kind.
  std::string next(std::string_view kind) {
    std::string name(kind);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name + std::to_string(++counters_[name]);
  }

  Graph graph_;
  std::shared_ptr<Parameters> params_;
  Random random_;
  std::map<std::string, int> counters_;
};

ValueId conv_norm(Builder& b, ValueId x, int64_t out, int64_t kernel, int64_t stride, int64_t groups = 1) {
  return b.batch_norm(b.conv(x, out, kernel, stride, groups));
}

// --- residual networks for 32-pixel images -------------------------------------------------------------

ValueId residual_block(Builder& b, ValueId x, int64_t out, int64_t stride) {
  ValueId y = b.emit(OpKind::kRelu, {conv_norm(b, x, out, 3, stride)});
  y = conv_norm(b, y, out, 3, 1);
  const bool same = stride == 1 && b.channels_of(x) == out;
  const ValueId shortcut = same ? x : conv_norm(b, x, out, 1, stride);
  return b.emit(OpKind::kRelu, {b.emit(OpKind::kAdd, {y, shortcut})});
}

Model make_resnet(std::string_view name, uint64_t seed, int64_t blocks) {
  Builder b(name, seed);
  ValueId x = b.emit(OpKind::kRelu, {conv_norm(b, b.image(32), 16, 3, 1)});
  for (int64_t stage = 0; stage < 3; ++stage) {
    for (int64_t i = 0; i < blocks; ++i)
      x = residual_block(b, x, int64_t{16} << stage, stage > 0 && i == 0 ? 2 : 1);
  }
  return b.finish(b.pool_and_classify(x, 10));
}

Model make_resnet8() { return make_resnet("resnet8", 8, 1); }
Model make_resnet14() { return make_resnet("resnet14", 14, 2); }

// --- MobileNetV2 ------------------------------------------------------------------------------------------

ValueId relu6(Builder& b, ValueId x) { return b.emit(OpKind::kClip, {x}, {{"min", 0.0}, {"max", 6.0}}); }

ValueId inverted_residual(Builder& b, ValueId x, int64_t out, int64_t stride, int64_t expand) {
  const int64_t in = b.channels_of(x);
  ValueId y = expand == 1 ? x : relu6(b, conv_norm(b, x, in * expand, 1, 1));
  y = relu6(b, conv_norm(b, y, in * expand, 3, stride, in * expand));
  y = conv_norm(b, y, out, 1, 1);
  return stride == 1 && in == out ? b.emit(OpKind::kAdd, {y, x}) : y;
}

Model make_mobilenet() {
  struct Stage {
    int64_t expand, channels, blocks, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Builder b("mobilenet", 2);
  ValueId x = relu6(b, conv_norm(b, b.image(224), 32, 3, 2));
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      x = inverted_residual(b, x, stage.channels, i == 0 ? stage.stride : 1, stage.expand);
    }
  }
  x = relu6(b, conv_norm(b, x, 1280, 1, 1));
  return b.finish(b.pool_and_classify(x, 1000));
}

// --- a small vision transformer -------------------------------------------------------------------------

struct VitSize {
  int64_t tokens, width, heads;
};

// [N, tokens, width] -> [N, heads, tokens, width / heads]
ValueId split_heads(Builder& b, ValueId x, const VitSize& size) {
  x = b.emit(OpKind::kReshape, {x},
             {{"shape", Shape{b.batch(), size.tokens, size.heads, size.width / size.heads}}});
  return b.emit(OpKind::kTranspose, {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
}

ValueId attention(Builder& b, ValueId x, const VitSize& size) {
  const ValueId q = split_heads(b, b.dense(x, size.width, size.width), size);
  const ValueId k = split_heads(b, b.dense(x, size.width, size.width), size);
  const ValueId v = split_heads(b, b.dense(x, size.width, size.width), size);
  const int64_t head_width = size.width / size.heads;
  const double scale = 1 / std::sqrt(static_cast<double>(head_width));
  ValueId scores = b.emit(OpKind::kMatMul, {q, k}, {{"trans_b", int64_t{1}}, {"alpha", scale}});
  scores = b.emit(OpKind::kSoftmax, {scores}, {{"axis", int64_t{3}}});
  ValueId y = b.emit(OpKind::kMatMul, {scores, v});
  y = b.emit(OpKind::kTranspose, {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  y = b.emit(OpKind::kReshape, {y}, {{"shape", Shape{b.batch(), size.tokens, size.width}}});
  return b.dense(y, size.width, size.width);
}

ValueId feed_forward(Builder& b, ValueId x, const VitSize& size) {
  const ValueId hidden = b.emit(OpKind::kGelu, {b.dense(x, size.width, 4 * size.width)});
  return b.dense(hidden, 4 * size.width, size.width);
}

Model make_vit() {
  constexpr int64_t kSide = 96, kPatch = 12, kBlocks = 4;
  constexpr VitSize kSize{(kSide / kPatch) * (kSide / kPatch), 128, 4};
  Builder b("vit", 3);
  const double deviation = std::sqrt(1.0 / (3.0 * kPatch * kPatch));
  const ValueId w = b.parameter("patches.weight", Shape{kSize.width, 3, kPatch, kPatch}, 0, deviation);
  ValueId x = b.emit(OpKind::kConv, {b.image(kSide), w},
                     {{"strides", std::vector<int64_t>{kPatch, kPatch}},
                      {"pads", std::vector<int64_t>{0, 0, 0, 0}},
                      {"dilations", std::vector<int64_t>{1, 1}}});
  x = b.emit(OpKind::kReshape, {x}, {{"shape", Shape{b.batch(), kSize.width, kSize.tokens}}});
  x = b.emit(OpKind::kTranspose, {x}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  x = b.emit(OpKind::kAdd, {x, b.parameter("positions", Shape{1, kSize.tokens, kSize.width}, 0, 0.02)});
  for (int64_t i = 0; i < kBlocks; ++i) {
    x = b.emit(OpKind::kAdd, {x, attention(b, b.layer_norm(x, kSize.width), kSize)});
    x = b.emit(OpKind::kAdd, {x, feed_forward(b, b.layer_norm(x, kSize.width), kSize)});
  }
  x = b.layer_norm(x, kSize.width);
  x = b.emit(OpKind::kReduceMean, {x}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
  return b.finish(b.dense(x, kSize.width, 10));
}

}  // namespace

const std::vector<BuiltinModel>& builtin_list() {
  static const std::vector<BuiltinModel> list{
      {"resnet8", "residual network, 32x32, 10 classes", make_resnet8},
      {"resnet14", "the same with two blocks for one", make_resnet14},
      {"mobilenet", "MobileNetV2, 224x224, 1000 classes", make_mobilenet},
      {"vit", "vision transformer, 96x96, 10 classes", make_vit},
  };
  return list;
}

Result<Model> make_builtin(std::string_view name) {
  std::string known;
  for (const BuiltinModel& model : builtin_list()) {
    if (model.name == name) return model.make();
    known += fmt::format("{}builtin:{}", known.empty() ? "" : ", ", model.name);
  }
  return error(Code::kNotFound, "no model 'builtin:{}'; there are {}", name, known);
}

}  // namespace limber
