// What an ONNX file says about the sizes of its inputs beyond those that are fixed.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace placewright {

struct ImageSize {
  long height = 0;
  long width = 0;
};

struct OnnxInputSizes {
  // The axes of each input by name ("batch_size"); empty where an axis has none.
  std::map<std::string, std::vector<std::string>> axes;
  // From the entry "imgsz" of the file's metadata, as exporters of image models write it.
  std::optional<ImageSize> image;
};

// Nothing for a file that is no ONNX model. Throws InputError for one that cannot be read.
OnnxInputSizes onnx_input_sizes(const std::string& path);

}  // namespace placewright
