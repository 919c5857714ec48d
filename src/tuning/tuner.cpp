#include "tuning/tuner.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "backends/opened_models.h"
#include "evaluate/pipeline.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "tuning/correction.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

// The whole model as one stage on all devices of a kind, of the kinds where that is a valid plan the
// fastest. Of other objectives than throughput there is none.
std::optional<Plan> replicated(const Problem& problem) {
  if (problem.objective() != Objective::throughput) return std::nullopt;
  const auto& order = problem.topological_order();
  std::optional<Plan> best;
  for (std::size_t kind = 0; kind < problem.kind_count(); ++kind) {
    Stage stage{.devices = {}, .ops = {order.begin(), order.end()}};
    for (const DeviceId device : problem.devices()) {
      if (problem.kind_of(device) == KindId{kind}) stage.devices.push_back(device);
    }
    if (stage.devices.empty()) continue;
    Plan plan = pipeline_plan(problem, std::vector{std::move(stage)});
    if (best && best->value <= plan.value) continue;
    if (verify(problem, plan).empty()) best = std::move(plan);
  }
  return best;
}

class Tuner {
 public:
  explicit Tuner(TuneRequest request) : request_(std::move(request)) {}

  Tuning run(ProblemDraft costs) {
    while (!ended()) {
      if (!add_round(std::move(costs))) break;
      costs = tuning_.rounds.back().corrected_draft();
    }
    if (!tuning_.interrupted && !tuning_.rounds.empty()) add_uncut_round();
    return std::move(tuning_);
  }

 private:
  void tell(const std::string& what) const {
    if (request_.progress) request_.progress(what);
  }

  // Plans and runs; false: there is no such round, and `ending` says why.
  bool add_round(ProblemDraft costs) {
    const std::size_t number = tuning_.rounds.size() + 1;
    TuningRound round{Problem(std::move(costs)), {}, {}};
    tell(fmt::format("round {}: planning", number));
    round.outcome = make_plan(round.problem, planning_registry(), request_.plan, request_.stop);
    const Answer& answer = round.outcome.answer;
    if (!answer.plan) {
      tuning_.ending = fmt::format("{}: {}", name_of(answer.status()), answer.reason);
      return false;
    }
    return measure(std::move(round), fmt::format("round {}", number));
  }

  // With the costs as they are after the last round, unless the model was uncut already. Whether cuts
  // pay is not known without it, so it is tried again if others disturbed it.
  void add_uncut_round() {
    constexpr int kAttempts = 3;
    for (TuningRound& round : tuning_.rounds) round.uncut = round.result.segments.size() == 1;
    for (int attempt = 0; attempt < kAttempts && tuning_.uncut() == nullptr; ++attempt) {
      TuningRound round{Problem(tuning_.rounds.back().corrected_draft()), {}, {}, true};
      const std::optional<Plan> start = replicated(round.problem);
      PlanRequest request = request_.plan;
      request.planner = "single";
      if (start) request.start = &*start;
      round.outcome = make_plan(round.problem, planning_registry(), request, request_.stop);
      if (!round.outcome.answer.plan || !measure(std::move(round), "the model uncut")) return;
    }
  }

  // Runs the plan of a round and keeps it; false: it was interrupted.
  bool measure(TuningRound round, const std::string& what) {
    RunOptions run;
    run.repeat = request_.repeat;
    run.stop = request_.stop;
    run.progress = [&](double done) {
      tell(fmt::format("{}: running {:.0f} %", what, 100 * done));
    };
    const auto models = models_of(round.problem);
    round.result = run_plan(round.problem, *round.outcome.answer.plan, models, run);
    if (round.result.interrupted) {
      interrupt();
      return false;
    }
    tuning_.rounds.push_back(std::move(round));
    return true;
  }

  void interrupt() {
    tuning_.interrupted = true;
    tuning_.ending = "interrupted";
  }

  // Whether no further round is wanted; then `ending` says why.
  bool ended() {
    if (agrees()) {
      tuning_.ending =
          fmt::format("predicted and measured agree within {:.0f} %", 100 * kAgreement);
    } else if (repeats()) {
      tuning_.ending = "the same placement comes again";
    } else if (request_.stop != nullptr && request_.stop->load()) {
      interrupt();
    } else if (tuning_.rounds.size() >= request_.rounds) {
      tuning_.ending = "all rounds are done";
    }
    return !tuning_.ending.empty();
  }

  [[nodiscard]] bool agrees() const {
    if (tuning_.rounds.empty()) return false;
    const TuningRound& last = tuning_.rounds.back();
    return last.valid() && std::abs(last.error()) <= kAgreement;
  }

  // A placement that comes again once may still have got other costs by the correction; one that
  // comes a third time will not change.
  [[nodiscard]] bool repeats() const {
    if (tuning_.rounds.empty()) return false;
    const auto placement = [](const TuningRound& round) -> const Placement& {
      return round.outcome.answer.plan->placement;
    };
    const Placement& last = placement(tuning_.rounds.back());
    return std::count_if(tuning_.rounds.begin(), tuning_.rounds.end(),
                         [&](const TuningRound& round) { return placement(round) == last; }) >= 3;
  }

  TuneRequest request_;
  Tuning tuning_;
};

}  // namespace

ProblemDraft TuningRound::corrected_draft() const {
  std::vector<std::optional<double>> times;
  for (const Measured& time : result.segment_times) {
    times.push_back(time.kept > 0 ? std::optional(time.median) : std::nullopt);
  }
  return corrected(problem, result.segments, times);
}

const TuningRound* Tuning::best() const {
  const TuningRound* best = nullptr;
  const auto judged = [](const TuningRound& round) {
    return round.measured() * (round.uncut ? 1 - kLeastGain : 1);
  };
  for (const TuningRound& round : rounds) {
    if (!round.valid() || !round.result.outputs.equal()) continue;
    if (best == nullptr || judged(round) < judged(*best)) best = &round;
  }
  return best;
}

const TuningRound* Tuning::uncut() const {
  const auto found = std::ranges::find_if(
      rounds, [](const TuningRound& round) { return round.uncut && round.valid(); });
  return found == rounds.end() ? nullptr : &*found;
}

Tuning tune(ProblemDraft costs, TuneRequest request) {
  return Tuner(std::move(request)).run(std::move(costs));
}

}  // namespace placewright
