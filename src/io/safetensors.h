// The safetensors format: a JSON header, then the bytes of all tensors. Untrusted: see io/onnx.h.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "tensor/tensor.h"

namespace limber {

struct TensorFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Tensors stay in the mapped file where their elements are aligned; the file must not change meanwhile.
Result<TensorFile> read_safetensors(const std::string& path);
// `owner` keeps `bytes` alive as long as any tensor uses them; nullptr: everything is copied.
Result<TensorFile> parse_safetensors(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

// Where the bytes of each tensor start in the file that is written for these.
Result<std::map<std::string, uint64_t>> safetensors_offsets(const TensorFile& file);
// Data is aligned to 64 bytes. Replaced as a whole or not at all; tensors are not copied.
Status write_safetensors(const std::string& path, const TensorFile& file,
                         const FileSystem& files = os_files());
Result<std::string> format_safetensors(const TensorFile& file);
// Gives the bytes of the file to `sink`, in parts that follow each other; tensors are not copied.
Status give_safetensors(const TensorFile& file,
                        const std::function<Status(std::span<const std::string_view>)>& sink);

}  // namespace limber
