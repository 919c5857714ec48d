#include "formats/onnx_inputs.h"

#include <charconv>

#include <protozero/exception.hpp>

#include "formats/onnx_fields.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

using namespace onnx;

std::vector<std::string> axes_in(std::string_view type) {
  std::vector<std::string> names;
  for (const Field& tensor : fields_of(type)) {
    if (tensor.number != kTensorType) continue;
    for (const Field& shape : fields_of(tensor.value)) {
      if (shape.number != kShape) continue;
      for (const Field& dimension : fields_of(shape.value)) {
        if (dimension.number == kDimension) {
          names.push_back(text_in(dimension.value, kDimensionName));
        }
      }
    }
  }
  return names;
}

// "[640, 480]", or "640" for a square.
std::optional<ImageSize> image_size_in(std::string_view text) {
  std::vector<long> sizes;
  while (!text.empty()) {
    long size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error == std::errc{} && size > 0) sizes.push_back(size);
    text.remove_prefix(error == std::errc{} ? static_cast<std::size_t>(end - text.data()) : 1);
  }
  if (sizes.empty() || sizes.size() > 2) return std::nullopt;
  return ImageSize{sizes.front(), sizes.back()};
}

void add_axes(std::string_view graph, OnnxInputSizes& sizes) {
  for (const Field& input : fields_of(graph)) {
    if (input.number != kInput) continue;
    for (const Field& part : fields_of(input.value)) {
      if (part.number == kValueType) {
        sizes.axes[text_in(input.value, kValueName)] = axes_in(part.value);
      }
    }
  }
}

}  // namespace

OnnxInputSizes onnx_input_sizes(const std::string& path) {
  const std::string bytes = read_whole(path, kLargestOnnxFile);
  OnnxInputSizes sizes;
  try {
    for (const Field& field : fields_of(bytes)) {
      if (field.number == kGraph) add_axes(field.value, sizes);
      if (field.number == kModelMetadata && text_in(field.value, kKey) == "imgsz") {
        sizes.image = image_size_in(text_in(field.value, kValue));
      }
    }
  } catch (const protozero::exception&) {
    return {};
  }
  return sizes;
}

}  // namespace placewright
