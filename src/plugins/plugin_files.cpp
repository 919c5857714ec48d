#include "plugins/plugin_files.h"

#include <cstdlib>

#include <dlfcn.h>

namespace placewright {
namespace {

namespace fs = std::filesystem;

// The shared object that this code is linked into, such as a Python extension; or the program.
fs::path file_of_this_code() {
  static const char anchor = 0;
  Dl_info found;
  std::error_code unreadable;
  if (dladdr(&anchor, &found) == 0) return {};
  return fs::canonical(found.dli_fname, unreadable);
}

std::vector<fs::path> candidates(const std::string& variable, const fs::path& library) {
  if (const char* chosen = std::getenv(variable.c_str())) return {chosen};
  if (library.is_absolute()) return {library};
  std::vector<fs::path> paths;
  std::error_code unreadable;
  const fs::path program = fs::read_symlink("/proc/self/exe", unreadable);
  if (!unreadable) {
    paths.push_back(program.parent_path() / library);
    paths.push_back(program.parent_path() / PLACEWRIGHT_INSTALLED_PLUGINS / library);
  }
  const fs::path code = file_of_this_code();
  if (!code.empty() && code != program) paths.push_back(code.parent_path() / library);
  paths.push_back(fs::path(PLACEWRIGHT_BUILT_PLUGINS) / library);
  return paths;
}

}  // namespace

std::vector<fs::path> plugin_files(const std::string& variable, const fs::path& library) {
  std::vector<fs::path> files = candidates(variable, library);
  std::erase_if(files, [](const fs::path& path) {
    std::error_code unreadable;
    return !fs::exists(path, unreadable);
  });
  return files;
}

}  // namespace placewright
