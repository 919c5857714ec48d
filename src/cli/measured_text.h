// Measured times as a run shows them.

#pragma once

#include <string>

#include "problem/measured.h"

namespace placewright::cli {

// "5.337 ms"; what is not valid is shown, and marked as "disturbed" or "unsteady".
std::string measured_text(const Measured& measured);

// "2426 samples/s", the same.
std::string rate_text(const Measured& per_sample);

// Says on standard error why the measurement is not valid, and what helps: `longer` is an option.
void complain(const Measured& measured, const char* longer);

}  // namespace placewright::cli
