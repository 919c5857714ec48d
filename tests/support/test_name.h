// Names of parameterised tests: GoogleTest takes letters, digits and underscores only.

#pragma once

#include <algorithm>
#include <string>

namespace placewright::testing {

inline std::string test_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace placewright::testing
