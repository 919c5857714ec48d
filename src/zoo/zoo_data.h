// The files of zoo/ as they are compiled into the program, which then works from any folder.

#pragma once

#include <span>
#include <string_view>

namespace placewright {

struct PackedArchitecture {
  std::string_view name;
  std::string_view packed;  // JSON, compressed with xz
};

std::string_view zoo_index();
std::span<const PackedArchitecture> packed_architectures();

}  // namespace placewright
