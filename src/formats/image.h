// Images as arrays of bytes: height x width x 3, red, green and blue.

#pragma once

#include <string>
#include <string_view>

#include "formats/array.h"

namespace placewright {

// PNG, JPEG, BMP, GIF and PNM; grey becomes three equal channels, transparency is left out. Throws
// InputError.
Array parse_image(std::string_view bytes, const std::string& origin);

// Whether the array is as parse_image gives it.
bool is_image(const Array& array);

// Interpolated. Throws std::invalid_argument for a size that no image has.
Array resized(const Array& image, std::size_t height, std::size_t width);

}  // namespace placewright
