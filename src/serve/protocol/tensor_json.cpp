#include "serve/protocol/tensor_json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "serve/protocol/datatype.h"
#include "serve/protocol/json_writer.h"

namespace limber {
namespace {

// Half precision is read and written as float.
struct HalfNumber {
  using Storage = uint16_t;
  static uint16_t store(float value) { return float_to_half(value); }
  static float load(uint16_t value) { return half_to_float(value); }
};
struct Bfloat16Number {
  using Storage = uint16_t;
  static uint16_t store(float value) { return float_to_bfloat16(value); }
  static float load(uint16_t value) { return bfloat16_to_float(value); }
};

bool starts_number(const char* at, const char* end) {
  if (at != end && *at == '-') ++at;
  return at != end && *at >= '0' && *at <= '9';
}

// from_chars refuses what is too small for T as it refuses what is too large; the former is a number to us.
template <typename T>
std::optional<T> tiny_number(const char* at, const char* end) {
  const std::string text(at, end);
  const double value = std::strtod(text.c_str(), nullptr);
  if (!(std::abs(value) < static_cast<double>(std::numeric_limits<T>::min()))) return std::nullopt;
  return static_cast<T>(value);
}

constexpr int kMaxDigits = 19;   // that 64 bits hold
constexpr int kExactPower = 22;  // the largest power of ten that a double holds exactly
constexpr double kPowers[kExactPower + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Digits, a point and digits, up to 19 in all, no exponent: what nearly all numbers look like.
struct PlainNumber {
  const char* end = nullptr;  // nullptr: it is not one
  uint64_t digits = 0;
  int behind_point = 0;
  bool negative = false;
};

// Eight digits at once: pairs, fours and eights are joined within one word. False when one is no digit.
bool eight_digits(const char* at, uint64_t& digits) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  word -= 0x3030303030303030;
  if ((word | (word + 0x7676767676767676)) & 0x8080808080808080) return false;
  word = word * 10 + (word >> 8);
  word = ((word & 0x000000ff000000ff) * 0x000f424000000064 +
          (word >> 16 & 0x000000ff000000ff) * 0x0000271000000001) >>
         32;
  digits = digits * 100000000 + word;
  return true;
}

PlainNumber scan_number(const char* at, const char* end) {
  PlainNumber number;
  const auto take_digits = [&at, &number, end](int most) {
    const char* first = at;
    while (most >= 8 && end - at >= 8 && eight_digits(at, number.digits)) at += 8, most -= 8;
    for (; most > 0 && at != end && static_cast<unsigned char>(*at - '0') < 10; ++at, --most)
      number.digits = 10 * number.digits + static_cast<uint64_t>(*at - '0');
    return static_cast<int>(at - first);
  };
  if (at != end && *at == '-') number.negative = true, ++at;
  int count = take_digits(kMaxDigits);
  if (count == 0) return number;
  if (at != end && *at == '.') {
    const char* point = ++at;
    if (number.digits == 0) count = 0;  // 0.00012 has two digits that count
    while (number.digits == 0 && at != end && *at == '0') ++at;
    count += take_digits(kMaxDigits - count);
    number.behind_point = static_cast<int>(at - point);
  }
  // More digits, more zeros or an exponent: not plain.
  const bool goes_on =
      at != end && (static_cast<unsigned char>(*at - '0') < 10 || *at == 'e' || *at == 'E' || *at == '.');
  if (!goes_on && number.behind_point <= kExactPower) number.end = at;
  return number;
}

// The float nearest to a plain number, in the way of Clinger: digits and the power of ten are doubles, and
// their quotient is wrong by less than two units in its last place. Rounding it to float is therefore right
// unless it lies within so little of the middle between two floats; then, and where floats are subnormal, the
// answer is false.
bool nearest_float(const PlainNumber& number, float& to) {
  const double value = static_cast<double>(number.digits) / kPowers[number.behind_point];
  // A double has 29 bits that a float has not; half of them is the middle. Twice the error is doubtful.
  constexpr uint64_t kBelowFloat = (uint64_t{1} << 29) - 1, kMiddle = uint64_t{1} << 28, kDoubt = 4;
  const uint64_t rest = std::bit_cast<uint64_t>(value) & kBelowFloat;
  if (rest - (kMiddle - kDoubt) <= 2 * kDoubt) return false;
  if (value != 0 && value < static_cast<double>(std::numeric_limits<float>::min())) return false;
  to = static_cast<float>(number.negative ? -value : value);
  return true;
}

// Each reads one number at `at` and moves behind it; false leaves it where it was.
template <typename T>
requires std::is_floating_point_v<T>
bool read_number(const char*& at, const char* end, T& to) {
  if constexpr (std::is_same_v<T, float>) {
    const PlainNumber number = scan_number(at, end);
    if (number.end && nearest_float(number, to)) [[likely]]
      return at = number.end, true;
  }
  if (!starts_number(at, end)) return false;
  const auto [after, error] = std::from_chars(at, end, to);
  if (error != std::errc()) [[unlikely]] {
    const auto tiny = tiny_number<T>(at, after);
    if (!tiny) return false;
    to = *tiny;
  }
  at = after;
  return true;
}
template <typename T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) bool read_number(const char*& at, const char* end,
                                                                             T& to) {
  const auto [after, error] = std::from_chars(at, end, to);
  if (error != std::errc()) return false;
  if (after != end && (*after == '.' || *after == 'e' || *after == 'E')) return false;
  at = after;
  return true;
}
bool read_number(const char*& at, const char* end, bool& to) {
  const std::string_view rest(at, static_cast<size_t>(end - at));
  for (const auto& [word, value] : {std::pair<std::string_view, bool>{"true", true}, {"false", false}}) {
    if (rest.starts_with(word)) return at += word.size(), to = value, true;
  }
  int number = 0;
  const char* after = at;
  if (!read_number(after, end, number) || (number != 0 && number != 1)) return false;
  return at = after, to = number == 1, true;
}

// Reads an array whose nesting follows `dims`, or a flat one; leaf(i) reads the i-th element, and
// leaf.failure(i) says why it could not.
template <typename Leaf>
class DataReader {
 public:
  DataReader(JsonReader& in, std::span<const int64_t> dims, std::string_view what, Leaf leaf)
      : in_(in), dims_(dims), what_(what), leaf_(std::move(leaf)) {}

  Status read(int64_t elements) {
    if (dims_.empty() && in_.peek() != '[') return leaf_(0) ? Status() : leaf_.failure(0);
    if (!in_.take('[')) return in_.unexpected(what_, "an array");
    const bool nested = dims_.size() > 1 && in_.peek() == '[';
    return nested ? arrays(0) : row(elements);
  }

 private:
  // REQUIRES (both): '[' was taken
  Status row(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (i == 0 ? in_.peek() == ']' : !in_.take(',')) return ends_early(i, count);
      if (!leaf_(next_)) [[unlikely]]
        return leaf_.failure(next_);
      ++next_;
    }
    return close(count);
  }
  Status arrays(size_t axis) {
    const int64_t count = dims_[axis];
    if (axis + 1 == dims_.size()) return row(count);
    for (int64_t i = 0; i < count; ++i) {
      if (i == 0 ? in_.peek() == ']' : !in_.take(',')) return ends_early(i, count);
      if (!in_.take('[')) return in_.unexpected(what_, "an array, as the shape has more dimensions");
      LIMBER_TRY(arrays(axis + 1));
    }
    return close(count);
  }
  Status ends_early(int64_t found, int64_t count) {
    if (in_.peek() != ']') return in_.unexpected(what_, "',' or ']'");
    return invalid("{}: an array has {} elements where the shape [{}] asks for {}", what_, found,
                   Shape::of(dims_).to_string(), count);
  }
  Status close(int64_t count) {
    if (in_.take(']')) return {};
    if (count > 0 && in_.peek() != ',') return in_.unexpected(what_, "',' or ']'");
    return invalid("{}: an array has more than the {} elements that the shape [{}] asks for", what_, count,
                   Shape::of(dims_).to_string());
  }

  JsonReader& in_;
  std::span<const int64_t> dims_;
  std::string_view what_;
  Leaf leaf_;
  int64_t next_ = 0;
};

Status no_number(JsonReader& in, std::string_view what, int64_t index, DType dtype) {
  return in.unexpected(fmt::format("{}: element {}", what, index),
                       fmt::format("a number of {}", datatype_name(dtype)));
}

// One number of type T.
template <typename T>
struct NumberLeaf {
  JsonReader& in;
  std::string_view what;
  T* to;
  DType dtype;

  bool operator()(int64_t index) {
    in.peek();
    const char* at = in.data();
    if (!read_number(at, in.end(), to[index])) return false;
    in.move_to(at);
    return true;
  }
  Status failure(int64_t index) { return no_number(in, what, index, dtype); }
};
template <typename Half>
struct HalfLeaf {
  JsonReader& in;
  std::string_view what;
  uint16_t* to;
  DType dtype;

  bool operator()(int64_t index) {
    in.peek();
    const char* at = in.data();
    float value = 0;
    if (!read_number(at, in.end(), value) || !std::isfinite(Half::load(Half::store(value)))) return false;
    to[index] = Half::store(value);
    in.move_to(at);
    return true;
  }
  Status failure(int64_t index) { return no_number(in, what, index, dtype); }
};
struct TextLeaf {
  JsonReader& in;
  std::string_view what;
  std::vector<std::string>& to;
  Status status{};

  bool operator()(int64_t index) {
    auto text = in.string(fmt::format("{}: element {}", what, index));
    status = text.status();
    if (text.ok()) to.push_back(*std::move(text));
    return status.ok();
  }
  Status failure(int64_t) { return status; }
};

template <typename Leaf>
Status read_with(JsonReader& in, std::span<const int64_t> dims, int64_t elements, std::string_view what,
                 Leaf leaf) {
  return DataReader<Leaf>(in, dims, what, std::move(leaf)).read(elements);
}

// Calls `with` with a value of the C++ type that holds elements of `dtype`.
template <typename With>
auto dispatch(DType dtype, With&& with) {
  switch (dtype) {
    case DType::kF32:
      return with(float{});
    case DType::kF64:
      return with(double{});
    case DType::kF16:
      return with(HalfNumber{});
    case DType::kBF16:
      return with(Bfloat16Number{});
    case DType::kI8:
      return with(int8_t{});
    case DType::kU8:
      return with(uint8_t{});
    case DType::kI16:
      return with(int16_t{});
    case DType::kU16:
      return with(uint16_t{});
    case DType::kI32:
      return with(int32_t{});
    case DType::kU32:
      return with(uint32_t{});
    case DType::kI64:
      return with(int64_t{});
    case DType::kU64:
      return with(uint64_t{});
    case DType::kBool:
      break;
  }
  return with(bool{});
}

template <typename T>
concept Half = requires {
  typename T::Storage;
};

template <typename T>
void append_value(std::string& to, const void* values, int64_t index) {
  if constexpr (Half<T>) {
    append_json_number(to, T::load(static_cast<const uint16_t*>(values)[index]));
  } else if constexpr (std::is_same_v<T, bool>) {
    to += static_cast<const uint8_t*>(values)[index] ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<T>) {
    append_json_number(to, static_cast<const T*>(values)[index]);
  } else {
    char text[24];
    const auto [end, error] = std::to_chars(text, text + sizeof text, static_cast<const T*>(values)[index]);
    to.append(text, end);
  }
}

}  // namespace

Result<Tensor> read_json_tensor(JsonReader& in, const TensorType& type, std::string_view what) {
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(type));
  const std::vector<int64_t> dims = type.shape.dims();
  LIMBER_TRY(dispatch(type.dtype, [&]<typename T>(T) {
    if constexpr (Half<T>) {
      return read_with(in, dims, tensor.elements(), what,
                       HalfLeaf<T>{in, what, static_cast<uint16_t*>(tensor.raw()), type.dtype});
    } else {
      return read_with(in, dims, tensor.elements(), what,
                       NumberLeaf<T>{in, what, static_cast<T*>(tensor.raw()), type.dtype});
    }
  }));
  return tensor;
}

Result<std::vector<std::string>> read_json_texts(JsonReader& in, std::span<const int64_t> dims,
                                                 std::string_view what) {
  const auto elements = checked_elements(dims, std::numeric_limits<int32_t>::max());
  LIMBER_ASSERT(elements);
  std::vector<std::string> texts;
  LIMBER_TRY(read_with(in, dims, *elements, what, TextLeaf{in, what, texts}));
  return texts;
}

void append_json_data(std::string& to, const Tensor& tensor) {
  const int64_t count = tensor.elements();
  to.reserve(to.size() + static_cast<size_t>(count) * 12 + 2);
  to += '[';
  dispatch(tensor.dtype(), [&]<typename T>(T) {
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) to += ',';
      append_value<T>(to, tensor.raw(), i);
    }
  });
  to += ']';
}

}  // namespace limber
