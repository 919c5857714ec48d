// A bound for schedules whose transfers cost more than their work: ops that are forced onto one
// device.
//
// Wanted: start(v, d), before which op v cannot start on device d. At first it is the longest way
// there, with the transfers that cannot be avoided. Then it is raised. Say v starts on d at t. An
// input whose producer ran anywhere else would come too late: that producer is forced onto d, with
// what it costs to be back in time as its deadline. From its own inputs further ops follow. All
// that are forced share d, one after the other, between their own earliest starts and their
// deadlines; if even a machine that may interrupt them (Jackson's preemptive schedule) is too late,
// t is too early. Papadimitriou and Yannakakis, "Towards an architecture-independent analysis of
// parallel algorithms", SIAM J. Comput. 19(2), 1990, for equal devices and transfers; here for
// unrelated devices, and with the start of each op on each device.
//
// The same on the reversed graph gives rest(v, d), from the end of v on d to the end of everything.
// A value T is then tested: a device is left out for an op where start + time + rest > T, and a
// transfer that T has no time for puts both ends on one device. Clusters of such ops must fit some
// device between their starts and their rests. What is left out raises starts and rests again.
// On small graphs each edge is then tried both ways: its transfer is paid, or both ends share a
// device; where one is impossible the other holds. An op without a device proves that no schedule
// ends by T. The bound is the largest T that bisection finds to be impossible.
//
// It needs devices that run one op at a time, each with its own memory space. Memory and ports are
// left out: they only make schedules longer. O(ops x devices x ops that are forced) for each of
// some ten tests.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bounds/earliest_starts.h"
#include "problem/problem.h"

namespace placewright {

// Why it has nothing to say about the problem; empty: it has.
std::string refuses_forced_company(const Problem& problem);

// At least `at_least`, which is known to be a bound.
double forced_company_bound(
    const Problem& problem, double at_least,
    const std::function<bool()>& stop = [] { return false; });

// What holds for all schedules that end by a value.
struct CompanyFacts {
  Surroundings around;  // where each op may run, and with whom it shares a device
  // Op x device: from the start of everything to its start, and from its end to the end.
  std::vector<double> start;
  std::vector<double> rest;
};

// Nullopt: there are none, it has nothing to say about the problem, or it was asked to stop.
std::optional<CompanyFacts> company_facts(const Problem& problem, double value,
                                          const std::function<bool()>& stop);

}  // namespace placewright
