#define LIMBER_ISA isa_generic
#define LIMBER_ISA_NAME "generic"
#include "backend/cpu/simd/table.inl"
