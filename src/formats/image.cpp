// Images, decoded and resized by stb (https://github.com/nothings/stb).

#include "formats/image.h"

#include <limits>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

// stb's own files are of an older style of C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wconversion"
#define STB_IMAGE_IMPLEMENTATION
#define STBI_NO_STDIO
#define STBI_FAILURE_USERMSG
#include <stb/stb_image.h>
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#include <stb/stb_image_resize.h>
#pragma GCC diagnostic pop

#include "formats/input_error.h"

namespace placewright {
namespace {

constexpr int kChannels = 3;

const unsigned char* pixels_of(const Array& image) {
  return reinterpret_cast<const unsigned char*>(image.bytes.data());
}

}  // namespace

Array parse_image(std::string_view bytes, const std::string& origin) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw InputError(origin, "", "is too large for an image");
  }
  int width = 0;
  int height = 0;
  int channels = 0;
  const std::unique_ptr<unsigned char, decltype(&stbi_image_free)> pixels(
      stbi_load_from_memory(reinterpret_cast<const unsigned char*>(bytes.data()),
                            static_cast<int>(bytes.size()), &width, &height, &channels, kChannels),
      &stbi_image_free);
  if (!pixels) {
    throw InputError(origin, "", fmt::format("is not an image: {}", stbi_failure_reason()));
  }
  const std::vector<std::size_t> shape = {static_cast<std::size_t>(height),
                                          static_cast<std::size_t>(width), kChannels};
  const std::size_t size = shape[0] * shape[1] * shape[2];
  return Array::of<std::uint8_t>(shape, {pixels.get(), size});
}

bool is_image(const Array& array) {
  return array.element == "u8" && array.shape.size() == 3 && array.shape[2] == kChannels &&
         array.shape[0] > 0 && array.shape[1] > 0;
}

Array resized(const Array& image, std::size_t height, std::size_t width) {
  if (image.shape[0] == height && image.shape[1] == width) return image;
  constexpr auto kLargest = static_cast<std::size_t>(std::numeric_limits<int>::max() / kChannels);
  if (image.bytes.empty() || height == 0 || width == 0 || height > kLargest / width) {
    throw std::invalid_argument("an image cannot have that size");
  }
  Array result{.element = "u8",
               .shape = {height, width, kChannels},
               .bytes = std::vector<std::byte>(height * width * kChannels)};
  const int done = stbir_resize_uint8(
      pixels_of(image), static_cast<int>(image.shape[1]), static_cast<int>(image.shape[0]), 0,
      reinterpret_cast<unsigned char*>(result.bytes.data()), static_cast<int>(width),
      static_cast<int>(height), 0, kChannels);
  if (done == 0) throw std::invalid_argument("the image could not be resized");
  return result;
}

}  // namespace placewright
