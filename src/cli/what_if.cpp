#include "analysis/what_if.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/variation.h"
#include "cli/budget_options.h"
#include "cli/interruption.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/problem_options.h"
#include "cli/record_table.h"
#include "cli/status_line.h"
#include "cli/text.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "formats/catalogue.h"
#include "formats/cluster_json.h"
#include "formats/estimated_batch.h"
#include "formats/text_file.h"
#include "planning/portfolio.h"
#include "problem/cost_source.h"
#include "problem/time_unit.h"
#include "report/what_if_chart.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright whatif model.json --devices 1-4 --bandwidth 0.1,1,10 --csv out.csv\n"
    "  placewright whatif model.json --memory-factor 0.5,0.75,1,2 --chart memory.svg\n"
    "  placewright whatif model.json --devices 1-8 --planner heft --threads 4\n"
    "  placewright whatif model.json --without T4       a device, or all of a kind\n"
    "  placewright whatif model.json --device-sets      which devices are worth having\n"
    "  placewright whatif model.json --add A100-80GB --link NVLink-3=0.4    what to buy\n"
    "  placewright whatif cluster.json --chart prices.svg   training: other clusters, price, time\n"
    "\n"
    "Commas separate values; 1-4 stands for 1,2,3,4. --devices counts devices (accelerators, if "
    "the\n"
    "problem has a host interconnect); the other values are factors. --time-limit is the limit of\n"
    "each point.";

constexpr std::size_t kMostPoints = 10000;
constexpr std::size_t kMostReasons = 5;  // why points have no plan
constexpr NumberRange<double> kFactors{1e-9, 1e9};

struct WhatIfOptions {
  ProblemOptions problem;
  BudgetOptions budget{.time_limit = "1s"};
  OutputOptions output;
  std::string planner = "auto";
  std::string devices;
  std::string memory;
  std::string bandwidth;
  std::string speed;
  std::string batch;
  std::vector<std::string> without;
  std::vector<std::string> add;
  std::vector<std::string> links;  // NAME or NAME=PRICE
  bool device_sets = false;
  std::string csv;
  std::string chart;
};

// "1-4" or "0.1,1,10", or a mixture; sorted, each once.
std::vector<double> parse_values(const char* flag, const std::string& text,
                                 NumberRange<double> range = kFactors) {
  std::vector<double> values;
  for (std::size_t begin = 0; begin < text.size() || (begin > 0 && begin == text.size());) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    const std::size_t dash = item.find('-', 1);
    if (dash == std::string::npos || item[dash - 1] == 'e') {
      values.push_back(parse_number(flag, item, range));
    } else {
      const double first = parse_number(flag, std::string_view{item}.substr(0, dash), range);
      const double last = parse_number(flag, std::string_view{item}.substr(dash + 1), range);
      if (last < first || last - first > static_cast<double>(kMostPoints)) {
        throw UsageError(fmt::format("{}: '{}' is not a range", flag, item));
      }
      for (double value = first; value <= last; value += 1) values.push_back(value);
    }
    begin = end + 1;
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<DeviceSet> sets_of(const WhatIfOptions& options, const ProblemDraft& draft) {
  try {
    if (options.device_sets) return all_device_sets(draft, kMostPoints);
    if (!options.without.empty()) return sets_without(draft, options.without);
  } catch (const std::invalid_argument& error) {
    throw UsageError(
        fmt::format("{}: {}", options.device_sets ? "--device-sets" : "--without", error.what()));
  }
  return {};
}

// NAME or NAME=PRICE: all links as the catalogue's of that name, for so much an hour.
Purchase link_purchase(const std::string& text, TimeUnit unit) {
  const std::size_t split = text.find('=');
  const std::string name = text.substr(0, split);
  const CatalogueLink* known = catalogue().link(name);
  if (known == nullptr) {
    throw UsageError(fmt::format(
        "--link: the catalogue has no link '{}' ('placewright devices --catalogue')", name));
  }
  if (unit == TimeUnit::none) {
    throw UsageError("--link: the times of this problem have no unit");
  }
  const double seconds = milliseconds_in(unit) / 1000;
  Purchase purchase{name, {}, std::pair(known->latency / seconds, known->bandwidth * seconds)};
  if (split != std::string::npos) {
    purchase.price = parse_number("--link", text.substr(split + 1), NumberRange<double>{0, 1e12});
  }
  return purchase;
}

std::vector<Purchase> purchases_of(const WhatIfOptions& options, const ProblemDraft& draft) {
  std::vector<Purchase> purchases;
  try {
    purchases = one_more_of(draft, options.add);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--add: {}", error.what()));
  }
  for (const std::string& link : options.links) {
    purchases.push_back(link_purchase(link, draft.unit));
  }
  return purchases;
}

void require_few_points(const WhatIfGrid& grid) {
  std::size_t points = std::max<std::size_t>(grid.sets.size(), 1) * (grid.purchases.size() + 1);
  for (const Axis axis : values_of<Axis>()) {
    points *= std::max<std::size_t>(grid.values(axis).size(), 1);
    if (points > kMostPoints) {
      throw UsageError(fmt::format("the grid has more than {} points", kMostPoints));
    }
  }
}

// The axes that are numbers.
WhatIfGrid numbers_of(const WhatIfOptions& options) {
  WhatIfGrid grid;
  const NumberRange<double> counts{1, static_cast<double>(kMostDevices)};
  for (const double count : parse_values("--devices", options.devices, counts)) {
    if (count != std::floor(count)) {
      throw UsageError(fmt::format("--devices: {} is not a whole number", count));
    }
    grid.devices.push_back(static_cast<std::size_t>(count));
  }
  grid.memory = parse_values("--memory-factor", options.memory);
  grid.bandwidth = parse_values("--bandwidth", options.bandwidth);
  grid.speed = parse_values("--speed", options.speed);
  grid.batch = parse_values("--batch", options.batch);
  return grid;
}

// All axes; the sets of devices need the problem.
WhatIfGrid grid_of(const WhatIfOptions& options, WhatIfGrid grid) {
  const bool sets = options.device_sets || !options.without.empty();
  if (options.device_sets && !options.without.empty()) {
    throw UsageError("--device-sets tries all sets already: leave out --without");
  }
  if (sets && !options.devices.empty()) {
    throw UsageError("give --devices or --device-sets, not both");
  }
  const bool purchases = !options.add.empty() || !options.links.empty();
  if ((sets || purchases) && !options.chart.empty()) {
    throw UsageError("--chart draws numbers: leave out --without, --device-sets, --add and --link");
  }
  if (sets && purchases) {
    throw UsageError("--add and --link cannot be combined with options that leave devices out");
  }
  const bool any =
      std::ranges::any_of(values_of<Axis>(), [&](Axis axis) { return !grid.values(axis).empty(); });
  if (!any && !sets && !purchases) {
    throw UsageError(
        "'whatif' needs something to vary: --devices, --without, --device-sets, --add, --link, "
        "--memory-factor, --bandwidth, --speed or --batch");
  }
  require_few_points(grid);
  return grid;
}

// Launches and weights are paid once where the times are estimates of known peaks.
BatchGrowth growth_of(const WhatIfOptions& options, const ProblemDraft& draft) {
  if (cost_source(draft) != CostSource::estimated) return {};
  const std::string& path = options.problem.cluster;
  const ClusterFile cluster =
      path.empty() ? ClusterFile{.cluster = draft.cluster} : read_cluster(path);
  std::vector<std::string> warnings;
  for (const DeviceKind& kind : draft.cluster.kinds) {
    if (rates_of(cluster, kind.name)) continue;
    warnings.push_back(
        fmt::format("--batch: the catalogue has no rates of the kind '{}', so its times grow in "
                    "proportion to the batch (a --cluster FILE can state rates)",
                    kind.name));
  }
  options.output.warn(warnings);
  return [estimate = EstimatedBatch(draft, cluster)](OpId op, KindId kind, double samples) {
    return estimate.growth(op, kind, samples);
  };
}

// "12 of 20 points, 3.4 points/s" on a terminal.
class PointProgress {
 public:
  explicit PointProgress(bool wanted) : line_(wanted) {}

  void show(std::size_t done, std::size_t all) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    line_.show(fmt::format("{} of {} points, {}, {:.3g} points/s", done, all,
                           duration_text(seconds),
                           static_cast<double>(done) / std::max(seconds, 1e-9)));
  }

 private:
  StatusLine line_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::string found_by(const WhatIfAnswer& answer) {
  if (!answer.plan) return "";
  if (answer.carried) return "another point's plan";
  const std::string& member = answer.outcome.answer.found_by;
  return member.empty() ? answer.outcome.planner : member;
}

// Everything about a point; the text has the columns that differ between the points asked for.
RecordTable<WhatIfAnswer> point_table(const WhatIfGrid& grid,
                                      const std::vector<WhatIfAnswer>& answers, TimeUnit unit) {
  const auto varied = [&](Axis axis) {
    const std::string title =
        axis == Axis::devices ? grid.counted + "s" : std::string{name_of(axis)};
    return grid.values(axis).empty() ? std::nullopt : std::optional(title);
  };
  const auto shown = [](bool wanted, const char* title) {
    return wanted ? std::optional<std::string>(title) : std::nullopt;
  };
  std::vector<Field<WhatIfAnswer>> fields = {
      {"devices", varied(Axis::devices), count(),
       [](const auto& answer) { return answer.devices; }},
      {"set", shown(!grid.sets.empty(), "devices"), words(),
       [](const auto& answer) { return answer.point.set ? answer.point.set->name : "all"; }},
      {"bought", shown(!grid.purchases.empty(), "bought"), words(),
       [](const auto& answer) {
         return answer.point.purchase ? answer.point.purchase->name : "nothing";
       }},
  };
  const bool priced =
      std::ranges::any_of(answers, [](const WhatIfAnswer& answer) { return answer.price > 0; });
  for (const Axis axis : values_of<Axis>()) {
    if (axis == Axis::devices) continue;
    fields.push_back({std::string{name_of(axis)}, varied(axis), number("{:g}"),
                      [axis](const auto& answer) { return answer.point.at(axis); }});
  }
  const std::vector<Field<WhatIfAnswer>> results = {
      {"value", "value", time_in(unit), [](const auto& answer) { return answer.value(); }},
      {"per_sample", shown(!grid.batch.empty(), "per sample"), time_in(unit),
       [](const auto& answer) { return answer.per_sample(); }},
      {"price", shown(priced, "price/hour"), number("{:.4g}"),
       [priced](const auto& answer) { return priced ? answer.price : kInfinity; }},
      {"cost_per_sample", shown(priced, "cost/sample"), number("{:.4g}"),
       [priced, unit](const auto& answer) {
         return priced ? answer.cost_per_sample(unit) : kInfinity;
       }},
      {"lower_bound", "lower bound", time_in(unit),
       [](const auto& answer) { return answer.lower_bound(); }},
      {"gap", "gap", percent(),
       [](const auto& answer) { return gap(answer.value(), answer.lower_bound()); }},
      {"unit", kNoTitle, words(), [unit](const auto&) { return name_of(unit); }},
      {"status", "status", words(), [](const auto& answer) { return name_of(answer.status()); }},
      {"planner", kNoTitle, words(), [](const auto& answer) { return answer.outcome.planner; }},
      {"plan_by", "plan by", words(), found_by},
      {"seconds", kNoTitle, duration(), [](const auto& answer) { return answer.outcome.seconds; }},
  };
  fields.insert(fields.end(), results.begin(), results.end());
  return RecordTable<WhatIfAnswer>(std::move(fields));
}

void print_text(const WhatIfGrid& grid, const std::vector<WhatIfAnswer>& answers, TimeUnit unit) {
  fmt::print("{}", point_table(grid, answers, unit).text(answers));
  std::vector<std::string> told;
  for (const WhatIfAnswer& answer : answers) {
    if (answer.plan || told.size() == kMostReasons) continue;
    std::string reason =
        fmt::format("{}: {}", name_of(answer.status()), printable(answer.outcome.answer.reason));
    if (std::ranges::count(told, reason) > 0) continue;
    fmt::print("{}\n", reason);
    told.push_back(std::move(reason));
  }
}

void print_document(const WhatIfGrid& grid, const std::vector<WhatIfAnswer>& answers,
                    const ProblemDraft& draft) {
  Json points = point_table(grid, answers, draft.unit).json(answers);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].plan) points[i]["reason"] = answers[i].outcome.answer.reason;
  }
  print_json({{"problem", draft.name},
              {"objective", name_of(draft.objective)},
              {"unit", name_of(draft.unit)},
              {"points", std::move(points)}});
}

std::string value_title(const ProblemDraft& draft) {
  const std::string unit{name_of(draft.unit)};
  const std::string what = draft.objective == Objective::throughput
                               ? "time per sample"
                               : std::string{name_of(draft.objective)};
  return draft.unit == TimeUnit::none ? what : fmt::format("{} ({})", what, unit);
}

ExitCode what_if_verb(const CLI::App& verb, const WhatIfOptions& options) {
  options.problem.check();
  WhatIfGrid numbers = numbers_of(options);
  if (const auto done =
          what_if_training(verb, options.problem.path, options.budget.budget().seconds, options.csv,
                           options.chart, options.output)) {
    return *done;
  }
  WhatIfGrid grid = grid_of(options, std::move(numbers));
  PlanRequest request{.planner = options.planner, .budget = options.budget.budget()};
  ProblemFile file = options.problem.read(options.output);
  options.output.warn(file.warnings);
  const ProblemDraft draft = file.draft;
  // Errors in the file itself are reported once, not for each point.
  static_cast<void>(build_problem(std::move(file)));
  grid.sets = sets_of(options, draft);
  grid.purchases = purchases_of(options, draft);
  if (!grid.batch.empty()) grid.growth = growth_of(options, draft);
  if (are_sets_of_resources(draft.cluster)) grid.counted = countable_word(draft.cluster);
  require_few_points(grid);
  std::vector<WhatIfAnswer> answers;
  {
    const Interruption interruption;
    PointProgress progress(!options.output.quiet);
    answers = what_if(draft, grid, planning_registry(), request, interruption.flag(),
                      [&](std::size_t done, std::size_t all) { progress.show(done, all); });
  }
  if (options.output.json) {
    print_document(grid, answers, draft);
  } else if (!options.output.quiet) {
    fmt::print("{}: {} by '{}', {} for each of {} points\n", printable(draft.name),
               name_of(draft.objective), options.planner, duration_text(request.budget.seconds),
               answers.size());
    const std::string caution = caution_of(cost_source(draft));
    if (!caution.empty()) fmt::print("caution: {}\n", caution);
    fmt::print("\n");
    print_text(grid, answers, draft.unit);
  }
  if (!options.csv.empty()) {
    write_whole(options.csv, point_table(grid, answers, draft.unit).csv(answers));
  }
  if (!options.chart.empty()) {
    write_whole(options.chart,
                svg_text(what_if_charts(grid, answers, draft.name, value_title(draft))));
  }
  const bool any = std::any_of(answers.begin(), answers.end(),
                               [](const WhatIfAnswer& answer) { return answer.plan.has_value(); });
  return any ? ExitCode::success : ExitCode::no;
}

}  // namespace

void add_what_if(CLI::App& program, Action& action) {
  CLI::App* verb =
      program.add_subcommand("whatif", "Plan again with more devices, more memory or faster links");
  const auto options = std::make_shared<WhatIfOptions>();
  options->budget.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options->problem.add_argument_to(*verb);
  const auto axis = [&](const char* flag, std::string& values, const char* help) {
    verb->add_option(flag, values, help)->group("Grid")->type_name("VALUES");
  };
  axis("--devices", options->devices,
       "Plan for the first so many devices of the cluster, or for so many cores");
  verb->add_option("--without", options->without,
                   "Plan for all devices, and without this one or without this kind; repeatable")
      ->group("Grid")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->take_all();
  verb->add_option("--add", options->add,
                   "Plan for the cluster, and with one more device like this one or of this kind; "
                   "repeatable")
      ->group("Grid")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->take_all();
  verb->add_option("--link", options->links,
                   "Plan for the cluster, and with all links (or all links inside nodes) replaced "
                   "by this one of the catalogue, at this price an hour; repeatable")
      ->group("Grid")
      ->type_name("NAME[=PRICE]")
      ->allow_extra_args(false)
      ->take_all();
  verb->add_flag("--device-sets", options->device_sets,
                 "Plan for every set of devices, to see which devices help")
      ->group("Grid");
  axis("--memory-factor", options->memory, "Multiply every device's memory by these factors");
  axis("--bandwidth", options->bandwidth, "Multiply every link's bandwidth by these factors");
  axis("--speed", options->speed, "Multiply every device's speed by these factors");
  axis("--batch", options->batch,
       "Compute this many samples at a time; estimated times pay launches and weights once");
  options->budget.add_to(*verb, BudgetOptions::Start::none);
  verb->add_option("--planner", options->planner,
                   "Use this planner; 'placewright planners' lists them")
      ->capture_default_str()
      ->type_name("NAME");
  options->output.add_to(*verb);
  verb->add_option("--csv", options->csv,
                   "Write the points as CSV to this file; - is standard output")
      ->group("Output")
      ->type_name("FILE");
  verb->add_option("--chart", options->chart, "Draw the curves into this SVG file")
      ->group("Output")
      ->type_name("FILE");
  verb->footer(kExamples);
  verb->callback([&action, verb, options] {
    action = [verb, options] { return what_if_verb(*verb, *options); };
  });
}

}  // namespace placewright::cli
