// Text files are UTF-8; a byte-order mark at the beginning, which some programs write, is no part
// of the text.

#pragma once

#include <string>
#include <string_view>

namespace placewright {

// The text without its byte-order mark. Throws InputError if it is UTF-16 or UTF-32.
std::string_view utf8_content(std::string_view bytes, const std::string& file);

}  // namespace placewright
