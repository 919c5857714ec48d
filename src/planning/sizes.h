// Bytes as people read them: "44 bytes", "1.50 GiB".

#pragma once

#include <string>

namespace placewright {

// Below ten thousand every digit is shown, so that the small numbers of published examples stay
// exact; above, three digits and a binary unit.
std::string size_text(double bytes);

}  // namespace placewright
