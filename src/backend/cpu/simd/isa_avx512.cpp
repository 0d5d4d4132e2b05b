#define LIMBER_ISA isa_avx512
#define LIMBER_ISA_NAME "avx512"
#include "backend/cpu/simd/table.inl"
