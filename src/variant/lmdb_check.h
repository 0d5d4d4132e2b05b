// Is a file an LMDB database that is safe to open? LMDB itself trusts every page it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"

namespace limber {

// The first two pages, which LMDB reads on opening. An empty file is a database yet to be made.
Status check_lmdb_header(std::span<const std::byte> file, size_t map_bytes);

// All pages of the state that transaction `id` left, the newest by default: pages lie inside the file and
// belong to one thing each, entries fill their pages, keys ascend, free pages are free. Only databases
// without named parts and without duplicates are accepted. kNotFound when the state is not there any more.
// REQUIRES: check_lmdb_header
Status check_lmdb(std::span<const std::byte> file, std::optional<uint64_t> id = std::nullopt);

}  // namespace limber
