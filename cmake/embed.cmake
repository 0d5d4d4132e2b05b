# Puts a file into a program: makes a .cpp at build time whose function gives the file's bytes, and adds it to the
# target's sources. The header declares it in namespace limber. Usage:
#   limber_embed(limber_serve_http web/live.html FUNCTION live_page HEADER serve/http/page.h)
# The file's path is relative to the project. Anything may be in it; it is compiled anew when it changes.
set(LIMBER_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(limber_embed target file)
  cmake_parse_arguments(ARG "" "FUNCTION;HEADER" "" ${ARGN})
  set(input "${CMAKE_SOURCE_DIR}/${file}")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${ARG_FUNCTION}.embedded.cpp")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DINPUT=${input}" "-DOUTPUT=${output}" "-DFUNCTION=${ARG_FUNCTION}"
            "-DHEADER=${ARG_HEADER}" -P "${LIMBER_EMBED_SCRIPT}"
    DEPENDS "${input}" "${LIMBER_EMBED_SCRIPT}"
    COMMENT "Embedding ${file}"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()

# Run by the command above.
if(CMAKE_SCRIPT_MODE_FILE AND DEFINED INPUT)
  file(READ "${INPUT}" bytes HEX)
  if(bytes STREQUAL "")
    message(FATAL_ERROR "embed: ${INPUT} is empty; expected a file with at least one byte")
  endif()
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE "${OUTPUT}" "// Made from a file by cmake/embed.cmake.
#include \"${HEADER}\"

namespace limber {
namespace {

constexpr unsigned char ${FUNCTION}_bytes[] = {
${bytes}
};

}  // namespace

std::string_view ${FUNCTION}() {
  return {reinterpret_cast<const char*>(${FUNCTION}_bytes), sizeof ${FUNCTION}_bytes};
}

}  // namespace limber
")
endif()
