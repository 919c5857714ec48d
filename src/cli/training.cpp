#include "cli/training.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "analysis/training_what_if.h"
#include "backends/registry.h"
#include "cli/choice_option.h"
#include "cli/interruption.h"
#include "cli/number_option.h"
#include "cli/record_table.h"
#include "cli/repeated_option.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "evaluate/training_step.h"
#include "formats/input_error.h"
#include "formats/sailor.h"
#include "formats/text_file.h"
#include "formats/training_constants.h"
#include "formats/training_export.h"
#include "planners/training/training_planner.h"
#include "report/line_chart.h"
#include "verify/training.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kGroup = "Sailor";
constexpr double kOptimalGap = 1e-6;

using Reader = TrainingFile (*)(std::string_view text, const std::string& path);

// A verb's options that mean something for a file of training, beside those of its output.
using Options = std::initializer_list<std::string_view>;

// An option that the environment sets for all verbs counts as given to this one too.
bool given_here(const CLI::Option& option) {
  const std::string& variable = option.get_envname();
  return option.count() > 0 && (variable.empty() || std::getenv(variable.c_str()) == nullptr);
}

void refuse_other_options(const CLI::App& verb, std::string_view what, Options known) {
  static constexpr std::array<std::string_view, 3> kOutput{"--json", "--quiet", "--verbose"};
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    if (!given_here(*option) || option->get_required() ||
        std::ranges::find(known, name) != known.end() ||
        std::ranges::find(kOutput, name) != kOutput.end()) {
      continue;
    }
    if (option->get_positional()) {
      throw UsageError(fmt::format("'{}' cannot be read beside a {}, which '{}' takes alone",
                                   option->results().front(), what, verb.get_name()));
    }
    throw UsageError(fmt::format(
        "{} means nothing for a {}{}", name, what,
        known.size() == 0
            ? ""
            : fmt::format("; '{}' takes {} there", verb.get_name(), fmt::join(known, ", "))));
  }
}

// Nothing if the file is of another kind, which the verb's own reader opens.
std::optional<TrainingFile> opened(const CLI::App& verb, const std::string& path,
                                   std::string_view what, Options known, Reader read,
                                   const OutputOptions& output) {
  if (path != "-" && (backend_reading(path) != nullptr || std::filesystem::is_directory(path))) {
    return std::nullopt;
  }
  const std::string text = peek_whole(path);
  std::string kind(what);
  std::ranges::replace(kind, ' ', '-');
  if (!is_training_file(text, kind)) return std::nullopt;
  refuse_other_options(verb, what, known);
  TrainingFile file = read(text, path);
  output.warn(file.warnings);
  return file;
}

std::optional<TrainingFile> opened_problem(const CLI::App& verb, const std::string& path,
                                           Options known, const OutputOptions& output) {
  return opened(verb, path, "training problem", known, read_training_problem, output);
}

Json violations_json(const std::vector<std::string>& violations) {
  Json list = Json::array();
  for (const std::string& sentence : violations) list.push_back({{"message", sentence}});
  return list;
}

// "GH-96@a x 4, 16 micro-batches", equal neighbours counted.
std::string replicas_text(const TrainingProblem& problem, const TrainingStage& stage) {
  std::string text;
  for (std::size_t begin = 0; begin < stage.replicas.size();) {
    const StageReplica& replica = stage.replicas[begin];
    std::size_t end = begin;
    while (end < stage.replicas.size() && stage.replicas[end] == replica) ++end;
    text += fmt::format("{}{} x ({} {}, {} micro-batches)", text.empty() ? "" : ", ", end - begin,
                        replica.degree, pool_name(problem, replica.pool), replica.micro_batches);
    begin = end;
  }
  return text;
}

Json replicas_json(const TrainingProblem& problem, const TrainingStage& stage,
                   const StageCost& cost) {
  Json replicas = Json::array();
  for (std::size_t r = 0; r < stage.replicas.size(); ++r) {
    const StageReplica& replica = stage.replicas[r];
    replicas.push_back({{"pool", pool_name(problem, replica.pool)},
                        {"degree", replica.degree},
                        {"micro_batches", replica.micro_batches},
                        {"compute", cost.replicas[r].compute},
                        {"sends", cost.replicas[r].sends},
                        {"update", cost.replicas[r].update},
                        {"memory", cost.replicas[r].memory}});
  }
  return replicas;
}

RecordTable<std::size_t> stage_table(const TrainingFile& file, const StepCost& cost) {
  const std::vector<TrainingStage>& stages = file.answer->plan.stages;
  const auto seconds = [&](double StageCost::*member) {
    return [&cost, member](std::size_t s) { return cost.stages[s].*member; };
  };
  return RecordTable<std::size_t>({
      {kNoKey, "stage", count(), [](std::size_t s) { return s + 1; }},
      {"layers", kNoTitle, words(),
       [&](std::size_t s) {
         return std::vector{stages[s].first, stages[s].last};
       }},
      {kNoKey, "layers", words(),
       [&](std::size_t s) { return fmt::format("{} to {}", stages[s].first, stages[s].last - 1); }},
      {"replicas", kNoTitle, words(),
       [&](std::size_t s) { return replicas_json(file.problem, stages[s], cost.stages[s]); }},
      {"slot", "slot", duration(), seconds(&StageCost::slot)},
      {"update", "update", duration(), seconds(&StageCost::update)},
      {"all_reduce", "all-reduce", duration(), seconds(&StageCost::all_reduce)},
      {"memory", "memory", size(), seconds(&StageCost::memory)},
      {kNoKey, "replicas", words(),
       [&](std::size_t s) { return replicas_text(file.problem, stages[s]); }},
  });
}

RecordTable<StepCost> step_table(const TrainingAnswer& answer) {
  const auto part = [](double StepCost::*member) {
    return [member](const StepCost& cost) { return cost.*member; };
  };
  std::vector<Field<StepCost>> fields = {
      {"seconds", "step", duration(), part(&StepCost::seconds)},
      {"fill", "  fill and drain", duration(), part(&StepCost::fill)},
      {"steady", "  steady", duration(), part(&StepCost::steady)},
      {"update", "  update", duration(), part(&StepCost::update)},
      {"all_reduce", "  all-reduce", duration(), part(&StepCost::all_reduce)},
      {"price", "price", number("{:.4g}"), part(&StepCost::price)},
      {"memory", "memory", size(), part(&StepCost::memory)},
  };
  if (answer.measured > 0) {
    fields.push_back(
        {"measured", "measured", duration(), [&](const StepCost&) { return answer.measured; }});
  }
  if (answer.measured_memory > 0) {
    fields.push_back({"measured_memory", "measured memory", size(),
                      [&](const StepCost&) { return answer.measured_memory; }});
  }
  return RecordTable<StepCost>(std::move(fields));
}

std::pair<std::string, double> named_number(const char* flag, const std::string& text,
                                            NumberRange<double> range) {
  const std::size_t split = text.rfind('=');
  if (split == std::string::npos || split == 0) {
    throw UsageError(fmt::format("{}: '{}' is not of the form KIND=NUMBER", flag, text));
  }
  return {text.substr(0, split), parse_number(flag, text.substr(split + 1), range)};
}

SailorRequest request_of(const SailorOptions& options) {
  SailorRequest request{.model = options.model, .batch = options.batch.value_or(0)};
  for (const std::string& text : options.nodes) {
    const auto [name, count] = named_number("--node", text, {1, 1e6});
    const std::size_t zone = name.find('@');
    request.nodes.push_back({name.substr(0, zone),
                             zone == std::string::npos ? "" : name.substr(zone + 1),
                             static_cast<int>(count)});
  }
  const bool for_nodes = !request.nodes.empty();
  if (options.plan.empty() && (!for_nodes || request.model.empty() || request.batch == 0)) {
    throw UsageError("--format sailor: give --plan, or --model, --batch and --node");
  }
  if (!options.plan.empty() && (for_nodes || request.batch != 0)) {
    throw UsageError("--plan states nodes and batch itself: leave out --node and --batch");
  }
  return request;
}

void apply_prices(const SailorOptions& options, TrainingProblem& problem) {
  for (const std::string& text : options.prices) {
    const auto [name, price] = named_number("--price", text, {0, kLargestReal});
    bool found = false;
    for (GpuKind& kind : problem.kinds) {
      if (kind.name != name) continue;
      kind.price = price;
      found = true;
    }
    if (!found) throw UsageError(fmt::format("--price: the problem has no '{}'", name));
  }
}

std::vector<std::size_t> numbers_of(const StepCost& cost) {
  std::vector<std::size_t> stages(cost.stages.size());
  std::iota(stages.begin(), stages.end(), std::size_t{0});
  return stages;
}

void print_outcome(const TrainingProblem& problem, const TrainingAnswer& answer,
                   const OutputOptions& output) {
  const TrainingFile file{problem, answer, {}};
  const StepCost cost = StepModel(problem).cost(answer.plan);
  if (output.json) {
    Json document = {{"status", answer.gap() <= kOptimalGap ? "optimal" : "feasible"},
                     {"objective", name_of(problem.objective)},
                     {"planner", answer.planner},
                     {"value", answer.value},
                     {"lower_bound", answer.lower_bound},
                     {"gap", answer.gap()},
                     {"bound_method", answer.bound_method},
                     {"planning_seconds", answer.seconds},
                     {"micro_batch", answer.plan.micro_batch},
                     {"gpus", gpus_of(answer.plan)}};
    document.update(step_table(answer).json(cost));
    document["stages"] = stage_table(file, cost).json(numbers_of(cost));
    print_json(document);
  } else if (!output.quiet) {
    fmt::print("{} {}, bound {} (gap {}), found by {} in {}\n", name_of(problem.objective),
               number_text(answer.value), number_text(answer.lower_bound),
               percent_text(answer.gap()), answer.planner, duration_text(answer.seconds));
    fmt::print("{} GPUs, micro-batches of {}\n\n{}\n{}", gpus_of(answer.plan),
               answer.plan.micro_batch, step_table(answer).lines(cost),
               stage_table(file, cost).text(numbers_of(cost)));
  }
}

RecordTable<TrainingVariant> variant_table() {
  const auto known = [](auto TrainingVariant::*member) {
    return [member](const TrainingVariant& variant) {
      return variant.planned ? Json(variant.*member) : Json(nullptr);
    };
  };
  return RecordTable<TrainingVariant>({
      {"cluster", "cluster", words(), [](const auto& variant) { return variant.name; }},
      {"nodes", kNoTitle, words(), [](const auto& variant) { return variant.counts; }},
      {"gpus", "GPUs in use", number("{}"), known(&TrainingVariant::gpus)},
      {"seconds", "step (s)", number("{:.4g}"), known(&TrainingVariant::seconds)},
      {"price", "price", number("{:.4g}"), known(&TrainingVariant::price)},
      {"efficient", "efficient", words(), [](const auto& variant) { return variant.efficient; }},
  });
}

// Price against time: the efficient variants as a line.
std::vector<LineChart> price_charts(const TrainingProblem& problem,
                                    const std::vector<TrainingVariant>& variants) {
  ChartLine line{"efficient", {}};
  for (const TrainingVariant& variant : variants) {
    if (variant.efficient) line.points.push_back({variant.seconds, variant.price});
  }
  std::ranges::sort(line.points, {}, &ChartPoint::x);
  return {{.title = problem.name,
           .subtitle = "clusters that no other beats in time and price",
           .x_title = "seconds of a step",
           .y_title = "price of a step",
           .lines = {std::move(line)}}};
}

ExitCode not_valid(const TrainingVerdict& verdict) {
  tell(fmt::format("placewright: the plan is not valid: {} ('placewright check' lists all)\n",
                   printable(verdict.violations.front())));
  return ExitCode::no;
}

}  // namespace

std::optional<TrainingFile> opened_training_plan(const CLI::App& verb, const std::string& path,
                                                 Options known, const OutputOptions& output) {
  return opened(verb, path, "training plan", known, read_training_plan, output);
}

std::optional<ExitCode> check_training(const CLI::App& verb, const std::string& path,
                                       const OutputOptions& output) {
  const auto file = opened_training_plan(verb, path, {}, output);
  if (!file) return std::nullopt;
  const TrainingVerdict verdict = verify_training(file->problem, *file->answer);
  const bool valid = verdict.violations.empty();
  if (output.json) {
    print_json({{"valid", valid},
                {"objective", name_of(file->problem.objective)},
                {"value", file->answer->value},
                {"violations", violations_json(verdict.violations)}});
  } else if (!output.quiet) {
    if (valid) {
      fmt::print("{}: {} {}\n", coloured("valid", Colour::green), name_of(file->problem.objective),
                 number_text(file->answer->value));
    } else {
      fmt::print("{}: {} violation{}\n", coloured("not valid", Colour::red),
                 verdict.violations.size(), verdict.violations.size() == 1 ? "" : "s");
    }
    for (const std::string& sentence : verdict.violations) {
      fmt::print("  {}\n", printable(sentence));
    }
  }
  return valid ? ExitCode::success : ExitCode::no;
}

std::optional<ExitCode> simulate_training(const CLI::App& verb, const std::string& path,
                                          const OutputOptions& output) {
  const auto file = opened_training_plan(verb, path, {}, output);
  if (!file) return std::nullopt;
  const TrainingVerdict verdict = verify_training(file->problem, *file->answer);
  if (verdict.seconds == 0) {
    return not_valid(verdict);
  }
  output.warn(verdict.violations);
  const StepCost cost = StepModel(file->problem).cost(file->answer->plan);
  const auto steps = step_table(*file->answer);
  if (output.json) {
    Json document = {{"objective", name_of(file->problem.objective)},
                     {"value", cost.value(file->problem.objective)}};
    document.update(steps.json(cost));
    document["stages"] = stage_table(*file, cost).json(numbers_of(cost));
    print_json(document);
  } else if (!output.quiet) {
    fmt::print("{}\n{}", steps.lines(cost), stage_table(*file, cost).text(numbers_of(cost)));
  }
  return ExitCode::success;
}

std::optional<ExitCode> plan_training_problem(const CLI::App& verb, const std::string& path,
                                              double seconds, const std::string& written,
                                              const OutputOptions& output) {
  const auto file = opened_problem(verb, path, {"--time-limit", "--output", "--embed"}, output);
  if (!file) return std::nullopt;
  const TrainingProblem& problem = file->problem;
  const Interruption interruption;
  const TrainingOutcome outcome =
      plan_training(problem, {.seconds = seconds, .stop = interruption.flag()});
  const TrainingAnswer& answer = outcome.answer;
  if (answer.plan.stages.empty()) {
    tell(fmt::format("placewright: {}\n",
                     outcome.proved_infeasible
                         ? "infeasible: no plan fits into the memory of the GPUs"
                         : "no plan was found"));
    return ExitCode::no;
  }
  const TrainingVerdict verdict = verify_training(problem, answer);
  if (!verdict.violations.empty()) {
    tell(fmt::format("placewright: internal error: the plan is not valid: {}\n",
                     printable(verdict.violations.front())));
    return ExitCode::fault;
  }
  if (written != "-") print_outcome(problem, answer, output);
  if (!written.empty()) write_whole(written, write_training_plan(problem, answer));
  return ExitCode::success;
}

std::optional<ExitCode> what_if_training(const CLI::App& verb, const std::string& path,
                                         double seconds, const std::string& csv,
                                         const std::string& chart, const OutputOptions& output) {
  const auto file = opened_problem(verb, path, {"--time-limit", "--csv", "--chart"}, output);
  if (!file) return std::nullopt;
  const Interruption interruption;
  const std::vector<TrainingVariant> variants =
      vary_training_cluster(file->problem, {.seconds = seconds, .stop = interruption.flag()});
  const RecordTable<TrainingVariant> table = variant_table();
  if (output.json) {
    print_json(
        {{"objective", name_of(file->problem.objective)}, {"variants", table.json(variants)}});
  } else if (!output.quiet && csv != "-") {
    fmt::print("{}", table.text(variants));
  }
  if (!csv.empty()) write_whole(csv, table.csv(variants));
  if (!chart.empty()) write_whole(chart, svg_text(price_charts(file->problem, variants)));
  return variants.front().planned ? ExitCode::success : ExitCode::no;
}

std::vector<std::string> training_target_names() {
  std::vector<std::string> names;
  for (const TrainingExport& known : training_exports()) names.emplace_back(known.name);
  return names;
}

std::optional<ExitCode> export_training(const CLI::App& verb, const std::string& path,
                                        const std::string& target, const std::string& written,
                                        const OutputOptions& output) {
  const auto file = opened_training_plan(verb, path, {"--to", "--output"}, output);
  if (!file) return std::nullopt;
  const std::span<const TrainingExport> exports = training_exports();
  const auto found = std::ranges::find(exports, target, &TrainingExport::name);
  if (found == exports.end()) {
    throw UsageError(fmt::format("--to: a training plan cannot be written as '{}' (known: {})",
                                 target, fmt::join(training_target_names(), ", ")));
  }
  const TrainingVerdict verdict = verify_training(file->problem, *file->answer);
  if (!verdict.violations.empty()) {
    return not_valid(verdict);
  }
  try {
    write_whole(written, found->write(file->problem, file->answer->plan));
  } catch (const std::invalid_argument& error) {
    throw InputError(input_name(path), "", error.what());
  }
  return ExitCode::success;
}

void SailorOptions::add_to(CLI::App& verb) {
  verb.add_option("--plan", plan, "Convert this published plan to a plan of ours")
      ->type_name("FILE")
      ->group(kGroup);
  verb.add_option("--model", model, "Take this model of the profiles")
      ->type_name("NAME")
      ->group(kGroup);
  add_repeated(
      verb, "--node", nodes, "KIND=COUNT",
      "Nodes of the cluster: this many of this kind; KIND@ZONE=COUNT names a zone; repeatable")
      ->group(kGroup);
  add_repeated(verb, "--price", prices, "KIND=PRICE",
               "Price of one GPU of this kind for an hour; repeatable")
      ->group(kGroup);
  add_choice(verb, "--minimise", minimise, "What plans minimise")->group(kGroup);
  add_number(verb, "--batch", batch, {1, 1000000}, "Samples in a training step")->group(kGroup);
  verb.add_option("--constants", constants, "Read constants fitted to real runs, by kind of GPU")
      ->type_name("FILE")
      ->group(kGroup);
}

ExitCode import_sailor(const std::string& folder, const SailorOptions& options,
                       const std::string& written, const OutputOptions& output) {
  const SailorRequest request = request_of(options);
  TrainingFile file = options.plan.empty() ? read_sailor_problem(folder, request)
                                           : read_sailor_plan(folder, options.plan, request);
  if (!options.constants.empty() && !apply_constants(options.constants, file.problem)) {
    file.warnings.push_back(
        fmt::format("{} has no constants for these GPUs; predictions use none", options.constants));
  }
  apply_prices(options, file.problem);
  if (options.minimise) file.problem.objective = *options.minimise;
  output.warn(file.warnings);
  std::string text;
  if (file.answer) {
    file.answer->value =
        StepModel(file.problem).cost(file.answer->plan).value(file.problem.objective);
    text = write_training_plan(file.problem, *file.answer);
  } else {
    text = write_training_problem(file.problem);
  }
  write_whole(written, text);
  if (!output.quiet && written != "-") {
    const std::size_t pools = file.problem.pools.size();
    fmt::print("{}: {}, {} layers, {} {} of nodes, {} samples of a step\n", written,
               printable(file.problem.name), file.problem.layers(), pools,
               pools == 1 ? "pool" : "pools", file.problem.batch);
  }
  return ExitCode::success;
}

}  // namespace placewright::cli
