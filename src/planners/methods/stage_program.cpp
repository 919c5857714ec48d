#include "planners/methods/stage_program.h"

#include <algorithm>
#include <cmath>

#include "bounds/rounding.h"
#include "evaluate/memory.h"
#include "planners/methods/cp_sat_limits.h"
#include "solvers/cp_sat.h"

namespace placewright::throughput {
namespace {

using solvers::CpExpression;
using solvers::CpLiteral;
using solvers::CpVariable;

class StageProgram {
 public:
  StageProgram(const StageModel& model, double lowest, double highest)
      : model_(model), scale_(kTimeSteps / std::max(highest, 1e-300)) {
    for (const DeviceClass& device_class : model.classes()) places_ += device_class.devices.size();
    add_blocks();
    add_classes();
    const auto most = static_cast<std::int64_t>(std::ceil(highest * scale_)) + 1;
    // What rounding down may take from a load.
    const auto lost = static_cast<std::int64_t>(model.block_count() + 2 * model.nets().size()) + 1;
    const auto least = static_cast<std::int64_t>(lowest * scale_) - lost;
    value_ = program_.add_integer(std::clamp<std::int64_t>(least, 0, most), most);
    for (std::size_t place = 0; place < places_; ++place) add_place(place);
    program_.minimize(value_);
  }

  void start_from(const Plan& plan) {
    std::size_t place = 0;
    for (const Stage& stage : plan.stages) {
      for (const OpId op : stage.ops) {
        const std::size_t block = model_.blocks().block_of[op].index();
        for (std::size_t s = 0; s < places_; ++s) {
          program_.set_hint(here_[block * places_ + s], s == place ? 1 : 0);
        }
      }
      if (++place == places_) return;
    }
  }

  [[nodiscard]] StageProgramResult solve(Control& control) const {
    solvers::CpLimits limits = cp_sat_limits(control);
    limits.linearization_level = 0;
    limits.presolve = false;  // finds little here, and its time is better spent in the search
    const solvers::CpResult found = solvers::cp_sat_solve(program_, limits);
    StageProgramResult result;
    if (found.status == solvers::CpStatus::error) result.error = "CP-SAT: " + found.error;
    result.infeasible = found.status == solvers::CpStatus::infeasible;
    if (found.has_solution()) result.split = split_of(found);
    if (std::isfinite(found.best_bound)) {
      result.lower_bound = safe_sum(found.best_bound / scale_);
    }
    return result;
  }

 private:
  void add_blocks() {
    const std::size_t count = model_.block_count();
    after_.resize(count * (places_ + 1));
    here_.resize(count * places_);
    for (std::size_t v = 0; v < count; ++v) {
      for (std::size_t s = 0; s <= places_; ++s) {
        const std::int64_t fixed = s == 0 ? 1 : 0;
        const bool free = s > 0 && s < places_;
        after(v, s) = free ? program_.add_bool() : program_.add_integer(fixed, fixed);
      }
      for (std::size_t s = 0; s + 2 <= places_; ++s) implies(after(v, s + 1), after(v, s));
      std::vector<CpLiteral> places;
      for (std::size_t s = 0; s < places_; ++s) {
        here_[v * places_ + s] = program_.add_bool();
        places.push_back(here(v, s));
        program_.add_linear(
            CpExpression({{here(v, s), 1}, {after(v, s), -1}, {after(v, s + 1), 1}}, 0), {0, 0});
      }
      program_.add_exactly_one(places);
    }
    for (std::size_t v = 0; v < count; ++v) {
      for (const BlockId next : model_.blocks().successors[BlockId{v}]) {
        for (std::size_t s = 1; s < places_; ++s) implies(after(v, s), after(next.index(), s));
      }
    }
  }

  // Which class works at which place; nothing to choose where there is one class.
  void add_classes() {
    const std::size_t count = model_.classes().size();
    if (count == 1) return;
    works_.resize(count * places_);
    for (CpVariable& variable : works_) variable = program_.add_bool();
    for (std::size_t s = 0; s < places_; ++s) {
      std::vector<CpLiteral> choice;
      for (std::size_t c = 0; c < count; ++c) choice.push_back(works_[c * places_ + s]);
      program_.add_exactly_one(choice);
    }
    for (std::size_t c = 0; c < count; ++c) {
      CpExpression sum;
      for (std::size_t s = 0; s < places_; ++s) sum.terms.push_back({works_[c * places_ + s], 1});
      const auto devices = static_cast<std::int64_t>(model_.classes()[c].devices.size());
      program_.add_linear(sum, {devices, devices});
    }
  }

  [[nodiscard]] std::vector<CpLiteral> if_works(std::size_t device_class, std::size_t place) const {
    if (works_.empty()) return {};
    return {works_[device_class * places_ + place]};
  }

  // Transfers of one place, the same variables for all classes.
  struct Moves {
    std::vector<CpVariable> in;
    std::vector<CpVariable> out;
  };

  void add_place(std::size_t place) {
    Moves moves;
    for (const Net& net : model_.nets()) {
      moves.in.push_back(program_.add_bool());
      moves.out.push_back(program_.add_bool());
      const CpLiteral made = here(net.producer, place);
      for (const NetReader& reader : net.readers) {
        const CpLiteral read = here(reader.block, place);
        program_.add_bool_or(std::vector<CpLiteral>{moves.out.back(), !made, read});
        program_.add_bool_or(std::vector<CpLiteral>{moves.in.back(), !read, made});
      }
    }
    const std::vector<CpVariable> held = add_weights(place);
    for (std::size_t c = 0; c < model_.classes().size(); ++c) {
      add_loads(c, place, moves);
      add_memory(c, place, held);
    }
  }

  void add_loads(std::size_t device_class, std::size_t place, const Moves& moves) {
    const DeviceClass& own = model_.classes()[device_class];
    const std::vector<CpLiteral> works = if_works(device_class, place);
    CpExpression compute;
    CpExpression in;
    CpExpression out;
    for (std::size_t v = 0; v < model_.block_count(); ++v) {
      if (own.allowed[v] == 0) {
        std::vector<CpLiteral> never{!CpLiteral(here(v, place))};
        program_.add_bool_or(never, works);
        continue;
      }
      add_term(compute, here(v, place), own.forward[v] + own.backward[v]);
    }
    if (own.profile >= 0) {
      const auto profile = static_cast<std::size_t>(own.profile);
      for (std::uint32_t e = 0; e < model_.nets().size(); ++e) {
        const NetCost& cost = model_.cost(e, profile);
        add_term(compute, moves.in[e], cost.receive);
        add_term(compute, moves.out[e], cost.send);
        add_term(in, moves.in[e], cost.in);
        add_term(out, moves.out[e], cost.out);
      }
    }
    switch (model_.problem().rules().transfers) {
      case TransferMode::sequential:
        limit({&compute, &in, &out}, works);
        break;
      case TransferMode::overlapped:
        limit({&compute}, works);
        limit({&in, &out}, works);
        break;
      case TransferMode::duplex:
        limit({&compute}, works);
        limit({&in}, works);
        limit({&out}, works);
        break;
    }
  }

  void limit(std::initializer_list<const CpExpression*> parts,
             const std::vector<CpLiteral>& works) {
    CpExpression sum;
    for (const CpExpression* part : parts) {
      sum.terms.insert(sum.terms.end(), part->terms.begin(), part->terms.end());
    }
    if (sum.terms.empty()) return;
    sum.terms.push_back({value_, -1});
    program_.add_linear(sum, {solvers::kCpMinimum, 0}, works);
  }

  [[nodiscard]] std::vector<CpVariable> add_weights(std::size_t place) {
    std::vector<CpVariable> held;
    for (const StageModel::Weight& weight : model_.weights()) {
      held.push_back(program_.add_bool());
      for (const std::uint32_t block : weight.blocks) implies(here(block, place), held.back());
    }
    return held;
  }

  void add_memory(std::size_t device_class, std::size_t place,
                  const std::vector<CpVariable>& held) {
    const double memory = model_.classes()[device_class].memory;
    if (memory == kInfinity) return;
    const double unit = std::max(1.0, memory) / kByteSteps;
    CpExpression sum;
    const auto add_bytes = [&](CpVariable variable, double bytes) {
      const auto units = static_cast<std::int64_t>(std::min(bytes / unit, 2 * kByteSteps));
      if (units > 0) sum.terms.push_back({variable, units});
    };
    for (std::size_t v = 0; v < model_.block_count(); ++v) {
      add_bytes(here(v, place), model_.bytes(v));
    }
    for (std::size_t w = 0; w < held.size(); ++w) add_bytes(held[w], model_.weights()[w].bytes);
    if (sum.terms.empty()) return;
    const auto most = static_cast<std::int64_t>(std::ceil(memory / unit * (1 + kMemoryTolerance)));
    program_.add_linear(sum, {solvers::kCpMinimum, most}, if_works(device_class, place));
  }

  void add_term(CpExpression& sum, CpVariable variable, double time) const {
    const auto units = static_cast<std::int64_t>(std::min(time * scale_, 4 * kTimeSteps));
    if (units > 0) sum.terms.push_back({variable, units});
  }

  void implies(CpLiteral cause, CpLiteral effect) {
    program_.add_bool_or(std::vector<CpLiteral>{!cause, effect});
  }

  [[nodiscard]] Split split_of(const solvers::CpResult& found) const {
    Split split;
    for (std::size_t s = 0; s < places_; ++s) {
      SplitStage stage;
      for (std::uint32_t v = 0; v < model_.block_count(); ++v) {
        if (found.value(here(v, s)) != 0) stage.blocks.push_back(v);
      }
      if (stage.blocks.empty()) continue;
      std::size_t device_class = 0;
      while (!works_.empty() && found.value(works_[device_class * places_ + s]) == 0) {
        ++device_class;
      }
      stage.devices = {device_class};
      split.stages.push_back(std::move(stage));
    }
    return split;
  }

  CpVariable& after(std::size_t block, std::size_t place) {
    return after_[block * (places_ + 1) + place];
  }
  [[nodiscard]] CpVariable here(std::size_t block, std::size_t place) const {
    return here_[block * places_ + place];
  }

  const StageModel& model_;
  double scale_;
  std::size_t places_ = 0;
  solvers::CpModel program_;
  std::vector<CpVariable> after_;  // block x place, and one place beyond the last
  std::vector<CpVariable> here_;   // block x place
  std::vector<CpVariable> works_;  // class x place; empty: one class
  CpVariable value_;
};

}  // namespace

std::string refuses_stage_program(const StageModel& model) {
  if (!model.exact()) return "its program has no links of unequal speed";
  if (model.phased()) return "its program does not know phased training";
  if (model.max_replicas() > 1) return "its program has no replicas";
  if (!solvers::cp_sat_available()) {
    return "CP-SAT cannot be loaded: " + solvers::cp_sat_load_error();
  }
  return {};
}

StageProgramResult solve_stage_program(const StageModel& model, double lowest, double highest,
                                       const Plan* start, Control& control) {
  StageProgram program(model, lowest, highest);
  if (start != nullptr) program.start_from(*start);
  return program.solve(control);
}

}  // namespace placewright::throughput
