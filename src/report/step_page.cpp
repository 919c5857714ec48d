#include "report/step_page.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "report/markup.h"

namespace placewright {
namespace {

constexpr double kWidth = 960;   // of the chart, pixels
constexpr double kLabels = 220;  // of the rows' names
constexpr double kRow = 26;
constexpr double kBar = 18;
constexpr int kMostBlocks = 64;  // micro-batches of a row that are drawn apart

// A replica that stands for those of its stage, pool and degree.
struct Row {
  std::size_t stage = 0;
  std::size_t replica = 0;
  int count = 0;
};

std::vector<Row> rows_of(const TrainingPlan& plan, const StepCost& cost) {
  std::vector<Row> rows;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const std::vector<StageReplica>& replicas = plan.stages[s].replicas;
    const std::size_t begin = rows.size();
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      const auto same = [&](const Row& row) {
        return replicas[row.replica].pool == replicas[r].pool &&
               replicas[row.replica].degree == replicas[r].degree;
      };
      const auto known =
          std::find_if(rows.begin() + static_cast<std::ptrdiff_t>(begin), rows.end(), same);
      if (known == rows.end()) {
        rows.push_back({s, r, 1});
        continue;
      }
      ++known->count;
      const auto busy = [&](std::size_t replica) {
        return replicas[replica].micro_batches * cost.stages[s].replicas[replica].slot();
      };
      if (busy(r) > busy(known->replica)) known->replica = r;
    }
  }
  return rows;
}

class StepChart {
 public:
  StepChart(const TrainingProblem& problem, const TrainingPlan& plan, const StepCost& cost)
      : problem_(problem), plan_(plan), cost_(cost) {}

  std::string text() {
    const std::vector<Row> rows = rows_of(plan_, cost_);
    for (std::size_t i = 0; i < rows.size(); ++i)
      add_row(rows[i], static_cast<double>(i) * kRow + 4);
    const double height = static_cast<double>(rows.size()) * kRow + 34;
    add_axis(static_cast<double>(rows.size()) * kRow + 8);
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n{}</svg>\n",
        kLabels + kWidth + 60, height, kLabels + kWidth + 60, body_);
  }

 private:
  [[nodiscard]] double at(double seconds) const {
    return kLabels + kWidth * seconds / cost_.seconds;
  }

  void add_bar(double begin, double end, double y, const char* colour, const std::string& title) {
    if (end <= begin) return;
    body_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" "
        "stroke=\"white\" "
        "stroke-width=\"0.4\"><title>{}</title></rect>\n",
        at(begin), y, at(end) - at(begin), kBar, colour, markup_text(title));
  }

  void add_row(const Row& row, double y) {
    const TrainingStage& stage = plan_.stages[row.stage];
    const StageReplica& replica = stage.replicas[row.replica];
    const ReplicaCost& one = cost_.stages[row.stage].replicas[row.replica];
    double begin = 0;
    for (std::size_t s = 0; s < row.stage; ++s) begin += cost_.stages[s].slot;
    body_ +=
        fmt::format("<text x=\"4\" y=\"{:.2f}\">{}</text>\n", y + 13,
                    markup_text(fmt::format("stage {}: {} x {} {}", row.stage + 1, row.count,
                                            replica.degree, pool_name(problem_, replica.pool))));
    const int blocks = std::min(replica.micro_batches, kMostBlocks);
    const double length = replica.micro_batches * one.slot() / blocks;
    for (int i = 0; i < blocks; ++i) {
      const double from = begin + i * length;
      add_bar(from, from + length, y, i % 2 == 0 ? "#3b6ea8" : "#5a8cc4",
              fmt::format("{} micro-batches of {:.4g} s", replica.micro_batches, one.slot()));
    }
    const double passed = cost_.fill + cost_.steady;
    add_bar(passed, passed + one.update, y, "#7a5aa6", fmt::format("update: {:.4g} s", one.update));
    const double updated = passed + cost_.update;
    const double reduced = cost_.stages[row.stage].all_reduce;
    add_bar(updated, updated + reduced, y, "#b5702a", fmt::format("all-reduce: {:.4g} s", reduced));
  }

  void add_axis(double y) {
    constexpr int kTicks = 5;
    for (int i = 0; i <= kTicks; ++i) {
      const double seconds = cost_.seconds * i / kTicks;
      body_ += fmt::format(
          "<line x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"0\" y2=\"{1:.2f}\" stroke=\"#999\" "
          "stroke-width=\"0.5\"/><text x=\"{0:.2f}\" y=\"{2:.2f}\" text-anchor=\"middle\">{3:.3g} "
          "s</text>\n",
          at(seconds), y, y + 16, seconds);
    }
  }

  const TrainingProblem& problem_;
  const TrainingPlan& plan_;
  const StepCost& cost_;
  std::string body_;
};

std::string table_row(const std::vector<std::string>& cells, std::string_view tag) {
  std::string row = "<tr>";
  for (const std::string& cell : cells)
    row += fmt::format("<{0}>{1}</{0}>", tag, markup_text(cell));
  return row + "</tr>\n";
}

std::string stage_rows(const TrainingProblem& problem, const TrainingPlan& plan,
                       const StepCost& cost) {
  constexpr double kGibibyte = 1 << 30;
  std::string rows = table_row({"stage", "layers", "groups", "micro-batches of a group", "slot",
                                "compute", "sends", "memory"},
                               "th");
  for (const Row& row : rows_of(plan, cost)) {
    const TrainingStage& stage = plan.stages[row.stage];
    const StageReplica& replica = stage.replicas[row.replica];
    const ReplicaCost& one = cost.stages[row.stage].replicas[row.replica];
    rows += table_row(
        {std::to_string(row.stage + 1), fmt::format("{} to {}", stage.first, stage.last - 1),
         fmt::format("{} of {} {}", row.count, replica.degree, pool_name(problem, replica.pool)),
         std::to_string(replica.micro_batches), fmt::format("{:.4g} s", one.slot()),
         fmt::format("{:.4g} s", one.compute), fmt::format("{:.4g} s", one.sends),
         fmt::format("{:.1f} GiB", one.memory / kGibibyte)},
        "td");
  }
  return rows;
}

}  // namespace

std::string step_chart(const TrainingProblem& problem, const TrainingPlan& plan,
                       const StepCost& cost) {
  return StepChart(problem, plan, cost).text();
}

std::string step_page(const TrainingProblem& problem, const TrainingAnswer& answer) {
  const StepCost cost = StepModel(problem).cost(answer.plan);
  const std::string title = problem.name.empty() ? "a training step" : problem.name;
  std::string facts = fmt::format(
      "A step of {} samples takes {:.4g} s on {} GPUs: fill and drain {:.4g} s, steady {:.4g} s, "
      "update {:.4g} s, all-reduce {:.4g} s. Micro-batches have {} samples.",
      problem.batch, cost.seconds, gpus_of(answer.plan), cost.fill, cost.steady, cost.update,
      cost.all_reduce, answer.plan.micro_batch);
  if (answer.lower_bound > 0) {
    facts += fmt::format(" No plan is more than {:.1f} % better.", answer.gap() * 100);
  }
  if (answer.measured > 0) facts += fmt::format(" A real step took {:.4g} s.", answer.measured);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>body {{ font-family: sans-serif; margin: 2rem }} td, th {{ padding: 2px 12px; "
      "text-align: right }}"
      "</style></head>\n<body><h1>{0}</h1>\n<p>{1}</p>\n{2}"
      "<p>Blue: micro-batches of the busiest group of a row. Violet: update. Brown: "
      "all-reduce.</p>\n"
      "<table>\n{3}</table>\n</body></html>\n",
      markup_text(title), markup_text(facts), step_chart(problem, answer.plan, cost),
      stage_rows(problem, answer.plan, cost));
}

}  // namespace placewright
