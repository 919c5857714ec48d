// What the verbs do with files of training on clusters (formats/training_file.h). Each function
// answers nothing if the file is of another kind, so that the verb goes on with its own. An option
// of `verb` that means nothing for these files is a UsageError.

#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_code.h"
#include "cli/output_options.h"
#include "formats/training_file.h"

namespace placewright::cli {

// A training plan, if the file is one; `known` are the verb's options that mean something for it.
std::optional<TrainingFile> opened_training_plan(const CLI::App& verb, const std::string& path,
                                                 std::initializer_list<std::string_view> known,
                                                 const OutputOptions& output);

std::optional<ExitCode> check_training(const CLI::App& verb, const std::string& path,
                                       const OutputOptions& output);
std::optional<ExitCode> simulate_training(const CLI::App& verb, const std::string& path,
                                          const OutputOptions& output);
// `explain PLAN`; `step`: how much faster things become, as a fraction.
std::optional<ExitCode> explain_training(const CLI::App& verb, const std::string& path, double step,
                                         const OutputOptions& output);
// `report PLAN -o PAGE`, of one plan.
std::optional<ExitCode> report_training(const CLI::App& verb, const std::vector<std::string>& paths,
                                        const std::string& written, const OutputOptions& output);
// `plan PROBLEM`: the plan goes to `written` if that is not empty.
std::optional<ExitCode> plan_training_problem(const CLI::App& verb, const std::string& path,
                                              double seconds, const std::string& written,
                                              const OutputOptions& output);

// `whatif PROBLEM`; empty paths: no such file.
std::optional<ExitCode> what_if_training(const CLI::App& verb, const std::string& path,
                                         double seconds, const std::string& csv,
                                         const std::string& chart, const OutputOptions& output);

// What `export` writes training plans for.
std::vector<std::string> training_target_names();
// `export PLAN --to TARGET -o PATH`.
std::optional<ExitCode> export_training(const CLI::App& verb, const std::string& path,
                                        const std::string& target, const std::string& written,
                                        const OutputOptions& output);

// `import --format sailor FOLDER`.
struct SailorOptions {
  std::string plan;
  std::string model;
  std::vector<std::string> nodes;   // KIND[@ZONE]=COUNT
  std::vector<std::string> prices;  // KIND=PRICE
  std::string constants;
  std::optional<int> batch;
  std::optional<TrainingObjective> minimise;

  void add_to(CLI::App& verb);
};
ExitCode import_sailor(const std::string& folder, const SailorOptions& options,
                       const std::string& written, const OutputOptions& output);

}  // namespace placewright::cli
