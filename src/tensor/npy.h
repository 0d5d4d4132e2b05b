// NumPy's .npy files: versions 1 to 3. Untrusted: a file that breaks the
// format, or whose header promises more than the file holds, is a Status.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tensor/tensor.h"

namespace limber {

// Fortran order and big endian are converted. Fails with kUnsupported for strings, complex numbers ...
Result<Tensor> read_npy(const std::string& path);
Result<Tensor> parse_npy(std::span<const std::byte> bytes);

// bf16 has no name in .npy: kUnsupported.
Result<std::string> format_npy(const Tensor& tensor);
Status write_npy(const std::string& path, const Tensor& tensor);

}  // namespace limber
