#include "backend/cpu/simd/simd.h"

#include <atomic>

namespace limber {

namespace isa_generic {
const SimdTable& table();
}
#if defined(__x86_64__)
namespace isa_avx2 {
const SimdTable& table();
}
namespace isa_avx512 {
const SimdTable& table();
}
#endif

namespace {

struct Tables {
  const SimdTable* list[4] = {};
  Tables() {
    int n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
      list[n++] = &isa_avx512::table();
    }
    if (avx2) list[n++] = &isa_avx2::table();
#endif
    list[n] = &isa_generic::table();
  }
};

std::atomic<const SimdTable*> forced{nullptr};

}  // namespace

const SimdTable* const* simd_tables() {
  static const Tables tables;
  return tables.list;
}

const SimdTable& simd() {
  const SimdTable* table = forced.load(std::memory_order_acquire);
  return table != nullptr ? *table : *simd_tables()[0];
}

void force_simd(const SimdTable* table) { forced.store(table, std::memory_order_release); }

}  // namespace limber
