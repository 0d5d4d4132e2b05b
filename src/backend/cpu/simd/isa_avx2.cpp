#define LIMBER_ISA isa_avx2
#define LIMBER_ISA_NAME "avx2"
#include "backend/cpu/simd/table.inl"
