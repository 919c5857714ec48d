// A plan as rows of one table: ops, transfers, calls and stages, for people and spreadsheets.
//
//   kind      op, transfer, call, stage
//   name      the op, the tensor, the call's or stage's number on its device
//   model     op: the model it belongs to
//   device    where it runs; transfer: the sender ("host" for host memory)
//   to        transfer: the receiver
//   start, end, time    empty where the objective has no times; a stage's time is its load
//   bytes     op: resident; transfer: of the tensor
//   ops       call, stage: how many

#pragma once

#include <span>
#include <string>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct PlanRows {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;  // in order of start; numbers with all their digits
};

PlanRows plan_rows(const Problem& problem, const Plan& plan);

// Comma-separated values (RFC 4180): a field with a comma, quote or line feed is quoted. Characters
// on which a terminal acts are escaped (printable.h). A text that a spreadsheet would run as a
// formula, since it begins with =, +, - or @, comes behind a '.
std::string csv_text(const PlanRows& rows);
std::string csv_field(const std::string& content);

// The tensor's name; its producer's where it has none.
std::string tensor_name(const Problem& problem, TensorId tensor);

std::vector<std::string> device_names(const Problem& problem, std::span<const DeviceId> devices);

// The device's name; "host" where it is not valid.
std::string place_name(const Problem& problem, DeviceId device);

}  // namespace placewright
