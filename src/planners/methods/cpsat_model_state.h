// The inside of ScheduleModel (cpsat_model.h), for the files that build it, start it and read it:
//
//   cpsat_model.cpp            literals, precedence, solving
//   cpsat_model_ops.cpp        devices, lengths, resources, memory, objective
//   cpsat_model_transfers.cpp  the ways that tensors take
//   cpsat_model_symmetries.cpp equal devices, and what follows from a known value
//   cpsat_model_hint.cpp       a schedule as a point of the model

#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bounds/forced_company.h"
#include "planners/methods/cpsat_model.h"
#include "planners/methods/time_grid.h"
#include "solvers/cp_sat.h"

namespace placewright {

class ScheduleModel::State {
 public:
  using CpExpression = solvers::CpExpression;
  using CpInterval = solvers::CpInterval;
  using CpLiteral = solvers::CpLiteral;
  using CpVariable = solvers::CpVariable;
  using Units = std::int64_t;

  State(const Problem& problem, ScheduleScope scope, double at_most);

  void hint(const Placement& placement, const Schedule& schedule);
  void limit_objective(solvers::CpRange range) { model_.add_linear(objective_, range); }
  void require_below(double value) {
    limit_objective({solvers::kCpMinimum, objective_units(value) - 1});
  }
  // Weights may have a common divisor, which the solver would round up to.
  void require_at_least(double bound) {
    limit_objective({objective_units(bound) - (heaviest_ - 1), solvers::kCpMaximum});
  }
  ScheduleSolution solve(const ScheduleLimits& limits) const;
  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(model_.variables() + model_.constraints());
  }

 private:
  struct Choice {
    DeviceId device;
    CpLiteral here;
  };
  // The devices of a memory space that a group may run on, together.
  struct Place {
    SpaceId space;
    CpLiteral here;
  };
  // What lengthens an op, where it is paid.
  struct Overhead {
    CpLiteral paid;
    DeviceId device;
    Units time = 0;
  };
  struct OpVariables {
    CpVariable start;
    CpExpression length;
    CpExpression end;
    std::vector<Overhead> overheads;
    std::optional<CpVariable> length_variable;
    std::optional<CpVariable> end_variable;
  };
  // `later` starts after `earlier` where all conditions hold.
  struct Precedence {
    CpExpression earlier;
    std::vector<CpLiteral> conditions;
  };
  // A way a tensor may take.
  struct Route {
    TensorId tensor;
    Leg leg = Leg::direct;
    SpaceId from;
    SpaceId to;
    CpLiteral taken;
    Units length = 0;
  };
  // Routes of which at most one is taken, with the variable for its start.
  struct Sending {
    CpVariable start;
    TensorId tensor;
    Leg leg = Leg::direct;
    std::vector<Route> routes;
  };
  using Values = std::vector<std::int64_t>;

  class MemoryGrid;

  // Building blocks.
  static CpExpression plus(CpExpression sum, const CpExpression& other, Units factor = 1);
  [[nodiscard]] bool inside(OpId op) const { return inside_[op] != 0; }
  [[nodiscard]] bool is_true(CpLiteral literal) const { return literal.code() == yes_.code(); }
  [[nodiscard]] bool is_false(CpLiteral literal) const { return literal.code() == (!yes_).code(); }
  [[nodiscard]] CpLiteral on(OpId op, DeviceId device) const;
  [[nodiscard]] CpLiteral in(OpId op, SpaceId space) const;
  [[nodiscard]] std::span<const Choice> choices(OpId op) const {
    return choices_[problem_.group(op)];
  }
  [[nodiscard]] std::span<const Place> places(OpId op) const { return places_[problem_.group(op)]; }
  // Of which one holds when the op is in the device's space, but not on the device.
  [[nodiscard]] std::vector<CpLiteral> beside(OpId op, DeviceId device) const;
  void add_term(CpExpression& sum, CpLiteral literal, Units factor) const;
  void add_clause(std::vector<CpLiteral> literals);
  CpLiteral both(CpLiteral a, CpLiteral b);
  CpLiteral any(std::vector<CpLiteral> literals);
  CpVariable add_time(Units from);
  void follow(CpVariable later, CpExpression earlier, std::vector<CpLiteral> conditions = {});
  void reach(OpId reader, const CpExpression& arrival, std::vector<CpLiteral> conditions = {});
  [[nodiscard]] CpExpression end_of(OpId op) const;
  [[nodiscard]] Units move(TensorId tensor, DeviceId from, DeviceId to) const;
  [[nodiscard]] bool reachable(TensorId tensor, SpaceId from, SpaceId to) const {
    return problem_.reachable(tensor, member_[from], member_[to]);
  }
  [[nodiscard]] bool on_host(SpaceId space) const {
    return member_[space].valid() && problem_.on_host(member_[space]);
  }

  // The model, step by step.
  struct Extent;
  void measure_ops(Extent& extent) const;
  void measure_tensors(Extent& extent) const;
  void add_horizon(double at_most);
  void add_choices();
  void add_places(GroupId group);
  void add_starts();
  void add_objective();
  void add_heads();
  void add_tails();
  void add_routes(TensorId tensor);
  void add_direct(TensorId tensor, SpaceId from, SpaceId to, CpLiteral taken);
  void add_send_overheads(TensorId tensor, std::span<const OpId> readers);
  void add_receive_overhead(TensorId tensor, std::vector<OpId> readers, DeviceId device);
  void add_links(TensorId tensor, std::span<const OpId> readers);
  void add_link_edge(TensorId tensor, OpId reader);
  [[nodiscard]] std::optional<Units> time_anywhere(TensorId tensor, OpId reader) const;
  CpLiteral share_a_space(OpId a, OpId b);
  void add_paid_edge(TensorId tensor, OpId reader, Units time);
  void add_symmetries();
  [[nodiscard]] bool is_whole() const;
  void add_company(double at_most);
  [[nodiscard]] Units units_or_never(const std::vector<double>& times, OpId op,
                                     DeviceId device) const;
  void hint_as_it_is(const Placement& placement, const Schedule& schedule);
  [[nodiscard]] Table<DeviceId, DeviceId> renamed(const Placement& placement) const;
  void add_host(TensorId tensor, std::span<const OpId> readers);
  void add_lengths();
  void add_compute();
  void add_movements();
  void move_by_links(const std::vector<OpId>& readers, TensorId tensor);
  void move_by_host(const std::vector<OpId>& readers, TensorId tensor);
  void occupy_ports(const Sending& sending);
  void add_resources();
  void add_shared_resources();
  void add_pool();
  void add_pool_work(Units capacity);
  void pay(OpId op, const Overhead& overhead);
  [[nodiscard]] Units pool_demand(OpId op, DeviceId device) const;
  void add_work();
  void add_memory();
  void add_shared_weights(Table<SpaceId, CpExpression>& load, const MemoryGrid& grid);
  void add_after();
  [[nodiscard]] Units after_op(DeviceId device) const;
  [[nodiscard]] Units after_transfer(Facility port, SpaceId space) const;
  [[nodiscard]] std::vector<OpId> readers_of(TensorId tensor) const;
  [[nodiscard]] bool touches(TensorId tensor) const;
  [[nodiscard]] CpVariable completion(OpId op) const {
    return completions_[latency_ ? 0 : problem_.op(op).model.index()];
  }

  // Objective <-> time.
  [[nodiscard]] Units objective_units(double value) const {
    return grid_.units((value + arrived_) * weight_scale_);
  }
  [[nodiscard]] double value_of(double objective) const {
    return grid_.time(objective) / weight_scale_ - arrived_;
  }
  // Of two large sums little may be left but rounding, which is no bound.
  [[nodiscard]] double bound_of(double objective) const {
    return std::max(0.0, grid_.time(objective) / weight_scale_ - arrived_at_most_);
  }

  // Hints.
  struct Activity {
    double start = 0;      // in the schedule that gives the hint
    std::size_t rank = 0;  // breaks ties in the direction of the graph
    OpId op;               // or
    const Sending* sending = nullptr;
  };
  [[nodiscard]] static std::int64_t value(const Values& values, CpLiteral literal);
  [[nodiscard]] static std::int64_t value(const Values& values, const CpExpression& sum);
  [[nodiscard]] Units earliest(const Values& values, CpVariable variable) const;
  [[nodiscard]] std::vector<Activity> activities_in_order(const Schedule& schedule) const;
  void time_activities(Values& values, const Schedule& schedule) const;

  const Problem& problem_;
  ScheduleScope scope_;
  bool latency_;
  bool congestion_;
  bool overheads_ = false;
  TimeGrid grid_;
  double weight_scale_ = 1;
  Units heaviest_ = 1;          // factor of a completion in the objective
  double arrived_ = 0;          // sum of weight x arrival: what the objective does not count
  double arrived_at_most_ = 0;  // the same however it is rounded, on the grid too
  Units horizon_ = 0;

  solvers::CpModel model_;
  CpLiteral yes_;
  Table<OpId, char> inside_;
  std::vector<OpId> order_;          // ops inside, in topological order
  Table<SpaceId, DeviceId> member_;  // one device of each: links are the same for all
  Table<GroupId, std::vector<Choice>> choices_;
  Table<GroupId, std::vector<Place>> places_;
  Table<OpId, OpVariables> ops_;
  Table<OpId, std::vector<Units>> heads_;  // by choice
  Table<OpId, std::vector<Units>> tails_;
  std::map<std::pair<GroupId, GroupId>, std::vector<CpLiteral>> pairs_;
  std::map<std::pair<GroupId, GroupId>, CpLiteral> same_;
  std::optional<CompanyFacts> facts_;         // of all ops, about what is not above `at_most`
  std::vector<std::vector<DeviceId>> alike_;  // devices of which any two may be exchanged
  std::vector<TensorId> tensors_;             // that touch the scope
  Table<TensorId, std::vector<Route>> routes_;
  std::vector<Sending> sendings_;
  Table<DeviceId, std::vector<CpInterval>> compute_;
  Table<DeviceId, std::vector<OpId>> computing_;  // whose intervals those are, where they are ops
  Table<SpaceId, std::vector<CpInterval>> out_;
  Table<SpaceId, std::vector<CpInterval>> in_;
  std::vector<CpVariable> completions_;
  CpExpression objective_;

  std::vector<std::vector<Precedence>> precedences_;  // by variable that starts later
  std::vector<std::pair<CpVariable, std::function<bool(const Values&)>>> derived_;
};

}  // namespace placewright
