// What a plan says of itself: lower bound, gap and status beside its value.

#pragma once

#include "verify/findings.h"
#include "verify/verifier.h"

namespace placewright::verifying {

void check_statement(const Statement& statement, double value, Findings& findings);

}  // namespace placewright::verifying
