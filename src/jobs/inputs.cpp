#include "jobs/inputs.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "tensor/convert.h"
#include "tensor/npy.h"

namespace limber {
namespace {

constexpr std::string_view kBuiltinImage = "builtin:image";

struct Argument {
  std::optional<std::string> name;
  std::string file;
};

// "NAME=FILE", unless the text as a whole is a file (a path may hold '=').
Argument split_argument(const std::string& text, const std::vector<std::string>& names) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return {std::nullopt, text};
  const std::string name = text.substr(0, equals);
  const bool known = std::find(names.begin(), names.end(), name) != names.end();
  if (!known && std::filesystem::exists(text)) return {std::nullopt, text};
  return {name, text.substr(equals + 1)};
}

// How an image tensor lies: channels first or last.
struct ImageLayout {
  bool channels_last = false;
  int64_t channels = 3;
  Dim height, width;
};

bool is_channels(const Dim& dim) { return dim.is_constant() && (dim.value() == 1 || dim.value() == 3); }

Result<ImageLayout> image_layout(const std::string& name, const TensorType& type) {
  const Shape& shape = type.shape;
  const bool numeric = type.dtype == DType::kF32 || type.dtype == DType::kU8;
  if (shape.rank() == 4 && numeric && is_channels(shape[1]))
    return ImageLayout{false, shape.dim(1), shape[2], shape[3]};
  if (shape.rank() == 4 && numeric && is_channels(shape[3]))
    return ImageLayout{true, shape.dim(3), shape[1], shape[2]};
  return invalid(
      "input '{}' is {}, which is not an image; an image input is f32 or u8 [N,C,H,W] or [N,H,W,C] with "
      "1 or 3 channels. Give a .npy file",
      name, type.to_string());
}

// Which size the model wants; 0 where it takes any.
int wanted(const Dim& dim) { return dim.is_constant() ? static_cast<int>(dim.value()) : 0; }

// What a preset comes to for an input of this layout.
ImageOptions with_preset(ImageOptions options, const ImageLayout& layout) {
  if (!options.preset) return options;
  Preprocess how{.height = std::max(1, wanted(layout.height)), .width = std::max(1, wanted(layout.width))};
  use_preset(*options.preset, how);
  if (!options.normalisation) options.normalisation = how.normalisation;
  const bool square = wanted(layout.height) > 0 && how.height == how.width;
  if (square && how.resize > 0 && options.size.empty() && options.crop == 0) {
    options.size = {how.resize};
    options.crop = how.height;
  }
  return options;
}

Result<Tensor> fit_image(Tensor image, const ImageLayout& layout, const ImageOptions& options) {
  const auto side = [&](size_t i) {
    return static_cast<int>(options.size[options.size.size() == 1 ? 0 : i]);
  };
  if (options.size.size() == 1 && options.crop > 0) {
    LIMBER_ASSIGN(image, resize_shorter(image, side(0)));
  } else if (!options.size.empty()) {
    LIMBER_ASSIGN(image, resize(image, side(0), side(1)));
  }
  if (options.crop > 0) {
    LIMBER_ASSIGN(image, crop_centre(image, options.crop, options.crop));
  }
  const int height = wanted(layout.height), width = wanted(layout.width);
  const bool fits =
      (height == 0 || image.shape().dim(0) == height) && (width == 0 || image.shape().dim(1) == width);
  if (fits) return image;
  if (options.size.empty() && options.crop == 0) {
    return resize(image, height > 0 ? height : static_cast<int>(image.shape().dim(0)),
                  width > 0 ? width : static_cast<int>(image.shape().dim(1)));
  }
  return invalid("size and crop give {}x{} pixels, the model wants {}x{}; leave both out to resize to that",
                 image.shape().dim(0), image.shape().dim(1), layout.height.to_string(),
                 layout.width.to_string());
}

// CHW floats to the order and type of the input.
void store_image(std::span<const float> chw, const ImageLayout& layout, Tensor& batch, int64_t index) {
  const int64_t count = static_cast<int64_t>(chw.size()), pixels = count / layout.channels;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t c = i / pixels, p = i % pixels;
    const int64_t at = index * count + (layout.channels_last ? p * layout.channels + c : i);
    if (batch.dtype() == DType::kF32) {
      batch.data<float>()[static_cast<size_t>(at)] = chw[static_cast<size_t>(i)];
    } else {
      const float level = std::clamp(255.F * chw[static_cast<size_t>(i)] + 0.5F, 0.F, 255.F);
      batch.data<uint8_t>()[static_cast<size_t>(at)] = static_cast<uint8_t>(level);
    }
  }
}

Result<Tensor> open_image(const std::string& file, uint64_t seed) {
  return file == kBuiltinImage ? draw_image(240, 320, seed) : load_image(file);
}

Result<Tensor> read_images(const InputFiles& files, const std::string& name, const TensorType& type,
                           const ImageOptions& options) {
  LIMBER_ASSIGN(const ImageLayout layout, image_layout(name, type));
  const ImageOptions how = with_preset(options, layout);
  Tensor batch;
  std::vector<float> chw;
  const auto count = static_cast<int64_t>(files.files.size());
  for (int64_t i = 0; i < count; ++i) {
    const std::string& file = files.files[static_cast<size_t>(i)];
    LIMBER_ASSIGN(Tensor image, open_image(file, options.seed));
    auto fitted = fit_image(std::move(image), layout, how);
    if (!fitted.ok()) return fitted.status().in(file);
    const int64_t height = fitted->shape().dim(0), width = fitted->shape().dim(1);
    if (!batch.valid()) {
      const Shape shape = layout.channels_last ? Shape{count, height, width, layout.channels}
                                               : Shape{count, layout.channels, height, width};
      LIMBER_ASSIGN(batch, Tensor::allocate({type.dtype, shape}));
      chw.resize(static_cast<size_t>(layout.channels * height * width));
    }
    if (static_cast<int64_t>(chw.size()) != layout.channels * height * width) {
      return invalid("{}: {}x{} pixels, others in the batch differ; give a size", file, height, width);
    }
    normalise(*fitted, static_cast<int>(layout.channels), how.normalisation.value_or(Normalisation()), chw);
    store_image(chw, layout, batch, i);
  }
  return batch;
}

Result<Tensor> read_array(const std::string& file, const std::string& name, const TensorType& type) {
  LIMBER_ASSIGN(Tensor tensor, read_npy(file));
  if (auto converted = convert_tensor(tensor, type.dtype); converted.ok()) return converted;
  return invalid("{}: holds {}, input '{}' wants {}; convert the array, as with astype in numpy", file,
                 dtype_name(tensor.dtype()), name, dtype_name(type.dtype));
}

}  // namespace

bool is_image(std::string_view file) { return file == kBuiltinImage || is_image_name(file); }

Result<std::vector<InputFiles>> assign_files(const Graph& graph, const std::vector<std::string>& arguments) {
  const auto names = input_names(graph);
  std::map<size_t, std::vector<std::string>> files;
  std::vector<std::string> unnamed;
  for (const std::string& text : arguments) {
    const Argument argument = split_argument(text, names);
    if (!argument.name) {
      unnamed.push_back(argument.file);
      continue;
    }
    const auto found = std::find(names.begin(), names.end(), *argument.name);
    if (found == names.end()) return no_such("input", *argument.name, names);
    files[static_cast<size_t>(found - names.begin())].push_back(argument.file);
  }
  std::optional<size_t> image_input;
  for (const std::string& file : unnamed) {
    size_t free = 0;
    while (files.contains(free)) ++free;
    const bool image = is_image(file);
    const size_t target = image && image_input ? *image_input : free;
    if (target >= names.size()) {
      return invalid(
          "{}: no input is left for it; the model has {} ({}); several files for one input must be images",
          file, names.size(), names.empty() ? "none" : fmt::format("{}", names.front()));
    }
    if (image) image_input = target;
    files[target].push_back(file);
  }
  std::vector<InputFiles> result;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!files.contains(i)) return invalid("input '{}' has no file; give {}=FILE", names[i], names[i]);
    result.push_back({i, std::move(files[i])});
  }
  return result;
}

Result<Tensor> read_input(const InputFiles& files, const std::string& name, const TensorType& type,
                          const ImageOptions& options) {
  const auto images = std::count_if(files.files.begin(), files.files.end(), is_image);
  if (images == static_cast<int64_t>(files.files.size())) return read_images(files, name, type, options);
  if (images == 0 && files.files.size() == 1) return read_array(files.files[0], name, type);
  return invalid("input '{}' got {} files; give one .npy file or only images", name, files.files.size());
}

Result<Adaptation> adapt_shapes(const Graph& graph, const std::vector<InputFiles>& files,
                                const std::vector<Tensor>& tensors) {
  Adaptation result;
  for (size_t i = 0; i < files.size(); ++i) {
    const ValueId id = graph.inputs()[files[i].input];
    const std::string& name = graph.value(id).name;
    const TensorType &want = graph.type(id), &have = tensors[i].type();
    bool match = want.rank() == have.rank();
    for (int axis = 0; match && axis < want.rank(); ++axis) {
      const Dim& dim = want.shape[axis];
      const int64_t size = have.shape.dim(axis);
      if (!dim.is_constant()) {
        const auto [known, fresh] = result.dims.emplace(std::string(dim.symbol().name()), size);
        match = dim.scale() == 1 && dim.offset() == 0 && (fresh || known->second == size);
      } else if (dim.value() != size) {
        match = axis == 0;
        result.shapes[name] = have.shape.dims();
      }
    }
    if (!match) {
      return invalid("{}: {}, input '{}' wants {}; another shape for that input changes what the model wants",
                     files[i].files[0], have.to_string(), name, want.to_string());
    }
  }
  return result;
}

}  // namespace limber
