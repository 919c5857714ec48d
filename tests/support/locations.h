// Where the tests find the source tree and the program. Only locations.cpp is compiled with these
// paths, so that the other tests compile to the same objects in every checkout.

#pragma once

#include <string>
#include <string_view>

namespace placewright::testing {

// "examples/moirai/example-1.json" as an absolute path.
std::string source_path(std::string_view relative);

std::string program_path();

// Of a backend that is built for the tests alone.
std::string plugin_path(std::string_view backend);

}  // namespace placewright::testing
