# The plugin with libtorch in it (src/planners/learned/plugin/): a shared object that the program
# loads when a learned planner is asked for. Built where libtorch is found: in CMAKE_PREFIX_PATH,
# else where `scripts/setup learned` puts it. Not under the sanitizers, to keep those builds short:
# what lies outside the plugin (parsing, rollouts, policy files) is tested there without it.

if(NOT PLACEWRIGHT_FUZZ AND NOT PLACEWRIGHT_SANITIZE)
  # The wheel has its profiler inside libtorch_cpu, and its CMake files would warn that it is
  # nowhere.
  set(kineto_LIBRARY torch_cpu)
  find_package(Torch QUIET HINTS "${PROJECT_SOURCE_DIR}/.deps/torch/torch/share/cmake/Torch")
endif()

if(Torch_FOUND)
  # Objects, so that the tests of the layers link the very same.
  file(GLOB learned_plugin_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/planners/learned/plugin/*.cpp")
  add_library(placewright_learned_objects OBJECT
    ${learned_plugin_sources} "${PROJECT_SOURCE_DIR}/src/planners/learned/graph_parsing.cpp")
  # As system headers: they are not ours to keep free of warnings.
  target_include_directories(placewright_learned_objects SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS})
  target_include_directories(placewright_learned_objects PUBLIC
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/include/placewright")
  # Torch's headers bring an fmt of their own, which the system's library does not serve.
  target_compile_definitions(placewright_learned_objects PRIVATE FMT_HEADER_ONLY)
  target_link_libraries(placewright_learned_objects PUBLIC ${TORCH_LIBRARIES} PRIVATE placewright_compile_options)
  set_target_properties(placewright_learned_objects PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    # Torch's headers take about 15 seconds: one translation unit reads them once.
    UNITY_BUILD ON
    UNITY_BUILD_BATCH_SIZE 0)
  add_library(placewright_learned MODULE $<TARGET_OBJECTS:placewright_learned_objects>)
  target_link_libraries(placewright_learned PRIVATE ${TORCH_LIBRARIES} placewright_compile_options)
  get_filename_component(torch_folder "${TORCH_LIBRARY}" DIRECTORY)
  set_target_properties(placewright_learned PROPERTIES
    LINKER_LANGUAGE CXX
    INSTALL_RPATH "${torch_folder}"
    LIBRARY_OUTPUT_DIRECTORY "${PLACEWRIGHT_PROGRAM_DIR}")
else()
  message(STATUS "libtorch was not found: the planners hsdag, placeto and rnn will say so")
endif()
