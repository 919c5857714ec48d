// How a plan does beside what there is without one, in words.

#pragma once

#include <string>

namespace placewright::cli {

// `times`: how many times as fast as the rival. Less than the noise of a careful measurement is no
// difference.
std::string comparison_text(double times, const std::string& rival);

}  // namespace placewright::cli
