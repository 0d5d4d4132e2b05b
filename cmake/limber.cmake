# Leaves files out of a unity build (presets asan and tsan, for the sake of compile time).
function(limber_compile_alone folder)
  foreach(file ${ARGN})
    set_source_files_properties("${CMAKE_SOURCE_DIR}/${folder}/${file}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endfunction()

# One static library per folder under src/, made of every .cpp in it. Usage:
#   limber_library(ops DEPENDS ir PRIVATE fmt::fmt)
# DEPENDS names other Limber folders ("/" becomes "_"); PRIVATE and PUBLIC name third-party targets.
# ALONE names files whose private names clash with those of a neighbour in a unity build.
# SMALL: for code that nobody waits for, such as commands and file formats; the binary goes to devices.
function(limber_library name)
  cmake_parse_arguments(ARG "SMALL" "" "DEPENDS;PRIVATE;PUBLIC;ALONE" ${ARGN})
  string(REPLACE "/" "_" target "limber_${name}")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/*.cpp")
  add_library(${target} STATIC ${sources})
  limber_compile_alone("src/${name}" ${ARG_ALONE})
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(${target} PUBLIC limber_options fmt::fmt)
  foreach(dep ${ARG_DEPENDS})
    string(REPLACE "/" "_" dep_target "limber_${dep}")
    target_link_libraries(${target} PUBLIC ${dep_target})
  endforeach()
  target_link_libraries(${target} PRIVATE ${ARG_PRIVATE} PUBLIC ${ARG_PUBLIC})
  if(ARG_SMALL)
    limber_prefer_size(${target})
  endif()
  if(LIMBER_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(LIMBER_SANITIZE AND NOT name IN_LIST LIMBER_HOT)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# Under a sanitizer most of the time goes into optimising what runs once; only these run in inner loops or
# under a fuzzer. Test programs are treated alike.
set(LIMBER_HOT base tensor record ir data ops io passes runtime backend/ref backend/cpu)

function(limber_prefer_size target)
  if(NOT LIMBER_SANITIZE)
    target_compile_options(${target} PRIVATE -Os)
  endif()
endfunction()

# One test executable per folder under tests/, made of every *.cpp in it (so no test file is ever left
# out); GoogleTest cases become CTest tests.
#   limber_test(ir DEPENDS ir)
# THREADS: what it tests starts threads or locks. ./run tsan builds and runs these.
add_custom_target(threaded_tests)
function(limber_test name)
  cmake_parse_arguments(ARG "THREADS" "" "DEPENDS;PRIVATE;ALONE" ${ARGN})
  string(REPLACE "/" "_" target "${name}_test")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/${name}/*.cpp")
  add_executable(${target} ${sources})
  limber_compile_alone("tests/${name}" ${ARG_ALONE})
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}")
  # Assertions are many templates that run once: optimising them is half of what a test takes to compile, and two
  # thirds under a sanitizer.
  if(LIMBER_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE -O1)
  endif()
  foreach(dep ${ARG_DEPENDS})
    string(REPLACE "/" "_" dep_target "limber_${dep}")
    target_link_libraries(${target} PRIVATE ${dep_target})
  endforeach()
  target_link_libraries(${target} PRIVATE limber_own_cache GTest::gtest GTest::gtest_main ${ARG_PRIVATE})
  set(labels "")
  if(ARG_THREADS)
    add_dependencies(threaded_tests ${target})
    set(labels LABELS threads)
  endif()
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 ${labels})
endfunction()

include("${CMAKE_CURRENT_LIST_DIR}/embed.cmake")
