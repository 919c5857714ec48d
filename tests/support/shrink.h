// From a problem on which something goes wrong to a small one on which it still does.

#pragma once

#include <functional>
#include <string>

#include "problem/draft.h"
#include "problem/problem.h"

namespace placewright::testing {

// Leaves out ops, devices, tensors and rules one after the other, and rounds numbers, as long as
// `still_wrong` holds. Asks at most some thousand times.
ProblemDraft shrunk(ProblemDraft draft, const std::function<bool(const Problem&)>& still_wrong);

// Writes the problem to NAME.json in the folder that PLACEWRIGHT_FOUND names, else in that of
// temporary files. Answers the path.
std::string keep_found(const ProblemDraft& draft, const std::string& name);

}  // namespace placewright::testing
