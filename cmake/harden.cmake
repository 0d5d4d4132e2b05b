# A mistake in how we read a stranger's file ends the program instead of running into foreign memory: operator[]
# and front() of the standard library are checked, as are memcpy and its like where the compiler knows the size,
# return addresses, and tables of functions are read-only. Measured to cost nothing (docs/performance.md).
include(CheckCXXSourceCompiles)
include(CheckPIESupported)

target_compile_definitions(limber_options INTERFACE _GLIBCXX_ASSERTIONS)
target_compile_options(limber_options INTERFACE -fstack-protector-strong)
target_link_options(limber_options INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)

# Level 3 also knows sizes that are only computed at run time; older compilers and libraries have 2.
set(CMAKE_REQUIRED_FLAGS "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -Werror")
check_cxx_source_compiles("#include <cstring>
#if !__has_builtin(__builtin_dynamic_object_size)
#error level 2 only
#endif
int main() { return 0; }" LIMBER_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
if(LIMBER_FORTIFY_3)
  set(LIMBER_FORTIFY 3)
else()
  set(LIMBER_FORTIFY 2)
endif()
target_compile_options(limber_options INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${LIMBER_FORTIFY})

# CMAKE_POSITION_INDEPENDENT_CODE makes objects movable; programs are linked so only when asked.
check_pie_supported(LANGUAGES CXX)

# Fortified calls bring warnings of their own, which differ from compiler to compiler. They are errors where we work
# (dev and the sanitizers), not where somebody builds what is shipped.
target_compile_options(limber_options INTERFACE -Wno-error)
