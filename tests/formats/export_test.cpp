// Exports: what other programs must be able to read.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "evaluate/placement_plan.h"
#include "formats/graph_export.h"
#include "formats/plan_rows.h"
#include "formats/trace_export.h"
#include "support/published.h"
#include "support/random_plan.h"
#include "support/random_problem.h"

namespace placewright::testing {
namespace {

using Json = nlohmann::json;

struct Sample {
  Problem problem;
  Plan plan;
};

std::optional<Sample> random_sample(std::uint64_t seed) {
  constexpr Objective kObjectives[] = {Objective::latency, Objective::total_completion,
                                       Objective::throughput, Objective::call_latency};
  RandomProblemOptions options;
  options.ops = 12;
  options.objective = kObjectives[seed % 4];
  options.interconnect = options.objective == Objective::call_latency || seed % 3 == 0
                             ? InterconnectKind::host
                             : InterconnectKind::links;
  options.models = options.objective == Objective::total_completion ? 3 : 1;
  options.congestion = seed % 5 != 0;
  options.overheads = seed % 3 == 1;
  options.lanes = seed % 2 == 0;
  options.zero_times = seed % 4 == 1;
  ProblemDraft draft = random_draft(options, seed);
  draft.rules.contiguity = Contiguity::none;
  draft.rules.calls_per_device = 12;
  Problem problem(std::move(draft));
  RandomSource random(seed);
  auto plan = plan_of_placement(problem, random_placement(problem, random));
  if (!plan) return std::nullopt;
  return Sample{std::move(problem), std::move(*plan)};
}

struct Span {
  long long start;
  long long end;
};

// Whole nanoseconds again.
long long nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

// Slices of a track, in the order of the file, must nest or follow each other: the rule of
// complete events on one thread.
void expect_nested(const std::vector<Span>& spans, const std::string& where) {
  std::vector<Span> sorted = spans;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Span& a, const Span& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<Span> open;
  for (const Span& span : sorted) {
    while (!open.empty() && open.back().end <= span.start) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(span.end, open.back().end) << where;
    }
    open.push_back(span);
  }
}

TEST(TraceExport, IsJsonWhoseSlicesNeverOverlapOnATrack) {
  std::size_t traces = 0;
  std::size_t slices = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto sample = random_sample(seed);
    if (!sample) continue;
    const Json trace = Json::parse(trace_json(sample->problem, sample->plan));
    std::map<std::pair<int, int>, std::vector<Span>> tracks;
    std::map<std::pair<int, int>, std::string> names;
    for (const Json& event : trace.at("traceEvents")) {
      const std::pair track(event.at("pid").get<int>(), event.at("tid").get<int>());
      if (event.at("ph") == "M") {
        if (event.at("name") == "thread_name") names[track] = event.at("args").at("name");
        continue;
      }
      ASSERT_EQ(event.at("ph"), "X");
      const long long start = nanoseconds(event.at("ts"));
      const long long length = nanoseconds(event.at("dur"));
      EXPECT_GE(start, 0);
      EXPECT_GE(length, 0);
      tracks[track].push_back({start, start + length});
      ++slices;
    }
    for (const auto& [track, spans] : tracks) {
      EXPECT_TRUE(names.contains(track)) << "seed " << seed;
      expect_nested(spans, "seed " + std::to_string(seed) + ", " + names[track]);
    }
    ++traces;
  }
  EXPECT_GT(traces, 150U);
  EXPECT_GT(slices, 2000U);
}

TEST(TraceExport, ShowsEveryOpTransferAndModelOfASchedule) {
  const auto sample = random_sample(1);  // total-completion
  ASSERT_TRUE(sample && sample->plan.schedule);
  std::map<std::string, std::size_t> count;
  const Json trace = Json::parse(trace_json(sample->problem, sample->plan));
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") ++count[event.at("cat")];
  }
  EXPECT_EQ(count["op"], sample->problem.op_count());
  EXPECT_EQ(count["transfer"], sample->plan.schedule->transfers.size());
  EXPECT_GE(count["model"], 2 * sample->problem.model_count());
}

// The checker of nesting can fail.
TEST(TraceExport, NestingIsReallyChecked) {
  EXPECT_NONFATAL_FAILURE(expect_nested({{0, 2}, {1, 3}}, "overlap"), "overlap");
}

TEST(ModelExplorerExport, EdgesNameNodesOfTheirGraph) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto sample = random_sample(seed);
    if (!sample) continue;
    const Json document = Json::parse(model_explorer_graph(sample->problem, sample->plan));
    const Json data = Json::parse(model_explorer_node_data(sample->problem, sample->plan));
    std::size_t nodes = 0;
    std::size_t edges = 0;
    for (const Json& graph : document.at("graphs")) {
      std::map<std::string, Json> by_id;
      for (const Json& node : graph.at("nodes")) by_id[node.at("id")] = node;
      ASSERT_EQ(by_id.size(), graph.at("nodes").size());
      for (const auto& [id, node] : by_id) {
        EXPECT_TRUE(node.at("label").is_string());
        EXPECT_TRUE(node.at("namespace").is_string());
        EXPECT_TRUE(data.at(graph.at("id").get<std::string>()).at("results").contains(id));
        for (const Json& attribute : node.at("attrs")) {
          EXPECT_TRUE(attribute.at("key").is_string() && attribute.at("value").is_string());
        }
        for (const Json& edge : node.at("incomingEdges")) {
          EXPECT_TRUE(by_id.contains(edge.at("sourceNodeId")));
          EXPECT_TRUE(edge.at("sourceNodeOutputId").is_string());
          ++edges;
        }
      }
      nodes += by_id.size();
    }
    EXPECT_EQ(nodes, sample->problem.op_count());
    std::size_t inputs = 0;
    for (const OpId op : sample->problem.ops()) inputs += sample->problem.inputs(op).size();
    EXPECT_EQ(edges, inputs);
  }
}

TEST(DotExport, HasEveryOpAndBalancedBraces) {
  const Problem problem = published_problem("moirai/example-1.json", Objective::latency);
  RandomSource random(1);
  const auto plan = plan_of_placement(problem, random_placement(problem, random));
  ASSERT_TRUE(plan);
  const std::string text = dot_text(problem, *plan);
  EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'));
  EXPECT_EQ(std::count(text.begin(), text.end(), '"') % 2, 0);
  for (const OpId op : problem.ops()) {
    EXPECT_THAT(text, ::testing::HasSubstr("o" + std::to_string(op.index()) + " [label="));
  }
}

TEST(CsvExport, HasARowForEachOpAndTransferAndQuotesNames) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
  // A spreadsheet would run it.
  EXPECT_EQ(csv_field("=cmd|'/c calc'!A1"), "'=cmd|'/c calc'!A1");
  EXPECT_EQ(csv_field("@SUM(1,2)"), "\"'@SUM(1,2)\"");
  EXPECT_EQ(csv_field("+x"), "'+x");
  EXPECT_EQ(csv_field("-x"), "'-x");
  EXPECT_EQ(csv_field("-1.5e-3"), "-1.5e-3");
  const auto sample = random_sample(4);
  ASSERT_TRUE(sample);
  const PlanRows rows = plan_rows(sample->problem, sample->plan);
  EXPECT_EQ(rows.rows.size(), sample->problem.op_count() + sample->plan.schedule->transfers.size());
  std::istringstream lines(csv_text(rows));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 9) << line;
  }
  EXPECT_EQ(count, rows.rows.size() + 1);
}

}  // namespace
}  // namespace placewright::testing
