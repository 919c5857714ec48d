# The server behind `placewright serve`: an executable of its own, the only code that sees the
# headers of gRPC, protobuf and the HTTP library. Built where these are found (scripts/setup
# serving).

find_package(Protobuf QUIET)
find_package(OpenSSL QUIET)
find_package(gRPC CONFIG QUIET)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin)
find_path(HTTPLIB_INCLUDE httplib.h)
find_library(HTTPLIB_LIBRARY cpp-httplib)

if(Protobuf_FOUND AND Protobuf_PROTOC_EXECUTABLE AND OPENSSL_FOUND AND gRPC_FOUND AND GRPC_CPP_PLUGIN AND HTTPLIB_INCLUDE AND HTTPLIB_LIBRARY)
  set(protocol_dir "${PROJECT_BINARY_DIR}/generated/protocol")
  file(MAKE_DIRECTORY "${protocol_dir}")
  set(protocol_files inference.pb.cc inference.grpc.pb.cc)
  list(TRANSFORM protocol_files PREPEND "${protocol_dir}/")
  # Made when the build is configured, since clang-tidy reads the headers before anything is built.
  set(protocol_source "${PROJECT_SOURCE_DIR}/src/server/inference.proto")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${protocol_source}")
  if("${protocol_source}" IS_NEWER_THAN "${protocol_dir}/inference.grpc.pb.h")
    execute_process(
      COMMAND "${Protobuf_PROTOC_EXECUTABLE}" --cpp_out "${protocol_dir}" --grpc_out "${protocol_dir}"
              "--plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN}" -I "${PROJECT_SOURCE_DIR}/src/server"
              inference.proto
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
  # Not ours to keep free of warnings.
  add_library(placewright_protocol STATIC ${protocol_files})
  target_include_directories(placewright_protocol SYSTEM PUBLIC "${protocol_dir}")
  target_link_libraries(placewright_protocol PUBLIC gRPC::grpc++ "${Protobuf_LIBRARY_RELEASE}")

  file(GLOB server_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/server/*.cpp")
  add_executable(placewright_server ${server_sources})
  set_target_properties(placewright_server PROPERTIES
    OUTPUT_NAME placewright-server
    INSTALL_RPATH "$ORIGIN"
    RUNTIME_OUTPUT_DIRECTORY "${PLACEWRIGHT_PROGRAM_DIR}")
  # As the library was built: its SSLServer is there.
  target_compile_definitions(placewright_server PRIVATE
    "PLACEWRIGHT_VERSION=\"${PROJECT_VERSION}\"" CPPHTTPLIB_OPENSSL_SUPPORT)
  target_include_directories(placewright_server SYSTEM PRIVATE "${HTTPLIB_INCLUDE}")
  target_link_libraries(placewright_server PRIVATE
    placewright::placewright placewright_protocol placewright_compile_options nlohmann_json::nlohmann_json
    "${HTTPLIB_LIBRARY}" OpenSSL::SSL OpenSSL::Crypto)

  # What the server costs beside its models is measured with this.
  if(PLACEWRIGHT_BENCH)
    add_executable(serving_load "${PROJECT_SOURCE_DIR}/bench/serving_load.cpp")
    target_link_libraries(serving_load PRIVATE
      placewright::placewright placewright_protocol placewright_compile_options)
  endif()
else()
  message(STATUS "gRPC or the HTTP library was not found: `placewright serve` can only simulate (scripts/setup serving)")
endif()
