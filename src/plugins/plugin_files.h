// Where the shared objects that the program loads on demand are found.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace placewright {

// The files that there are, in the order in which they are to be tried. The environment variable
// decides if it is set; an absolute path stands for itself; else the library is looked for beside
// the program, where it is installed, beside the shared object that this code is part of, and in
// the build that it comes from.
std::vector<std::filesystem::path> plugin_files(const std::string& variable,
                                                const std::filesystem::path& library);

}  // namespace placewright
