// Numbers with a unit, as people write them in cluster files: "80GB", "16 GiB/s", "5us",
// "19.5TFLOPS".

#pragma once

#include <optional>
#include <string_view>

#include "problem/objective.h"

namespace placewright {

enum class Dimension { bytes, time, bytes_per_time, flops_per_time };

struct Quantity {
  double value = 0;  // in bytes and seconds
  Dimension dimension = Dimension::bytes;
};

// Nullopt if the text is not a number that is not negative and a known unit.
std::optional<Quantity> quantity_in(std::string_view text);

// The number that stands for the quantity where times are in this unit; nullopt if the quantity
// holds a time and the unit is TimeUnit::none.
std::optional<double> in_unit(const Quantity& quantity, TimeUnit unit);

}  // namespace placewright
