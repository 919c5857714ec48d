// `explain` and `report` of training plans.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/training_limits.h"
#include "cli/record_table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/training.h"
#include "formats/text_file.h"
#include "planning/sizes.h"
#include "report/step_page.h"
#include "verify/training.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

bool is_sound(const TrainingFile& file, const std::string& path) {
  const TrainingVerdict verdict = verify_training(file.problem, *file.answer);
  if (verdict.violations.empty()) return true;
  tell(fmt::format("placewright: {}: the plan is not valid: {} ('placewright check' lists all)\n",
                   input_name(path), printable(verdict.violations.front())));
  return false;
}

RecordTable<StageUse> use_table(const TrainingFile& file) {
  const std::vector<TrainingStage>& stages = file.answer->plan.stages;
  const auto busiest = [&](const StageUse& use) -> const StageReplica& {
    return stages[use.stage].replicas[use.busiest];
  };
  return RecordTable<StageUse>({
      {"stage", "stage", count(), [](const auto& use) { return use.stage + 1; }},
      {"busiest", "busiest group", words(),
       [&file, busiest](const auto& use) {
         return fmt::format("{} {}", busiest(use).degree,
                            pool_name(file.problem, busiest(use).pool));
       }},
      {"busy", "computes", percent(), [](const auto& use) { return use.busy; }},
      {"sends", "sends", percent(), [](const auto& use) { return use.sends; }},
      {"spare_memory", "spare memory", size(), [](const auto& use) { return use.spare_memory; }},
  });
}

RecordTable<TrainingGain> gain_table() {
  return RecordTable<TrainingGain>({
      {"what", "what", words(), [](const auto& gain) { return gain.what; }},
      {"seconds", "step", duration(), [](const auto& gain) { return gain.seconds; }},
      {"gain", "saves", percent(), [](const auto& gain) { return gain.gain; }},
  });
}

}  // namespace

std::optional<ExitCode> explain_training(const CLI::App& verb, const std::string& path, double step,
                                         const OutputOptions& output) {
  const auto file = opened_training_plan(verb, path, {"--step"}, output);
  if (!file) return std::nullopt;
  if (!is_sound(*file, path)) return ExitCode::no;
  const TrainingExplanation told = explain_training_plan(file->problem, file->answer->plan, step);
  const auto uses = use_table(*file);
  if (output.json) {
    print_json({{"seconds", told.cost.seconds},
                {"fill", told.cost.fill},
                {"steady", told.cost.steady},
                {"update", told.cost.update},
                {"all_reduce", told.cost.all_reduce},
                {"busiest_stage", told.busiest_stage + 1},
                {"work", told.work},
                {"stages", uses.json(told.stages)},
                {"gains", gain_table().json(told.gains)}});
  } else if (!output.quiet) {
    const auto part = [&](double seconds) { return 100 * seconds / told.cost.seconds; };
    fmt::print(
        "step {:.4g} s: fill and drain {:.1f} %, steady {:.1f} %, update {:.1f} %, all-reduce "
        "{:.1f} %\n",
        told.cost.seconds, part(told.cost.fill), part(told.cost.steady), part(told.cost.update),
        part(told.cost.all_reduce));
    fmt::print("GPUs compute for {:.1f} % of the step; stage {} is the busiest\n\n{}\n{}",
               100 * told.work, told.busiest_stage + 1, uses.text(told.stages),
               gain_table().text(told.gains));
  }
  return ExitCode::success;
}

std::optional<ExitCode> report_training(const CLI::App& verb, const std::vector<std::string>& paths,
                                        const std::string& written, const OutputOptions& output) {
  const std::string& path = paths.front();
  const auto file = opened_training_plan(verb, path, {"--output"}, output);
  if (!file) return std::nullopt;
  if (paths.size() > 1) throw UsageError("a report of a training plan shows one plan");
  if (!is_sound(*file, path)) return ExitCode::no;
  const std::string page = step_page(file->problem, *file->answer);
  write_whole(written, page);
  if (!output.quiet && written != "-") {
    fmt::print("{}: a step of {} stages, {}\n", written, file->answer->plan.stages.size(),
               size_text(static_cast<double>(page.size())));
  }
  return ExitCode::success;
}

}  // namespace placewright::cli
