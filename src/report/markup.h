// Text within a page or a drawing.

#pragma once

#include <string>
#include <string_view>

namespace placewright {

// As HTML and XML spell it, between tags and in attributes. Control characters, which XML does not
// allow, become blanks.
std::string markup_text(std::string_view text);

}  // namespace placewright
