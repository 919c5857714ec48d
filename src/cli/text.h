// Numbers, durations and names as the program prints them.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/printable.h"  // names are printed beside these
#include "problem/objective.h"
#include "problem/plan.h"

namespace placewright::cli {

// "1.27811 ms"; the bare number when the problem states no unit; "-" when there is no value.
std::string value_text(double value, TimeUnit unit);

// "13.9 %"; "-" when there is no plan.
std::string percent_text(double fraction);

// Seconds of our own work: "85 ms", "1.24 s", "2 min 5 s".
std::string duration_text(double seconds);

// How fast steps go: "850 steps/s", "12.3k steps/s", "4.56M steps/s"; empty when nobody counted.
std::string rate_text(std::uint64_t steps, double seconds);

// Columns that UTF-8 text takes.
std::size_t display_width(std::string_view text);

std::string status_text(Status status);

}  // namespace placewright::cli
