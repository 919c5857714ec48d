// Small random schedule problems with every rule in turn, to compare exact planners with brute
// force.

#pragma once

#include <cstdint>
#include <string>

#include "support/random_cases.h"
#include "support/random_problem.h"

namespace placewright::testing {

// The case of this number: links and host, congestion, memory that binds, lanes, overheads by
// device and by tensor, pins, colocation, … in changing company.
RandomProblemOptions exact_case(std::uint64_t number);
ProblemDraft exact_draft(std::uint64_t number);

// Devices that share: nested sets of four cores, or any amounts of any resources, in one memory or
// in memories of their own, with overheads for each device or each tensor. Every second case is one
// of latency, the others of total completion.
ProblemDraft sharing_draft(std::uint64_t number);
// Those of total completion.
ProblemDraft sharing_completion_draft(std::uint64_t number);

// Several memory spaces, one of them at least with several devices; resources in two cases of
// three. Links or host, with and without congestion, overheads and missing links; some memory
// binds. Every third case is one of total completion.
ProblemDraft mixed_spaces_draft(std::uint64_t number);
// Those of total completion.
ProblemDraft mixed_spaces_completion_draft(std::uint64_t number);

// Devices that share all, in one memory: sets of two or four cores, or any amounts of any
// resources. Most have a cut node.
ProblemDraft sharing_modules_draft(std::uint64_t number);

using DraftOfCase = ProblemDraft (*)(std::uint64_t number);

// Expects the planner's value on the cases to be the least there is, proved, and to
// find out what is infeasible. Cases that it refuses are passed over; most must not be.
void agrees_with_brute_force(const std::string& planner, DraftOfCase draft_of,
                             const RandomCases& cases);

}  // namespace placewright::testing
