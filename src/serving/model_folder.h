// The model files that a server may read: those that it was started with, and those of its folder.
//
// A folder holds NAME.onnx (version 1) and NAME/VERSION/FILE. No path comes from a client, and no
// link is followed out of the folder.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace placewright {

struct FoundModel {
  std::string name;
  std::string version;
  std::string path;
  std::string stamp;  // changes with the file
};

// A version is a whole number from 1 on.
std::optional<long> version_number(const std::string& text);

// Each name and version once. `folder` may be empty.
std::vector<FoundModel> found_models(const std::vector<std::string>& files,
                                     const std::string& folder);

}  // namespace placewright
