#include "support/locations.h"

namespace placewright::testing {

std::string source_path(std::string_view relative) {
  return std::string(PLACEWRIGHT_SOURCE_DIR "/").append(relative);
}

std::string program_path() {
  return PLACEWRIGHT_PROGRAM;
}

std::string plugin_path(std::string_view backend) {
  return std::string(PLACEWRIGHT_TEST_PLUGINS "/libplacewright_").append(backend).append(".so");
}

}  // namespace placewright::testing
