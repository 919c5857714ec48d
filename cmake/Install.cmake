# What `cmake --install` puts where: the program, the library with its public headers, files for
# find_package and pkg-config, the man page and the shell completions. Included after the targets
# exist.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Placewright")
# Libraries of ours alone, so that a HiGHS from a wheel meets no other of that name.
set(private_dir "${CMAKE_INSTALL_LIBDIR}/placewright")
file(RELATIVE_PATH program_to_private "/${CMAKE_INSTALL_BINDIR}" "/${private_dir}")

# Where HiGHS came from a wheel it goes with the installation; else consumers find the system's.
if(PLACEWRIGHT_HIGHS_LIBRARY)
  install(FILES "${PLACEWRIGHT_HIGHS_LIBRARY}" DESTINATION "${private_dir}")
endif()

install(TARGETS placewright EXPORT PlacewrightTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT PlacewrightTargets NAMESPACE Placewright:: DESTINATION "${package_dir}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/PlacewrightConfig.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/PlacewrightConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" PATH_VARS private_dir)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/PlacewrightConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/PlacewrightConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/PlacewrightConfigVersion.cmake"
  DESTINATION "${package_dir}")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/placewright" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

if(PLACEWRIGHT_HIGHS_LIBRARY)
  get_filename_component(highs_name "${PLACEWRIGHT_HIGHS_LIBRARY}" NAME)
  set(PKG_CONFIG_HIGHS "-L\${libdir}/placewright -l:${highs_name} -Wl,-rpath,\${libdir}/placewright")
else()
  set(PKG_CONFIG_HIGHS "-lhighs")
endif()
file(RELATIVE_PATH PKG_CONFIG_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${CMAKE_CURRENT_LIST_DIR}/placewright.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/placewright.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/placewright.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(NOT TARGET placewright_program)
  return()
endif()
set_target_properties(placewright_program PROPERTIES INSTALL_RPATH "$ORIGIN/${program_to_private}")
install(TARGETS placewright_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
foreach(plugin IN ITEMS placewright_openvino placewright_learned)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION "${private_dir}")
  endif()
endforeach()

if(TARGET placewright_server)
  install(TARGETS placewright_server RUNTIME DESTINATION "${private_dir}")
endif()

# The program prints its own man page and completions.
set(printed_dir "${CMAKE_CURRENT_BINARY_DIR}/printed")
set(printed)
function(placewright_printed FILE DESTINATION)
  add_custom_command(OUTPUT "${printed_dir}/${FILE}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${printed_dir}"
    COMMAND placewright_program ${ARGN} > "${printed_dir}/${FILE}"
    DEPENDS placewright_program VERBATIM)
  install(FILES "${printed_dir}/${FILE}" DESTINATION "${DESTINATION}")
  set(printed ${printed} "${printed_dir}/${FILE}" PARENT_SCOPE)
endfunction()
placewright_printed(placewright.1 "${CMAKE_INSTALL_MANDIR}/man1" man)
placewright_printed(placewright "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" completion bash)
placewright_printed(_placewright "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" completion zsh)
placewright_printed(placewright.fish "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" completion fish)
add_custom_target(placewright_printed_files ALL DEPENDS ${printed})
