// "Did you mean …": the known name that a mistyped one is closest to.

#pragma once

#include <span>
#include <string>
#include <string_view>

namespace placewright {

// The candidate with the least edit distance (insert, delete, replace, swap neighbours), if that is
// at most a third of the name's length; else empty. So nothing is suggested for one or two letters.
std::string closest_name(std::string_view name, std::span<const std::string> candidates);

// ": did you mean 'heft'?" or nothing, to end a message with.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace placewright
