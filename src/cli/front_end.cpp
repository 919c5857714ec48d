#include "cli/front_end.h"

#include <memory>

#include <fmt/format.h>

#include "backends/opened_models.h"
#include "formats/text_file.h"
#include "planners/settings_error.h"
#include "problem/time_unit.h"
#include "running/execution.h"

namespace placewright::cli {
namespace {

// A plan among many that are measured: fewer samples than `placewright run` takes.
constexpr int kWarmUp = 2;
constexpr int kRepeat = 10;

// Runs plans of one problem; its models are read once.
class Measurement {
 public:
  explicit Measurement(const std::atomic<bool>* interrupted) : interrupted_(interrupted) {}

  // Infinite where too many samples were disturbed.
  double operator()(const Problem& problem, const Plan& plan) {
    try {
      if (models_.empty()) models_ = models_of(problem);
      RunOptions options;
      options.warm_up = kWarmUp;
      options.repeat = kRepeat;
      options.compare = false;
      options.stop = interrupted_;
      const RunResult result = run_plan(problem, plan, models_, options);
      if (!result.value.undisturbed()) return kInfinity;
      return in_unit(result.value.median, problem.unit());
    } catch (const std::exception& error) {
      throw SettingsError(fmt::format("a plan cannot be measured: {}", error.what()));
    }
  }

 private:
  const std::atomic<bool>* interrupted_;
  std::vector<std::unique_ptr<NeuralModel>> models_;
};

}  // namespace

FrontEnd front_end(const std::atomic<bool>* interrupted) {
  // Shared, since what planners keep must be copyable.
  const auto measurement = std::make_shared<Measurement>(interrupted);
  return FrontEnd{
      .read_file = [](const std::string& path) { return read_whole(path); },
      .measure = [measurement](const Problem& problem,
                               const Plan& plan) { return (*measurement)(problem, plan); }};
}

}  // namespace placewright::cli
