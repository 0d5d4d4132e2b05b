// Private to this folder: takes the large tensors out of an ONNX file before protobuf would copy them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace limber::onnx_io {

struct SplitModel {
  std::string rest;  // a ModelProto like the one given, without the raw_data in `raw`
  // By initialiser of the graph: its raw_data, part of the bytes given; empty where it stayed in `rest`.
  std::vector<std::span<const std::byte>> raw;
};

// Takes out raw_data of `least` bytes and more. nullopt when the bytes are no message or an unusual one
// (raw_data twice in one tensor, groups), which protobuf then has to read, or refuse, as a whole.
// REQUIRES: least > 0
std::optional<SplitModel> split_model(std::span<const std::byte> model, size_t least);

// The file's metadata by key, without a look at the graph. nullopt as above.
std::optional<std::map<std::string, std::string>> model_metadata(std::span<const std::byte> model);

}  // namespace limber::onnx_io
