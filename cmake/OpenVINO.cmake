# The plugin with OpenVINO in it (src/backends/openvino/): a shared object that the program loads
# when a verb needs it, so that planning alone starts fast and stays small. Built where OpenVINO is
# found: the system's, else the wheel's, which brings headers, libraries and CMake files.

file(GLOB openvino_wheel "${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages/openvino/cmake")
find_package(OpenVINO QUIET COMPONENTS Runtime HINTS ${openvino_wheel})
# Its package adds this to every file of the project; g++ has it by itself.
remove_definitions(-D_GLIBCXX_USE_CXX11_ABI=1)

if(OpenVINO_FOUND)
  file(GLOB plugin_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/backends/openvino/*.cpp")
  add_library(placewright_openvino MODULE ${plugin_sources})
  get_target_property(openvino_headers openvino::runtime INTERFACE_INCLUDE_DIRECTORIES)
  # As system headers: they are not ours to keep free of warnings.
  target_include_directories(placewright_openvino SYSTEM PRIVATE ${openvino_headers})
  target_include_directories(placewright_openvino PRIVATE
    $<TARGET_PROPERTY:placewright,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(placewright_openvino PRIVATE openvino::runtime fmt::fmt placewright_compile_options)
  # An installed plugin goes on using the OpenVINO that it was built with; in a wheel, that of the
  # package beside it.
  get_target_property(openvino_library openvino::runtime IMPORTED_LOCATION_RELEASE)
  get_filename_component(openvino_folder "${openvino_library}" DIRECTORY)
  set_target_properties(placewright_openvino PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    INSTALL_RPATH "$<IF:$<BOOL:${SKBUILD}>,$ORIGIN/../openvino/libs,${openvino_folder}>"
    LIBRARY_OUTPUT_DIRECTORY "${PLACEWRIGHT_PROGRAM_DIR}")
else()
  message(STATUS "OpenVINO was not found: the verbs that run models will say so")
endif()
