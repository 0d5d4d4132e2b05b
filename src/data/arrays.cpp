#include <algorithm>
#include <cmath>

#include "data/classes.h"
#include "data/dataset.h"
#include "data/image.h"
#include "tensor/convert.h"
#include "tensor/npy.h"

namespace limber {
namespace {

struct Layout {
  int64_t count, height, width, channels;
  bool planar;  // [N,C,H,W]
  int64_t pixels() const { return height * width * channels; }
};

class Arrays : public Dataset {
 public:
  Arrays(std::string name, ClassNames classes, const Layout& layout, Tensor images,
         std::vector<int32_t> labels)
      : Dataset(std::move(classes)),
        name_(std::move(name)),
        layout_(layout),
        images_(std::move(images)),
        labels_(std::move(labels)) {}

  size_t size() const override { return labels_.size(); }
  int64_t label(size_t index) const override { return labels_[index]; }
  std::string name(size_t index) const override { return fmt::format("{}[{}]", name_, index); }
  Result<Sample> get(size_t index) const override {
    const auto offset = index * static_cast<size_t>(layout_.pixels());
    const TensorType type{DType::kU8, Shape{layout_.height, layout_.width, layout_.channels}};
    const uint8_t* from = static_cast<const uint8_t*>(images_.raw()) + offset;
    if (layout_.planar && layout_.channels > 1) return interleave(from, type, label(index));
    const auto bytes = static_cast<size_t>(layout_.pixels());
    return Sample{Tensor(type, Buffer::borrow(from, bytes, images_.buffer())), label(index)};
  }

 private:
  static Result<Sample> interleave(const uint8_t* planes, const TensorType& type, int64_t label) {
    LIMBER_ASSIGN(Tensor image, Tensor::allocate(type));
    const int64_t channels = type.shape.dim(2);
    const int64_t plane = image.elements() / channels;
    uint8_t* out = image.data<uint8_t>().data();
    for (int64_t i = 0; i < plane; ++i) {
      for (int64_t c = 0; c < channels; ++c) *out++ = planes[c * plane + i];
    }
    return Sample{std::move(image), label};
  }

  std::string name_;
  Layout layout_;
  Tensor images_;
  std::vector<int32_t> labels_;
};

bool is_channels(int64_t n) { return n == 1 || n == 3; }

Result<Layout> layout_of(const Tensor& images) {
  const std::vector<int64_t> d = images.shape().dims();
  Layout layout{};
  if (d.size() == 3) {
    layout = {d[0], d[1], d[2], 1, false};
  } else if (d.size() == 4 && is_channels(d[3])) {
    layout = {d[0], d[1], d[2], d[3], false};
  } else if (d.size() == 4 && is_channels(d[1])) {
    layout = {d[0], d[2], d[3], d[1], true};
  } else {
    return invalid("images of shape [{}]; expected [N,H,W], [N,H,W,C] or [N,C,H,W] with 1 or 3 channels",
                   images.shape().to_string());
  }
  const auto bad_side = [](int64_t side) { return side < 1 || side > kMaxImageSide; };
  if (layout.count < 1 || layout.count > kMaxSamples || bad_side(layout.height) || bad_side(layout.width)) {
    return invalid("images of shape [{}]; expected at least one image, of sides in 1..{}",
                   images.shape().to_string(), kMaxImageSide);
  }
  return layout;
}

Result<Tensor> bytes_from_floats(const Tensor& images) {
  const auto values = images.data<float>();
  float highest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] >= 0 && values[i] <= 255)) {  // also NaN
      return invalid("element {} is {}; images of floats must be in 0..1 or 0..255, before any normalisation",
                     i, values[i]);
    }
    highest = std::max(highest, values[i]);
  }
  const float scale = highest <= 1 ? 255.F : 1.F;
  LIMBER_ASSIGN(Tensor bytes, Tensor::allocate({DType::kU8, images.shape()}));
  std::transform(values.begin(), values.end(), bytes.data<uint8_t>().begin(),
                 [scale](float v) { return static_cast<uint8_t>(std::lround(v * scale)); });
  return bytes;
}

Result<Tensor> bytes_from_integers(const Tensor& images) {
  LIMBER_ASSIGN(Tensor bytes, Tensor::allocate({DType::kU8, images.shape()}));
  for (int64_t i = 0; i < images.elements(); ++i) {
    const int64_t value = element_as_int(images, i);
    if (value < 0 || value > 255) {
      return invalid("element {} is {}; {} images must be in 0..255", i, value, dtype_name(images.dtype()));
    }
    bytes.data<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(value);
  }
  return bytes;
}

Result<Tensor> as_bytes(const Tensor& images) {
  if (images.dtype() == DType::kU8) return images;
  if (is_integer(images.dtype())) return bytes_from_integers(images);
  LIMBER_ASSIGN(const Tensor floats, convert_tensor(images, DType::kF32));
  return bytes_from_floats(floats);
}

Result<std::vector<int32_t>> read_labels(const Tensor& labels, int64_t count) {
  if (!is_integer(labels.dtype())) {
    return invalid("labels of type {}; expected integers", dtype_name(labels.dtype()));
  }
  const Shape& shape = labels.shape();
  if (shape.rank() < 1 || shape.dim(0) != count || labels.elements() != count) {
    return invalid("labels of shape [{}] for {} images; expected [{}]", shape.to_string(), count, count);
  }
  std::vector<int32_t> values;
  values.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = element_as_int(labels, i);
    if (label < 0 || label >= kMaxClasses) {
      return invalid("label {} of image {}; labels must be in 0..{}", label, i, kMaxClasses - 1);
    }
    values.push_back(static_cast<int32_t>(label));
  }
  return values;
}

Result<std::unique_ptr<Dataset>> make(const Tensor& images, const Tensor& labels, const std::string& name,
                                      const ClassNames& expected) {
  LIMBER_ASSIGN(const Layout layout, layout_of(images));
  LIMBER_ASSIGN(std::vector<int32_t> numbers, read_labels(labels, layout.count));
  LIMBER_ASSIGN(ClassNames classes,
                classes_up_to(*std::max_element(numbers.begin(), numbers.end()), expected));
  LIMBER_ASSIGN(Tensor bytes, as_bytes(images));
  return std::unique_ptr<Dataset>(
      std::make_unique<Arrays>(name, std::move(classes), layout, std::move(bytes), std::move(numbers)));
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_arrays(const Tensor& images, const Tensor& labels,
                                             const std::string& name, const ClassNames& expected) {
  auto made = make(images, labels, name, expected);
  if (!made.ok()) return made.status().in(name);
  return made;
}

Result<std::unique_ptr<Dataset>> open_npy(const std::string& images, const std::string& labels,
                                          const ClassNames& expected) {
  LIMBER_ASSIGN(const Tensor pixels, read_npy(images));
  LIMBER_ASSIGN(const Tensor numbers, read_npy(labels));
  return open_arrays(pixels, numbers, images, expected);
}

}  // namespace limber
