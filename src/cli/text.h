// Numbers, durations and names as the program prints them.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/printable.h"  // names are printed beside these
#include "problem/objective.h"
#include "problem/plan.h"

namespace placewright::cli {

// Four digits are as many as measurements have: "1.278", "12.4", "124000".
std::string number_text(double number);

// "1.278 ms"; all six digits of the bare number when the problem states no unit, since published
// problems are compared with published values; "-" when there is no value.
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
