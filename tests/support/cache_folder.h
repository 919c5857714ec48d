// An empty folder instead of the user's for what the program keeps (XDG_CACHE_HOME), for as long as
// the object lives.

#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "support/folder.h"

namespace placewright::testing {

class CacheFolder {
 public:
  CacheFolder() {
    if (const char* old = std::getenv(kVariable)) old_ = old;
    use(folder_.file(""));
  }
  ~CacheFolder() {
    if (old_) {
      use(*old_);
    } else {
      ::unsetenv(kVariable);
    }
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  // Another path, until the object is gone.
  static void use(const std::string& path) { ::setenv(kVariable, path.c_str(), 1); }

 private:
  static constexpr const char* kVariable = "XDG_CACHE_HOME";
  Folder folder_;
  std::optional<std::string> old_;
};

}  // namespace placewright::testing
