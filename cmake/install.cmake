# What `cmake --install` puts where, and the Debian packages that `cpack` makes of it (docs/packaging.md).
# Component runtime: the program, the shared library and what belongs to them. Component dev: the C++ API.

# --- made by the program itself ----------------------------------------------------------------------
# A program of another machine cannot be asked, and one with sanitizers is not for installing.
if(LIMBER_FUZZ OR LIMBER_SANITIZE OR (CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR))
  set(pages)
else()
  set(pages "${PROJECT_BINARY_DIR}/pages")
  file(MAKE_DIRECTORY "${pages}")
  add_custom_command(
    OUTPUT "${pages}/limber.1" "${pages}/limber" "${pages}/_limber" "${pages}/limber.fish"
    COMMAND limber --man > "${pages}/limber.1"
    COMMAND limber --completion bash > "${pages}/limber"
    COMMAND limber --completion zsh > "${pages}/_limber"
    COMMAND limber --completion fish > "${pages}/limber.fish"
    DEPENDS limber
    COMMENT "Manual page and completions"
    VERBATIM)
  add_custom_target(limber_pages ALL DEPENDS "${pages}/limber.1")
endif()

# --- files -------------------------------------------------------------------------------------------
include(CMakePackageConfigHelpers)
set(cmake_folder "${CMAKE_INSTALL_LIBDIR}/cmake/limber")

install(TARGETS limber RUNTIME COMPONENT runtime)
install(TARGETS limber_shared EXPORT limber LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev)
if(pages)
  install(FILES "${pages}/limber.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT runtime)
  install(FILES "${pages}/limber" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT runtime)
  install(FILES "${pages}/_limber" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT runtime)
  install(FILES "${pages}/limber.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
          COMPONENT runtime)
endif()
install(FILES LICENSE README.md CHANGELOG.md TYPE DOC COMPONENT runtime)
install(DIRECTORY docs/ TYPE DOC COMPONENT runtime FILES_MATCHING PATTERN "*.md")

install(DIRECTORY include/limber TYPE INCLUDE COMPONENT dev)
install(EXPORT limber FILE limber-targets.cmake NAMESPACE limber:: DESTINATION "${cmake_folder}" COMPONENT dev)
configure_package_config_file(cmake/limber-config.cmake.in "${PROJECT_BINARY_DIR}/limber-config.cmake"
                              INSTALL_DESTINATION "${cmake_folder}" NO_SET_AND_CHECK_MACRO)
# Until 1.0 a minor version may break programs, and the number in the library's name says so too.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/limber-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/limber-config.cmake" "${PROJECT_BINARY_DIR}/limber-config-version.cmake"
        DESTINATION "${cmake_folder}" COMPONENT dev)

# Paths in limber.pc are relative to it, so that the installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE pc_lib)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
           OUTPUT_VARIABLE pc_include)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
           OUTPUT_VARIABLE pc_prefix)
configure_file(cmake/limber.pc.in "${PROJECT_BINARY_DIR}/limber.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/limber.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)

# --- Debian packages ---------------------------------------------------------------------------------
set(LIMBER_MAINTAINER "Limber maintainers <limber@localhost>" CACHE STRING "Who made the Debian packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${LIMBER_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/debian/stage.cmake")
set(CPACK_COMPONENTS_ALL runtime dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME limber)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
# Packages of programs that are linked with the library depend on this one.
get_target_property(so_version limber_shared SOVERSION)
file(WRITE "${PROJECT_BINARY_DIR}/debian/shlibs" "liblimber ${so_version} limber (>= ${PROJECT_VERSION})\n")
set(debian "${PROJECT_SOURCE_DIR}/cmake/debian")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/debian/shlibs" "${debian}/postinst"
                                               "${debian}/postrm")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
"runs and trains ONNX vision models, and makes them elastic
The program limber inspects, runs, profiles and trains ONNX models on the
CPU. It trains the parts that are worth most within a given time, gives the
blocks of a model cheaper alternatives, and finds the variant that fits the
budget of this machine. The shared library is its C++ API.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME limber-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "limber (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_DESCRIPTION
"runs and trains ONNX vision models (C++ API)
The headers of Limber's shared library, with what CMake and pkg-config need
to find it.")
include(CPack)
