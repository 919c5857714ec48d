// Files that are given for a problem or a model and are neither.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace placewright {

// What the file seems to be by its first bytes, and what to do about it; nullopt if that is not
// clear. "an HDF5 file, such as a Keras model (.h5): export the model to ONNX"
std::optional<std::string> seems_to_be(std::string_view bytes);

}  // namespace placewright
