#include "plugins/plugin_files.h"

#include <cstdlib>

namespace placewright {
namespace {

namespace fs = std::filesystem;

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
