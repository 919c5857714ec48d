# The solvers behind src/solvers/: placewright_solver_libraries links HiGHS, LEMON and Scotch, and
# names the CP-SAT library, which is loaded while the program runs and so may be absent.

add_library(placewright_solver_libraries INTERFACE)

# HiGHS: what the system has, else the wheel's library with the headers that scripts/setup put
# beside it.
find_package(highs CONFIG QUIET)
if(NOT highs_FOUND)
  file(GLOB highs_libraries "${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages/highspy/libhighs.so.1")
  find_path(HIGHS_INCLUDE_DIR interfaces/highs_c_api.h
            PATHS "${PROJECT_SOURCE_DIR}/.deps/highs" NO_DEFAULT_PATH)
  if(NOT highs_libraries OR NOT HIGHS_INCLUDE_DIR)
    message(FATAL_ERROR "HiGHS was not found: run scripts/setup (or make setup), or install HiGHS with its CMake files")
  endif()
  list(GET highs_libraries 0 highs_library)
  set(highs_soname libhighs.so.1)
  if(SKBUILD)
    # The wheel of ortools brings a HiGHS of the same name and another version, and the loader keeps
    # one library per name. So the copy in our wheel has a name of its own.
    find_program(PATCHELF patchelf REQUIRED)
    set(highs_soname libhighs-placewright.so.1)
    file(COPY_FILE "${highs_library}" "${CMAKE_BINARY_DIR}/${highs_soname}")
    set(highs_library "${CMAKE_BINARY_DIR}/${highs_soname}")
    execute_process(COMMAND "${PATCHELF}" --set-soname ${highs_soname} "${highs_library}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(PLACEWRIGHT_HIGHS_LIBRARY "${highs_library}")
  add_library(highs::highs SHARED IMPORTED)
  set_target_properties(highs::highs PROPERTIES
    IMPORTED_LOCATION "${highs_library}"
    IMPORTED_SONAME ${highs_soname}
    INTERFACE_INCLUDE_DIRECTORIES "${HIGHS_INCLUDE_DIR}")
endif()

# Of LEMON only headers are used.
find_path(LEMON_INCLUDE_DIR lemon/network_simplex.h REQUIRED)
find_path(SCOTCH_INCLUDE_DIR scotch.h PATH_SUFFIXES scotch REQUIRED)
find_library(SCOTCH_LIBRARY scotch REQUIRED)
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp REQUIRED)

target_include_directories(placewright_solver_libraries SYSTEM INTERFACE
  "${LEMON_INCLUDE_DIR}" "${SCOTCH_INCLUDE_DIR}" "${PROTOZERO_INCLUDE_DIR}")
# Not libscotcherr: src/solvers/graph_partition.cpp brings the error handler itself, one that does
# not print.
target_link_libraries(placewright_solver_libraries INTERFACE
  highs::highs "${SCOTCH_LIBRARY}" ${CMAKE_DL_LIBS})

# A wheel finds the ortools that is installed beside it (python/placewright/libraries.py).
file(GLOB ortools_libraries "${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages/ortools/.libs/libortools.so.*")
set(ortools_library "")
if(ortools_libraries AND NOT SKBUILD)
  list(GET ortools_libraries 0 ortools_library)
endif()
set(PLACEWRIGHT_ORTOOLS_LIB "${ortools_library}" CACHE FILEPATH
    "libortools that CP-SAT is loaded from; the environment variable of the same name overrides it")
# For the one file that needs it: a path on every command line would make the compiler cache useless
# to other checkouts.
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/solvers/cp_sat.cpp" PROPERTIES
  COMPILE_DEFINITIONS "PLACEWRIGHT_ORTOOLS_LIB=\"${PLACEWRIGHT_ORTOOLS_LIB}\"")
