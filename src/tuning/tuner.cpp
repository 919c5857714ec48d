#include "tuning/tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "backends/opened_models.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "tuning/correction.h"

namespace placewright {
namespace {

class Tuner {
 public:
  explicit Tuner(TuneRequest request) : request_(std::move(request)) {
    request_.profile.measure.stop = request_.stop;
    request_.profile.measure.progress = request_.progress;
  }

  std::optional<Tuning> run() {
    auto profile = profile_models(request_.profile);
    if (!profile) return std::nullopt;
    tuning_.profile = std::move(*profile);
    ProblemDraft draft = tuning_.profile.draft;
    if (request_.objective) draft = with_objective(std::move(draft), *request_.objective);
    while (!ended()) {
      if (!add_round(std::move(draft))) break;
      draft = tuning_.rounds.back().corrected_draft();
    }
    return std::move(tuning_);
  }

 private:
  void tell(const std::string& what) const {
    if (request_.progress) request_.progress(what);
  }

  // Plans and runs; false: there is no such round, and `ending` says why.
  bool add_round(ProblemDraft draft) {
    const std::size_t number = tuning_.rounds.size() + 1;
    TuningRound round{Problem(std::move(draft)), {}, {}};
    tell(fmt::format("round {}: planning", number));
    round.outcome = make_plan(round.problem, planning_registry(), request_.plan, request_.stop);
    const Answer& answer = round.outcome.answer;
    if (!answer.plan) {
      tuning_.ending = fmt::format("{}: {}", name_of(answer.status()), answer.reason);
      return false;
    }
    RunOptions run;
    run.repeat = static_cast<int>(request_.profile.measure.repeat);
    run.stop = request_.stop;
    run.progress = [&](double done) {
      tell(fmt::format("round {}: running {:.0f} %", number, 100 * done));
    };
    const auto models = models_of(round.problem);
    round.result = run_plan(round.problem, *answer.plan, models, run);
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
  for (const TuningRound& round : rounds) {
    if (!round.valid() || !round.result.outputs.equal()) continue;
    if (best == nullptr || round.measured() < best->measured()) best = &round;
  }
  return best;
}

std::optional<Tuning> tune(TuneRequest request) {
  return Tuner(std::move(request)).run();
}

}  // namespace placewright
