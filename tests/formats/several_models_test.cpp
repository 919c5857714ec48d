// Trace files, tables of speed-ups, and several files as one problem.

#include <string>

#include <gtest/gtest.h>

#include "formats/input_error.h"
#include "formats/speedup_table.h"
#include "formats/trace_file.h"
#include "problem/join.h"
#include "support/published.h"

namespace placewright {
namespace {

constexpr const char* kTrace = R"({"placewright": "trace", "version": 1, "name": "morning",
  "models": ["bert.json", "/abs/resnet.json"], "cluster": "devices.json",
  "arrivals": [{"model": "bert", "time": 0}, {"model": "bert", "time": 2, "weight": 3},
               {"model": "resnet", "name": "r", "time": 1, "deadline": 20, "cancelled": 12}]})";

TEST(TraceFile, EveryKey) {
  const TraceFile file = parse_trace(kTrace, "folder/trace.json");
  EXPECT_EQ(file.trace.name, "morning");
  EXPECT_EQ(file.models, (std::vector<std::string>{"folder/bert.json", "/abs/resnet.json"}));
  EXPECT_EQ(file.cluster, "folder/devices.json");
  ASSERT_EQ(file.trace.arrivals.size(), 3U);
  EXPECT_EQ(file.trace.arrivals[0].name, "bert 1");
  EXPECT_EQ(file.trace.arrivals[1].name, "bert 2");
  EXPECT_DOUBLE_EQ(file.trace.arrivals[1].weight, 3);
  EXPECT_EQ(file.trace.arrivals[2].name, "r");
  EXPECT_DOUBLE_EQ(*file.trace.arrivals[2].deadline, 20);
  EXPECT_DOUBLE_EQ(*file.trace.arrivals[2].cancelled, 12);
  EXPECT_TRUE(file.warnings.empty());
  EXPECT_TRUE(is_trace(kTrace, "t"));
  EXPECT_FALSE(is_trace(R"({"models": []})", "t"));
}

std::string fault_of(const std::string& text) {
  try {
    (void)parse_trace(text, "t.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TraceFile, FaultsNameThePlace) {
  const auto trace = [](const std::string& arrival) {
    return R"({"placewright": "trace", "version": 1, "models": ["a.json"], "arrivals": [)" +
           arrival + "]}";
  };
  EXPECT_NE(fault_of(trace(R"({"model": "a", "time": -1})")).find("/arrivals/0/time"),
            std::string::npos);
  for (const std::string key : {"time", "weight", "deadline", "cancelled"}) {
    const std::string arrival = R"({"model": "a", "time": 1, ")" + key + R"(": 1e101})";
    EXPECT_NE(fault_of(trace(key == "time" ? R"({"model": "a", "time": 1e101})" : arrival))
                  .find("/arrivals/0/" + key + ": expected a number up to 1e+100, found 1e+101"),
              std::string::npos);
  }
  EXPECT_NE(fault_of(trace(R"({"model": "a", "time": 5, "cancelled": 4})")).find("/cancelled"),
            std::string::npos);
  EXPECT_NE(fault_of(trace(R"({"time": 5})")).find("/arrivals/0"), std::string::npos);
  EXPECT_NE(fault_of(trace("")).find("/arrivals"), std::string::npos);
  EXPECT_NE(fault_of(R"({"placewright": "trace", "version": 2})"), "");
}

TEST(SpeedUpTable, PublishedTables) {
  for (const char* model : {"alexnet", "bert", "googlenet", "resnet50", "squeezenet"}) {
    const SpeedUpTable table =
        read_speed_up_table(testing::example_path(std::string("talos/speedups/") + model + ".csv"));
    EXPECT_EQ(table.name, model);
    EXPECT_GE(table.rows.size(), 49U);
    for (const SpeedUpRow& row : table.rows) {
      EXPECT_NE(row.type, "");
      EXPECT_NEAR(*row.cpu_mean / *row.gpu_mean, row.speed_up, 0.01 * row.speed_up) << row.type;
    }
  }
}

TEST(SpeedUpTable, FaultsNameTheLine) {
  const auto fault = [](const std::string& text) -> std::string {
    try {
      (void)parse_speed_up_table(text, "t.csv");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(fault("operator, speed\n").find("no column 'speedup'"), std::string::npos);
  EXPECT_NE(fault("operator, speedup\nconv, fast\n").find("line 2"), std::string::npos);
  EXPECT_NE(fault("operator, speedup\nconv\n").find("1 cells under 2 titles"), std::string::npos);
  EXPECT_NE(fault(""), "");
  EXPECT_NE(fault(std::string("o\0p\0", 4)).find("UTF-16"), std::string::npos);
}

TEST(SpeedUpTable, AByteOrderMarkIsNotPartOfTheFirstTitle) {
  const SpeedUpTable table =
      parse_speed_up_table("\xEF\xBB\xBFoperator,speedup\r\nconv,2\r\n", "t.csv");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].type, "conv");
}

TEST(Join, TheSameFileTwice) {
  const ProblemDraft draft =
      testing::published_file("talos/six_ops.json", Objective::total_completion).draft;
  const Problem problem(joined({draft, draft}));
  EXPECT_EQ(problem.model_count(), 4U);
  EXPECT_EQ(problem.op_count(), 12U);
  EXPECT_EQ(problem.model(ModelId{2}).name, "model1 2");
  EXPECT_EQ(problem.op(OpId{6}).name, "model1 2/op1");
  EXPECT_EQ(problem.predecessors(OpId{7})[0], OpId{6});
}

TEST(Join, OtherDevicesAreRefused) {
  const ProblemDraft draft =
      testing::published_file("talos/six_ops.json", Objective::total_completion).draft;
  ProblemDraft other = draft;
  other.cluster.devices[0].lanes = 2;
  EXPECT_THROW((void)joined({draft, other}), std::invalid_argument);
  other = draft;
  other.unit = TimeUnit::seconds;
  EXPECT_THROW((void)joined({draft, other}), std::invalid_argument);
}

TEST(Join, CostsThatWereMeasuredAnewBecomeTheirMeans) {
  ProblemDraft one =
      testing::published_file("talos/six_ops.json", Objective::total_completion).draft;
  one.cluster.interconnect = InterconnectKind::links;
  one.cluster.links = {{DeviceId{0}, DeviceId{1}, 2, 100}};
  one.origin = {"measured: one"};
  ProblemDraft other = one;
  other.cluster.devices[0].send_overhead = 3;
  other.cluster.links[0].latency = 4;
  other.cluster.links[0].bandwidth = 50;
  other.origin = {"measured: other"};
  const ProblemDraft both = joined({one, other});
  EXPECT_DOUBLE_EQ(both.cluster.devices[0].send_overhead, 1.5);
  EXPECT_DOUBLE_EQ(both.cluster.links[0].latency, 3);
  EXPECT_DOUBLE_EQ(1 / both.cluster.links[0].bandwidth, (1.0 / 100 + 1.0 / 50) / 2);
  EXPECT_EQ(both.ops[0].time, one.ops[0].time);
  ASSERT_EQ(both.origin.size(), 3U);
  EXPECT_NE(both.origin[2].find("means of what the 2 joined problems state"), std::string::npos);
}

}  // namespace
}  // namespace placewright
