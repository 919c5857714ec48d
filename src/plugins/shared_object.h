// Loads a shared object that may be damaged.

#pragma once

#include <filesystem>
#include <string>

namespace placewright {

struct SharedObject {
  void* handle = nullptr;  // for dlsym; never closed
  std::string error;       // why there is none
};

// `mode` as dlopen takes it. A file that ends before its ELF header says so is refused: dlopen maps
// it into memory, and the first access behind the end would kill the program (SIGBUS). A name
// without a slash is looked for by the loader, and not checked.
SharedObject open_shared_object(const std::filesystem::path& path, int mode);

}  // namespace placewright
