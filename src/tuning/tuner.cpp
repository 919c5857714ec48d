#include "tuning/tuner.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "backends/opened_models.h"
#include "backends/target_devices.h"
#include "evaluate/cost_model.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "planning/uncut_plan.h"
#include "running/turns.h"
#include "running/uncut_setting.h"
#include "tuning/correction.h"

namespace placewright {
namespace {

// The same costs for devices whose threads the backend binds, or does not bind if it does so far.
// Nullopt if these devices have not all cores of the process, or if the problem has the others too.
std::optional<ProblemDraft> bound_otherwise(const ProblemDraft& costs,
                                            const std::vector<DeviceId>& devices) {
  std::vector<Target> targets;
  for (const DeviceId device : devices) {
    targets.push_back(target_named(costs.cluster.devices[device.index()].name));
  }
  const auto all = targets.size() == 1 ? std::optional(targets.front()) : joined(targets);
  if (!all || all->cores != allowed_cores()) return std::nullopt;
  ProblemDraft others = costs;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    targets[i].pinned = !targets[i].pinned;
    const std::string name = name_of(targets[i]);
    const auto& known = costs.cluster.devices;
    if (std::ranges::find(known, name, &Device::name) != known.end()) return std::nullopt;
    others.cluster.devices[devices[i].index()].name = name;
  }
  return others;
}

TuningRound uncut_round(ProblemDraft costs, Plan plan) {
  TuningRound round{Problem(std::move(costs)), {}, {}, true};
  round.outcome.planner = "single";
  round.outcome.answer.plan = std::move(plan);
  return round;
}

class Tuner {
 public:
  explicit Tuner(TuneRequest request) : request_(std::move(request)) {}

  Tuning run(ProblemDraft costs) {
    while (!ended()) {
      if (!add_round(std::move(costs))) break;
      costs = tuning_.rounds.back().corrected_draft();
    }
    if (!tuning_.interrupted && !tuning_.rounds.empty()) play_final();
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

  void play_final() {
    constexpr int kAttempts = 3;
    std::vector<TuningRound> finalists = uncut_finalists(tuning_.rounds.back().corrected_draft());
    const TuningRound* cut = fastest_other_round();
    if (cut == nullptr && finalists.empty()) cut = &tuning_.rounds.back();
    if (cut != nullptr) {
      finalists.push_back({Problem(cut->problem.draft()), cut->outcome, {}, cut->uncut});
    }
    const auto models = models_of(finalists.front().problem);
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (!run_in_turns(finalists, models)) return interrupt();
      const bool disturbed = std::ranges::any_of(
          finalists, [](const TuningRound& round) { return !round.out && !round.valid(); });
      if (!disturbed) break;
    }
    tuning_.finalists = std::move(finalists);
  }

  // Of those whose measurement is valid, if any is: the final measures again.
  [[nodiscard]] const TuningRound* fastest_other_round() const {
    const TuningRound* fastest = nullptr;
    const auto rank = [](const TuningRound& round) {
      return std::pair(!round.valid(), round.measured());
    };
    for (const TuningRound& round : tuning_.rounds) {
      if (round.uncut || !round.result.outputs.equal()) continue;
      if (fastest == nullptr || rank(round) < rank(*fastest)) fastest = &round;
    }
    return fastest;
  }

  void tell_turn(int turn) const {
    const std::string most =
        turn < kTurns ? fmt::to_string(kTurns) : fmt::format("at most {}", kMostTurns);
    tell(fmt::format("final measurement: turn {} of {}", turn + 1, most));
  }

  // False: interrupted.
  bool run_in_turns(std::vector<TuningRound>& finalists,
                    const std::vector<std::unique_ptr<NeuralModel>>& models) {
    std::vector<std::optional<LoadedPlan>> loaded;  // nullopt: out
    std::vector<std::vector<RunResult>> results(finalists.size());
    std::vector<Contender> contenders;
    for (std::size_t i = 0; i < finalists.size(); ++i) {
      TuningRound& round = finalists[i];
      round.out = false;
      const Plan& plan = *round.outcome.answer.plan;
      const RunOptions options = one_turn_of(
          {.repeat = request_.repeat, .at_least = request_.at_least, .stop = request_.stop}, plan);
      loaded.emplace_back(std::in_place, round.problem, plan, models, options);
      const auto measure = [&, i](int turn) {
        tell_turn(turn);
        return take_turn(*loaded[i], results[i]);
      };
      const auto release = [&, i] {
        finalists[i].out = true;
        loaded[i].reset();
      };
      contenders.push_back({measure, release});
    }
    const Problem& problem = finalists.front().problem;
    const RunOptions options = one_turn_of(
        {.repeat = request_.repeat, .at_least = request_.at_least, .stop = request_.stop}, Plan{});
    std::vector<UncutSetting> hints;
    if (models.size() == 1) hints = hint_settings(problem, *models.front());
    const bool pipeline = problem.objective() == Objective::throughput;
    for (UncutSetting& hint : hints) contenders.push_back(hint.contender(options, pipeline));
    if (!compare_in_turns(contenders)) return false;
    tuning_.hints.clear();
    for (const UncutSetting& hint : hints) tuning_.hints.push_back(hint.baseline(pipeline));
    for (std::size_t i = 0; i < finalists.size(); ++i) {
      finalists[i].result = over_turns(std::move(results[i]));
    }
    return true;
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
    round.uncut = is_uncut(*round.outcome.answer.plan) &&
                  round.result.segments.size() == round.problem.model_count();
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
      tuning_.ending = "three rounds made the same placement";
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

std::vector<TuningRound> uncut_finalists(const ProblemDraft& costs) {
  std::vector<TuningRound> rounds;
  double fastest = kInfinity;
  const Problem problem(costs);
  for (std::size_t kind = 0; kind < problem.kind_count(); ++kind) {
    std::optional<Plan> plan = uncut_plan(problem, KindId{kind});
    if (!plan) continue;
    fastest = std::min(fastest, plan->value);
    std::optional<ProblemDraft> otherwise = bound_otherwise(costs, devices_of_uncut(*plan));
    rounds.push_back(uncut_round(costs, *plan));
    if (otherwise) rounds.push_back(uncut_round(std::move(*otherwise), std::move(*plan)));
  }
  std::erase_if(rounds,
                [&](const TuningRound& round) { return round.predicted() > kNoRival * fastest; });
  return rounds;
}

ProblemDraft TuningRound::corrected_draft() const {
  std::vector<std::optional<double>> times;
  for (const Measured& time : result.segment_times) {
    times.push_back(time.kept > 0 ? std::optional(time.median) : std::nullopt);
  }
  return corrected(problem, result.segments, times);
}

TuningRound TuningRound::with_corrected_costs() const {
  ProblemDraft costs = corrected_draft();
  TuningRound same = under(costs);
  if (!valid() || same.predicted() <= 0) return same;
  const double factor = measured() / same.predicted();
  for (Op& op : costs.ops) {
    for (double& time : op.time) time *= factor;
  }
  return under(std::move(costs));
}

TuningRound TuningRound::under(ProblemDraft costs) const {
  TuningRound same{Problem(std::move(costs)), outcome, result, uncut};
  Plan& plan = *same.outcome.answer.plan;
  plan = *cost_model(same.problem).in_the_shape_of(plan, same.problem, plan.placement);
  same.outcome.answer.certificate = {};
  return same;
}

const TuningRound* Tuning::uncut() const {
  const TuningRound* fastest = nullptr;
  for (const TuningRound& round : finalists) {
    if (!round.uncut) continue;
    const auto rank = [](const TuningRound& each) { return std::pair(each.out, each.measured()); };
    if (fastest == nullptr || rank(round) < rank(*fastest)) fastest = &round;
  }
  return fastest;
}

const TuningRound* Tuning::best() const {
  if (finalists.empty()) return nullptr;
  const TuningRound& cut = finalists.back();
  const TuningRound* whole = uncut();
  if (cut.uncut || whole == nullptr) return whole == nullptr ? &cut : whole;
  const bool faster = !cut.out && cut.valid() && whole->valid() && cut.result.outputs.equal() &&
                      cut.measured() < (1 - kLeastGain) * whole->measured();
  return faster ? &cut : whole;
}

const Baseline* Tuning::faster_hint() const {
  const TuningRound* kept = best();
  if (kept == nullptr || !kept->valid()) return nullptr;
  const bool pipeline = kept->problem.objective() == Objective::throughput;
  const Baseline* fastest = nullptr;
  double least = (1 - 2 * kLeastGain) * kept->measured();  // not told apart turn by turn
  for (const Baseline& hint : hints) {
    const Measured& time = pipeline ? hint.per_sample : hint.latency;
    if (!time.valid() || time.median >= least) continue;
    least = time.median;
    fastest = &hint;
  }
  return fastest;
}

Tuning tune(ProblemDraft costs, TuneRequest request) {
  return Tuner(std::move(request)).run(std::move(costs));
}

}  // namespace placewright
