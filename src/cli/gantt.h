// A plan as a picture of text: time runs to the right, one row for each device.
//
//   d0   |[conv1=====][pool]...[fc====]|
//   d0 > |...........---...............|     what it sends
//   d0 < |......----...................|     what it receives
//   core |[conv1=====][pool]...[fc====]|     who holds it, where devices share resources
//
// An op wide enough shows its name; ops too short for a column of their own share one ("#").
// Pipelines have no time axis: there a bar shows each device's load. Where stages share resources
// it is one period, with what each stage does in it.

#pragma once

#include <string>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::cli {

// Lines of at most `width` columns (at least 40).
std::string gantt(const Problem& problem, const Plan& plan, int width);

}  // namespace placewright::cli
