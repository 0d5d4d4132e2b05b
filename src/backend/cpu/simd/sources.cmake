# Sources of the own kernels, relative to src/backend/cpu, for the target that include()s this file. The isa_*
# files hold the same code compiled once per instruction set; which one runs is decided at run time.
file(GLOB LIMBER_SIMD_SOURCES CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}/src/backend/cpu"
     "${CMAKE_SOURCE_DIR}/src/backend/cpu/simd/*.cpp")
set_source_files_properties(${LIMBER_SIMD_SOURCES} PROPERTIES COMPILE_OPTIONS -O3)
set(limber_simd_options -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns about the deliberately undefined registers inside its own intrinsics headers.
  list(APPEND limber_simd_options -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
set_source_files_properties(simd/isa_generic.cpp PROPERTIES COMPILE_OPTIONS "${limber_simd_options}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set_source_files_properties(simd/isa_avx2.cpp PROPERTIES
    COMPILE_OPTIONS "${limber_simd_options};-mavx2;-mfma")
  set_source_files_properties(simd/isa_avx512.cpp PROPERTIES
    COMPILE_OPTIONS
    "${limber_simd_options};-mavx512f;-mavx512dq;-mavx512bw;-mavx512vl;-mfma;-mprefer-vector-width=512")
else()
  list(REMOVE_ITEM LIMBER_SIMD_SOURCES simd/isa_avx2.cpp simd/isa_avx512.cpp)
endif()
