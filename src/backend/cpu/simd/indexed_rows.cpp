#include "backend/cpu/simd/indexed_rows.h"

#include <cmath>
#include <limits>

namespace limber::own {
namespace {

bool is_identity(const std::vector<int64_t>& table, int64_t size) {
  if (static_cast<int64_t>(table.size()) != size) return false;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

std::vector<int64_t> scaled(std::vector<int64_t> table, int64_t stride) {
  for (int64_t& s : table) s = s == kFill ? kFill : s * stride;
  return table;
}

// Truncated and saturated; NaN is 0.
template <typename T>
T saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  if (value >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <typename T>
KernelPtr make_typed(IndexedRows rows, T fill) {
  return make_kernel(
      [rows = std::move(rows), fill](const KernelIo& io) { rows.run(io.in<T>(0), io.out<T>(0), fill); });
}

}  // namespace

IndexedRows::IndexedRows(const Shape& x, const std::vector<std::vector<int64_t>>& sources) : table_(&simd()) {
  LIMBER_ASSERT(!sources.empty() && x.dim(x.rank() - 1) <= INT32_MAX);
  const Strides strides = strides_of(x);
  bool merges = false;  // axes that are taken whole are one axis
  for (size_t d = 0; d + 1 < sources.size(); ++d) {
    const bool identity = is_identity(sources[d], x.dim(static_cast<int>(d)));
    std::vector<int64_t> table = scaled(sources[d], strides[d]);
    if (identity && merges) {
      std::vector<int64_t> product;
      product.reserve(outer_.back().size() * table.size());
      for (int64_t a : outer_.back()) {
        for (int64_t b : table) product.push_back(a + b);
      }
      table = std::move(product);
      outer_.pop_back();
    }
    merges = identity;
    rows_ *= static_cast<int64_t>(sources[d].size());
    outer_.push_back(std::move(table));
  }
  inner_.assign(sources.back().begin(), sources.back().end());
  cols_ = static_cast<int64_t>(inner_.size());
  for (int64_t begin = 0; begin < cols_;) {
    int64_t end = begin + 1;
    const auto at = [&](int64_t i) { return inner_[static_cast<size_t>(i)]; };
    while (end < cols_ && at(begin) != kFill && at(end) == at(end - 1) + 1) ++end;
    if (at(begin) != kFill && end - begin > run_end_ - run_begin_) {
      run_begin_ = begin;
      run_end_ = end;
    }
    begin = end;
  }
  const bool filled = std::find(inner_.begin(), inner_.end(), kFill) != inner_.end();
  gathers_ = !filled && (run_end_ - run_begin_) * 4 < cols_;
}

KernelPtr make_indexed_copy(IndexedRows rows, DType dtype, double fill) {
  switch (dtype) {
    case DType::kF32:
      return make_typed<float>(std::move(rows), static_cast<float>(fill));
    case DType::kF64:
      return make_typed<double>(std::move(rows), fill);
    case DType::kI64:
      return make_typed<int64_t>(std::move(rows), saturated<int64_t>(fill));
    case DType::kI32:
      return make_typed<int32_t>(std::move(rows), saturated<int32_t>(fill));
    case DType::kI8:
      return make_typed<int8_t>(std::move(rows), saturated<int8_t>(fill));
    case DType::kU8:
      return make_typed<uint8_t>(std::move(rows), saturated<uint8_t>(fill));
    case DType::kBool:
      return make_typed<uint8_t>(std::move(rows), fill != 0);
    default:
      return nullptr;
  }
}

}  // namespace limber::own
