# The model zoo: the architectures of zoo/ become part of the library, as xz files (liblzma unpacks
# them).

find_package(LibLZMA REQUIRED)
file(GLOB architectures CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/zoo/architectures/*.json.xz")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/zoo/index.json" ${architectures})

file(READ "${PROJECT_SOURCE_DIR}/zoo/index.json" PLACEWRIGHT_ZOO_INDEX)
set(PLACEWRIGHT_ZOO_ARCHITECTURES "")
foreach(path IN LISTS architectures)
  get_filename_component(name "${path}" NAME)
  string(REPLACE ".json.xz" "" name "${name}")
  file(READ "${path}" bytes HEX)
  string(LENGTH "${bytes}" length)
  math(EXPR length "${length} / 2")
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
  string(APPEND PLACEWRIGHT_ZOO_ARCHITECTURES "    {\"${name}\", {\"${bytes}\", ${length}}},\n")
endforeach()
configure_file(src/zoo/zoo_data.cpp.in "${PROJECT_BINARY_DIR}/generated/zoo_data.cpp" @ONLY)

target_sources(placewright PRIVATE "${PROJECT_BINARY_DIR}/generated/zoo_data.cpp")
# Not for those who link the installed library: nothing behind its public headers needs the zoo.
target_link_libraries(placewright PRIVATE "$<BUILD_INTERFACE:LibLZMA::LibLZMA>")
