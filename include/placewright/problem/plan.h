// Plan: what a planner hands out. Certificate: how good it provably is.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placewright/problem/ids.h"
#include "placewright/problem/problem.h"
#include "placewright/problem/spelling.h"

namespace placewright {

// One movement of a tensor. Links: `direct`, from device to device. Host: `out` from an accelerator
// to host memory (once per tensor; `to` is not valid) and `in` from host memory (once per reading
// accelerator; `from` is not valid).
enum class Leg { direct, out, in };
template <>
inline constexpr auto kSpellings<Leg> =
    std::to_array<Spelling<Leg>>({{Leg::direct, "direct"}, {Leg::out, "out"}, {Leg::in, "in"}});

struct Transfer {
  TensorId tensor;
  Leg leg = Leg::direct;
  DeviceId from;
  DeviceId to;
  double start = 0;
  double end = 0;

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// latency, total-completion: when everything happens.
struct Schedule {
  Table<OpId, double> start;
  Table<OpId, double> end;
  std::vector<Transfer> transfers;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// throughput: a set of ops and the devices that share it (more than one: replicas). Contiguous
// plans list stages in pipeline order.
struct Stage {
  std::vector<DeviceId> devices;
  std::vector<OpId> ops;
  double load = 0;
  // Where devices share resources: when in each period the stage holds them; phased: in the forward
  // pass, and in the backward pass. Not stated: as early as the stages before it in the list allow.
  std::optional<double> offset = {};
  std::optional<double> backward_offset = {};

  friend bool operator==(const Stage&, const Stage&) = default;
};

// call-latency: one run of an accelerator over a contiguous set of ops, in order of start.
struct Call {
  DeviceId device;
  std::vector<OpId> ops;
  double start = 0;
  double end = 0;

  friend bool operator==(const Call&, const Call&) = default;
};

// Placement and what belongs to the objective: a schedule, or stages, or calls. In a replicated
// stage every op is placed on the stage's first device.
struct Plan {
  Placement placement;
  std::optional<Schedule> schedule;  // latency, total-completion
  std::vector<Stage> stages;         // throughput
  std::vector<Call> calls;           // call-latency
  // Ops that the planner looked at as one, each op in one group at most; they explain the plan and
  // bind nothing. Empty if the planner has no groups.
  std::vector<std::vector<OpId>> groups;
  double value = kInfinity;

  // Says where ops are, and nothing else.
  [[nodiscard]] bool is_placement() const { return !schedule && stages.empty() && calls.empty(); }

  friend bool operator==(const Plan&, const Plan&) = default;
};

// No plan has a value below `lower_bound`; `method` says why in a few words.
struct Certificate {
  double lower_bound = 0;
  std::string method = "times are not negative";
};

enum class Status { optimal, feasible, infeasible, unknown };
template <>
inline constexpr auto kSpellings<Status> = std::to_array<Spelling<Status>>({
    {Status::optimal, "optimal", "gap <= 1e-6"},
    {Status::feasible, "feasible", "a plan with a gap"},
    {Status::infeasible, "infeasible", "proved: no plan exists"},
    {Status::unknown, "unknown", "no plan found, none ruled out"},
});

inline constexpr double kOptimalGap = 1e-6;

// (value - bound) / value; 0 when both are 0, infinite when there is no plan.
double gap(double value, double lower_bound);

// What a planner answers: a plan and a certificate, or the reason why there is none.
struct Answer {
  std::optional<Plan> plan;
  Certificate certificate;
  bool proved_infeasible = false;
  std::string reason;         // no plan: why, in one sentence
  std::string found_by = {};  // the member of a portfolio that made the plan; empty: no portfolio

  [[nodiscard]] Status status() const;
  [[nodiscard]] double value() const { return plan ? plan->value : kInfinity; }
  [[nodiscard]] double gap() const { return placewright::gap(value(), certificate.lower_bound); }
};

}  // namespace placewright
