#include "support/locations.h"

namespace placewright::testing {

std::string source_path(std::string_view relative) {
  return std::string(PLACEWRIGHT_SOURCE_DIR "/").append(relative);
}

std::string program_path() {
  return PLACEWRIGHT_PROGRAM;
}

}  // namespace placewright::testing
