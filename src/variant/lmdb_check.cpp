#include "variant/lmdb_check.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

namespace limber {
namespace {

// The layout of LMDB's data version 1 on 64-bit machines.
static_assert(sizeof(size_t) == 8 && std::endian::native == std::endian::little);

constexpr uint64_t kNoPage = UINT64_MAX;
constexpr size_t kNumMetas = 2, kPageHeader = 16, kNodeHeader = 8, kMaxDepth = 32;
constexpr uint16_t kBranchPage = 1, kLeafPage = 2, kOverflowPage = 4, kMetaPage = 8;
constexpr uint16_t kBigData = 1;         // of an entry: its value has pages of its own
constexpr uint32_t kFreeFlags = 0x4008;  // integer keys; a file without a folder of its own
constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;

struct PageHeader {
  uint64_t number;
  uint16_t pad, flags, lower, upper;  // an overflow page has a 32-bit number of pages in the last two
};
static_assert(sizeof(PageHeader) == kPageHeader);

struct Tree {
  uint32_t pad;
  uint16_t flags, depth;
  uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};
struct Meta {
  uint32_t magic, version;
  uint64_t address, map_bytes;
  Tree free, main;  // the pad of the first is the size of a page
  uint64_t last_page, id;
};
static_assert(sizeof(Meta) == 136);

struct Node {
  uint16_t low, high, flags, key_bytes;
  uint32_t value_bytes() const { return low | (uint32_t{high} << 16); }
  uint64_t child() const { return value_bytes() | (uint64_t{flags} << 32); }
};
static_assert(sizeof(Node) == kNodeHeader);

template <typename T>
T load(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

Result<Meta> read_meta(std::span<const std::byte> file, size_t index, size_t page_bytes) {
  const size_t at = index * page_bytes;
  if (file.size() < at + kPageHeader + sizeof(Meta)) return corrupt("ends in page {}", index);
  const auto page = load<PageHeader>(file, at);
  const auto meta = load<Meta>(file, at + kPageHeader);
  if ((page.flags & kMetaPage) == 0 || meta.magic != kMagic || meta.version != kVersion)
    return corrupt("page {} is not that of an LMDB database", index);
  return meta;
}

class Checker {
 public:
  Checker(std::span<const std::byte> file, const Meta& meta)
      : file_(file), meta_(meta), page_bytes_(meta.free.pad) {}

  Status run() {
    const uint64_t pages = std::min<uint64_t>(meta_.last_page + 1, file_.size() / page_bytes_);
    used_.assign(pages, false);
    for (size_t m = 0; m < kNumMetas && m < pages; ++m) used_[m] = true;
    if (meta_.free.flags != kFreeFlags || meta_.main.flags != 0)
      return corrupt("has flags {:x} and {:x}", meta_.free.flags, meta_.main.flags);
    LIMBER_TRY(check_tree(meta_.main, false).in("records"));
    LIMBER_TRY(check_tree(meta_.free, true).in("free pages"));
    for (const uint64_t page : free_) {
      if (page < used_.size() && used_[page]) return corrupt("page {} is used and free", page);
    }
    return {};
  }

 private:
  struct Counts {
    uint64_t branch = 0, leaf = 0, overflow = 0, entries = 0;
    bool operator==(const Counts&) const = default;
  };

  Status check_tree(const Tree& tree, bool is_free) {
    counts_ = {};
    last_key_.reset();
    is_free_ = is_free;
    if (tree.root == kNoPage) {
      if (tree.depth != 0 || tree.entries != 0) return corrupt("{} entries, no pages", tree.entries);
      return {};
    }
    if (tree.depth == 0 || tree.depth > kMaxDepth) return corrupt("depth {}", tree.depth);
    LIMBER_TRY(check_page(tree.root, tree.depth));
    if (counts_ != Counts{tree.branch_pages, tree.leaf_pages, tree.overflow_pages, tree.entries})
      return corrupt("{} entries, expected {}", counts_.entries, tree.entries);
    return {};
  }

  Result<std::span<const std::byte>> take_pages(uint64_t number, uint64_t count) {
    if (number >= used_.size() || count > used_.size() - number)
      return corrupt("page {} lies outside the file", number);
    for (uint64_t p = number; p < number + count; ++p) {
      if (used_[p]) return corrupt("page {} is used twice", p);
      used_[p] = true;
    }
    return file_.subspan(number * page_bytes_, count * page_bytes_);
  }

  Status check_page(uint64_t number, size_t depth) {
    LIMBER_ASSIGN(const auto page, take_pages(number, 1));
    const auto header = load<PageHeader>(page, 0);
    const bool leaf = depth == 1;
    if (header.number != number || header.flags != (leaf ? kLeafPage : kBranchPage))
      return corrupt("page {} is another or of another kind", number);
    if (header.lower < kPageHeader || header.lower % 2 != 0 || header.lower > header.upper ||
        header.upper > page_bytes_)
      return corrupt("page {} has its entries at {} to {}", number, header.lower, header.upper);
    const size_t entries = (header.lower - kPageHeader) / 2;
    if (entries < (leaf ? 1 : 2)) return corrupt("page {} has {} entries", number, entries);
    ++(leaf ? counts_.leaf : counts_.branch);
    LIMBER_TRY(check_layout(number, page, header, entries));
    for (size_t e = 0; e < entries; ++e) {
      const size_t at = load<uint16_t>(page, kPageHeader + 2 * e);
      LIMBER_TRY(leaf ? check_entry(page, at) : check_page(load<Node>(page, at).child(), depth - 1));
    }
    return {};
  }

  size_t node_bytes(const Node& node, bool leaf) const {
    const size_t value = !leaf ? 0 : (node.flags & kBigData) != 0 ? sizeof(uint64_t) : node.value_bytes();
    return (kNodeHeader + node.key_bytes + value + 1) / 2 * 2;
  }

  // Entries fill the end of the page, each in its own place.
  Status check_layout(uint64_t number, std::span<const std::byte> page, const PageHeader& header,
                      size_t entries) const {
    std::vector<std::pair<size_t, size_t>> places;
    for (size_t e = 0; e < entries; ++e) {
      const size_t at = load<uint16_t>(page, kPageHeader + 2 * e);
      if (at < header.upper || at > page_bytes_ - kNodeHeader || at % 2 != 0)
        return corrupt("page {} has an entry at {}", number, at);
      places.emplace_back(at, node_bytes(load<Node>(page, at), header.flags == kLeafPage));
    }
    std::sort(places.begin(), places.end());
    size_t end = header.upper;
    for (const auto& [at, bytes] : places) {
      if (at != end) return corrupt("page {} has an entry at {}, expected {}", number, at, end);
      end += bytes;
    }
    if (end != page_bytes_) return corrupt("the entries of page {} end at {}", number, end);
    return {};
  }

  Status check_entry(std::span<const std::byte> page, size_t at) {
    const auto node = load<Node>(page, at);
    const std::string_view key(reinterpret_cast<const char*>(page.data()) + at + kNodeHeader, node.key_bytes);
    if ((node.flags & ~kBigData) != 0) return corrupt("an entry has flags {:x}", node.flags);
    LIMBER_TRY(check_key(key));
    ++counts_.entries;
    auto value = page.subspan(at + kNodeHeader + node.key_bytes);
    if ((node.flags & kBigData) != 0) {
      LIMBER_ASSIGN(value, overflow_value(load<uint64_t>(value, 0), node.value_bytes()));
    } else {
      value = value.first(node.value_bytes());
    }
    return is_free_ ? take_free(value) : Status();
  }

  Status check_key(std::string_view key) {
    if (is_free_) {
      uint64_t id = 0;
      if (key.size() != sizeof(id)) return corrupt("a key of {} bytes", key.size());
      std::memcpy(&id, key.data(), sizeof(id));
      if (id >= meta_.id + 1 || (last_key_ && id <= last_id_)) return corrupt("free pages of {}", id);
      last_id_ = id;
    } else if (key.empty() || (last_key_ && key <= *last_key_)) {
      return corrupt("keys do not ascend");
    }
    last_key_ = key;
    return {};
  }

  Result<std::span<const std::byte>> overflow_value(uint64_t number, size_t bytes) {
    const uint64_t count = (kPageHeader - 1 + bytes) / page_bytes_ + 1;
    LIMBER_ASSIGN(const auto pages, take_pages(number, count));
    const auto header = load<PageHeader>(pages, 0);
    const uint64_t stored = header.lower | (uint32_t{header.upper} << 16);
    if (header.number != number || header.flags != kOverflowPage || stored != count)
      return corrupt("page {} is not the start of {} pages", number, count);
    counts_.overflow += count;
    return pages.subspan(kPageHeader, bytes);
  }

  // A count, then page numbers, descending.
  Status take_free(std::span<const std::byte> value) {
    const size_t words = value.size() / sizeof(uint64_t);
    if (words == 0 || value.size() % sizeof(uint64_t) != 0 || load<uint64_t>(value, 0) != words - 1)
      return corrupt("a list of {} bytes", value.size());
    uint64_t before = meta_.last_page + 1;
    for (size_t w = 1; w < words; ++w) {
      const auto page = load<uint64_t>(value, w * sizeof(uint64_t));
      if (page < kNumMetas || page >= before) return corrupt("page {} after {}", page, before);
      before = page;
      free_.push_back(page);
    }
    return {};
  }

  const std::span<const std::byte> file_;
  const Meta& meta_;
  const size_t page_bytes_;
  std::vector<bool> used_;  // by page
  std::vector<uint64_t> free_;
  // Of the tree that is being walked.
  Counts counts_;
  std::optional<std::string_view> last_key_;
  uint64_t last_id_ = 0;
  bool is_free_ = false;
};

}  // namespace

Status check_lmdb_header(std::span<const std::byte> file, size_t map_bytes) {
  if (file.empty()) return {};
  LIMBER_ASSIGN(const Meta first, read_meta(file, 0, 0));
  const size_t page_bytes = first.free.pad;
  if (!std::has_single_bit(page_bytes) || page_bytes < 512 || page_bytes > 32768)
    return corrupt("pages of {} bytes", page_bytes);
  LIMBER_ASSIGN(const Meta second, read_meta(file, 1, page_bytes));
  for (const Meta* meta : {&first, &second}) {
    if (meta->free.pad != page_bytes || meta->last_page >= map_bytes / page_bytes ||
        meta->map_bytes > map_bytes)
      return corrupt("{} pages of {} bytes, mapped to {} bytes", meta->last_page, meta->free.pad,
                     meta->map_bytes);
    if (meta->free.flags != kFreeFlags) return corrupt("has flags {:x}", meta->free.flags);
  }
  return {};
}

Status check_lmdb(std::span<const std::byte> file, std::optional<uint64_t> id) {
  if (file.empty()) return {};
  LIMBER_ASSIGN(const Meta first, read_meta(file, 0, 0));
  LIMBER_ASSIGN(const Meta second, read_meta(file, 1, first.free.pad));
  const Meta& newest = first.id < second.id ? second : first;
  const Meta& wanted = !id || newest.id == *id ? newest : &newest == &first ? second : first;
  if (id && wanted.id != *id) return error(Code::kNotFound, "transaction {} is gone", *id);
  return Checker(file, wanted).run();
}

}  // namespace limber
