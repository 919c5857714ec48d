// The least latency in device calls of small problems, by looking at everything: every placement
// that the rules allow, every split of each accelerator's ops into calls, every order of the calls.
// Shares no code with the evaluator. Exponential: up to about 6 ops.

#pragma once

#include <optional>

#include "problem/problem.h"

namespace placewright::testing {

// Nothing when no plan exists.
std::optional<double> brute_force_call_latency(const Problem& problem);

}  // namespace placewright::testing
