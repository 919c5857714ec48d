#include "formats/plan_file.h"

#include <filesystem>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "formats/input_error.h"
#include "formats/published_inputs.h"
#include "formats/text_file.h"
#include "support/folder.h"
#include "support/published.h"

namespace placewright {
namespace {

using testing::example_path;
using testing::Folder;
using testing::published_inputs;

double any_number(std::mt19937& random) {
  return std::uniform_real_distribution<double>(0, 100)(random);
}

// A plan that fills every field; whether it is a valid one is not this room's business.
PlanFile random_plan(const Problem& problem, unsigned seed) {
  std::mt19937 random(seed);
  const auto any_device = [&] { return DeviceId{random() % problem.device_count()}; };
  PlanFile file;
  file.plan.placement = Placement(problem.op_count());
  for (const OpId op : problem.ops()) file.plan.placement[op] = any_device();
  file.plan.value = any_number(random);
  if (is_schedule(problem.objective())) {
    Schedule schedule;
    schedule.start.assign(problem.op_count(), 0);
    schedule.end.assign(problem.op_count(), 0);
    for (const OpId op : problem.ops()) schedule.start[op] = any_number(random);
    for (const OpId op : problem.ops()) schedule.end[op] = any_number(random);
    for (const TensorId tensor : problem.tensors()) {
      schedule.transfers.push_back({tensor, Leg::direct, any_device(), any_device(),
                                    any_number(random), any_number(random)});
      schedule.transfers.push_back({tensor, Leg::out, any_device(), DeviceId{}, 0, 1});
      schedule.transfers.push_back({tensor, Leg::in, DeviceId{}, any_device(), 1, 2});
    }
    file.plan.schedule = std::move(schedule);
  } else {
    file.plan.stages = {{{any_device(), any_device()}, {OpId{0}, OpId{1}}, any_number(random)},
                        {{any_device()}, {OpId{2}}, 0}};
    file.plan.calls = {{any_device(), {OpId{2}, OpId{0}}, 0.25, any_number(random)}};
  }
  file.plan.groups = {{OpId{0}}, {OpId{2}, OpId{1}}};
  file.certificate = {file.plan.value / 3, "a bound \"in quotes\""};
  file.status = Status::feasible;
  file.planner = "random";
  file.settings = {{"order", "rank"}, {"width", "3"}};
  file.seed = std::numeric_limits<std::uint64_t>::max() - seed;
  file.seconds = 1.0 / 3;
  file.problem = {"models/model.json", "digest", {}, {}, {}};
  return file;
}

void expect_equal(const PlanFile& read, const PlanFile& written) {
  EXPECT_TRUE(read.plan == written.plan);
  EXPECT_EQ(read.certificate.lower_bound, written.certificate.lower_bound);
  EXPECT_EQ(read.certificate.method, written.certificate.method);
  EXPECT_EQ(read.status, written.status);
  EXPECT_EQ(read.planner, written.planner);
  EXPECT_EQ(read.settings, written.settings);
  EXPECT_EQ(read.seed, written.seed);
  EXPECT_EQ(read.seconds, written.seconds);
  EXPECT_EQ(read.reason, written.reason);
  EXPECT_EQ(read.problem, written.problem);
  EXPECT_TRUE(read.warnings.empty());
}

TEST(PlanFile, RoundTripOnEveryPublishedInput) {
  unsigned seed = 1;
  for (const auto& input : published_inputs()) {
    SCOPED_TRACE(input.path);
    const Problem problem = build_problem(read_problem(example_path(input.path)));
    const PlanFile plan = random_plan(problem, seed++);
    const std::string text = write_plan(problem, plan);
    expect_equal(PlanDocument(text, "plan.json").read(problem), plan);
  }
}

TEST(PlanFile, HasTheKeysOfTheContract) {
  const Problem problem = build_problem(read_problem(example_path("talos/six_ops.json")));
  const PlanFile plan = random_plan(problem, 1);
  const auto json = nlohmann::json::parse(write_plan(problem, plan));
  EXPECT_EQ(json.at("status"), "feasible");
  EXPECT_EQ(json.at("objective"), "total-completion");
  EXPECT_EQ(json.at("planner"), "random");
  EXPECT_EQ(json.at("value"), plan.plan.value);
  EXPECT_EQ(json.at("lower_bound"), plan.certificate.lower_bound);
  EXPECT_NEAR(json.at("gap").get<double>(), 2.0 / 3, 1e-12);
  EXPECT_EQ(json.at("unit"), "ms");
  EXPECT_EQ(json.at("seconds"), plan.seconds);
  ASSERT_EQ(json.at("placement").size(), 6U);
  EXPECT_EQ(json.at("placement").at("op1"), problem.device(plan.plan.placement[OpId{0}]).name);
}

TEST(PlanFile, NoPlanIsAnAnswerToo) {
  const Problem problem = build_problem(read_problem(example_path("talos/six_ops.json")));
  PlanFile none;
  none.status = Status::infeasible;
  none.certificate = {kInfinity, "memory"};
  none.planner = "single";
  none.reason = "the ops need 5 bytes and the devices have 4";
  const std::string text = write_plan(problem, none);
  const auto json = nlohmann::json::parse(text);
  EXPECT_TRUE(json.at("value").is_null());
  EXPECT_TRUE(json.at("lower_bound").is_null());
  EXPECT_TRUE(json.at("gap").is_null());
  EXPECT_TRUE(json.at("placement").empty());
  const PlanFile again = PlanDocument(text, "plan.json").read(problem);
  EXPECT_FALSE(again.has_plan());
  expect_equal(again, none);
}

TEST(PlanFile, FindsItsProblemFromItsOwnFolder) {
  const Folder folder;
  std::filesystem::create_directories(folder.file("models"));
  std::filesystem::create_directories(folder.file("plans"));
  const std::string problem_path = folder.file("models/six.json");
  const std::string plan_path = folder.file("plans/plan.json");
  std::filesystem::copy_file(example_path("talos/six_ops.json"), problem_path);
  ReadOptions options;
  options.objective = Objective::latency;
  ProblemFile file = read_problem(problem_path, options);
  file.draft.rules.congestion = false;
  const Problem problem = build_problem(file);

  PlanFile plan = random_plan(problem, 3);
  plan.problem = {problem_path, file.digest, "talos", {}, {}};
  const std::string text = write_plan(problem, plan, {.path = plan_path});
  EXPECT_NE(text.find("\"../models/six.json\""), std::string::npos) << text;
  write_whole(plan_path, text);

  // Moved together, both still find each other.
  std::filesystem::rename(folder.file("models"), folder.file("x"));
  std::filesystem::rename(folder.file("plans"), folder.file("y"));
  std::filesystem::create_symlink("x", folder.file("models"));
  const std::string moved = folder.file("y/plan.json");
  const PlanReference reference = PlanDocument(read_whole(moved), moved).reference();
  EXPECT_EQ(reference.problem.path, problem_path);
  EXPECT_EQ(reference.problem.digest, file.digest);
  const ProblemFile found = problem_of_plan(reference, moved);
  EXPECT_EQ(found.digest, file.digest);
  EXPECT_TRUE(found.draft == file.draft);
  EXPECT_TRUE(PlanDocument(text, moved).read(build_problem(found)).plan == plan.plan);
}

// A bare name of a plan that is yet to be written, as in `plan model.json -o plan.json`.
TEST(PlanFile, NamesItsProblemRelativeToAFileThatIsNotThereYet) {
  const std::string model = "examples/moirai/example-1.json";
  const Problem problem = build_problem(read_problem(example_path("moirai/example-1.json")));
  PlanFile plan = random_plan(problem, 1);
  plan.problem.path = model;
  const auto written =
      nlohmann::json::parse(write_plan(problem, plan, {.path = "not-there-yet.json"}));
  EXPECT_EQ(written["problem"]["path"], model);
}

TEST(PlanFile, KeepsTheClusterOfItsProblem) {
  const Folder folder;
  const std::string cluster = folder.file("cluster.json");
  write_whole(cluster, R"({"placewright": "cluster", "version": 1, "kinds": [{"name": "gpu"}],
    "devices": [{"name": "g", "kind": "gpu"}], "interconnect": {"kind": "links"}})");
  ReadOptions options;
  options.cluster = cluster;
  const ProblemFile file = read_problem(example_path("talos/six_ops.json"), options);
  const Problem problem = build_problem(file);
  PlanFile plan = random_plan(problem, 3);
  plan.problem = {
      example_path("talos/six_ops.json"), file.digest, {}, cluster, file.cluster_digest};
  const std::string plan_path = folder.file("plan.json");
  const std::string text = write_plan(problem, plan, {.path = plan_path});
  const PlanReference reference = PlanDocument(text, plan_path).reference();
  EXPECT_EQ(reference.problem.cluster_path, cluster);
  EXPECT_EQ(reference.problem.cluster_digest, digest_of(read_whole(cluster)));
  EXPECT_TRUE(problem_of_plan(reference, plan_path).draft == file.draft);
}

// The plan's objective is the file's own, so nothing of the file may change by stating it again.
TEST(PlanFile, KeepsTheHostDeviceOfACallLatencyProblem) {
  const Folder folder;
  const std::string path = folder.file("calls.json");
  write_whole(path, R"({"placewright": "problem", "version": 1, "objective": "call-latency",
    "kinds": [{"name": "k", "host": true}], "devices": [{"name": "box", "kind": "k", "memory": 7}],
    "interconnect": {"kind": "host"}, "ops": [{"name": "x", "time": [1]}]})");
  const ProblemFile file = read_problem(path);
  const Problem problem = build_problem(file);
  PlanFile plan;
  plan.status = Status::feasible;
  plan.plan.placement = Placement(1, DeviceId{0});
  plan.problem = {path, file.digest, {}, {}, {}};
  const PlanReference reference = PlanDocument(write_plan(problem, plan), "plan.json").reference();
  EXPECT_TRUE(problem_of_plan(reference, "plan.json").draft == file.draft);
}

TEST(PlanFile, CanHoldItsProblem) {
  for (const auto& input : published_inputs()) {
    SCOPED_TRACE(input.path);
    const ProblemFile file = read_problem(example_path(input.path));
    const Problem problem = build_problem(file);
    PlanFile plan = random_plan(problem, 5);
    plan.problem = {"-", file.digest, {}, {}, {}};
    const std::string text = write_plan(problem, plan, {.embed = true, .path = "-"});
    const PlanReference reference = PlanDocument(text, "-").reference();
    ASSERT_TRUE(reference.embedded.has_value());
    const ProblemFile found = problem_of_plan(reference, "-");
    EXPECT_TRUE(found.draft == file.draft);
    EXPECT_EQ(found.digest, file.digest);
    expect_equal(PlanDocument(text, "standard input").read(build_problem(found)), plan);
  }
}

TEST(PlanFile, WithoutAProblemSaysSo) {
  const Problem problem = build_problem(read_problem(example_path("talos/six_ops.json")));
  PlanFile plan = random_plan(problem, 5);
  plan.problem = {"-", "", {}, {}, {}};
  const PlanReference reference = PlanDocument(write_plan(problem, plan), "plan.json").reference();
  try {
    (void)problem_of_plan(reference, "plan.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "plan.json: does not say in which file its problem is; give the problem's file as "
                 "well");
  }
  EXPECT_EQ(
      problem_of_plan(reference, "plan.json", example_path("talos/six_ops.json")).draft.ops.size(),
      6U);
}

TEST(PlanFile, FaultsOfAnEmbeddedProblemAreNamedInThePlan) {
  const Problem problem = build_problem(read_problem(example_path("talos/six_ops.json")));
  PlanFile plan = random_plan(problem, 5);
  std::string text = write_plan(problem, plan, {.embed = true});
  text.replace(text.find("\"op2\""), 5, "\"op1\"");  // the name of the second op
  text.replace(text.find("\"from\": \"op2\""), 13, "\"from\": \"op1\"");
  text.replace(text.find("[\"op2\"]"), 7, "[\"op3\"]");
  try {
    (void)build_problem(problem_of_plan(PlanDocument(text, "plan.json").reference(), "plan.json"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.place(), "/problem/embedded/ops/1");
    EXPECT_EQ(error.message(), "two ops are called 'op1' (numbers 0 and 1)");
  }
}

struct BadPlan {
  std::string find;
  std::string replacement;
  std::string place;
  std::string message;
};

TEST(PlanFile, BadPlansNameTheirPlace) {
  const Problem problem = build_problem(read_problem(example_path("talos/six_ops.json")));
  PlanFile plan = random_plan(problem, 5);
  for (const OpId op : problem.ops()) plan.plan.placement[op] = DeviceId{1};
  const std::string good = write_plan(problem, plan);
  const std::vector<BadPlan> cases = {
      {"\"op1\": \"GPU\"", "\"op1\": \"TPU\"", "/placement/op1", "the problem has no device 'TPU'"},
      {"\"op1\": \"GPU\"", "\"op9\": \"GPU\"", "/placement/op9", "the problem has no op 'op9'"},
      {"\"op1\": \"GPU\",", "", "/placement", "the op 'op1' is placed nowhere"},
      {"\"op\": \"op2\"", "\"op\": \"op1\"", "/schedule/ops/1", "the op 'op1' is scheduled twice"},
      {"\"op\": \"op2\"", "\"op\": \"op7\"", "/schedule/ops/1/op", "the problem has no op 'op7'"},
      {"\"op\": \"op2\", \"device\": \"GPU\"", "\"op\": \"op2\", \"device\": \"CPU\"",
       "/schedule/ops/1/device", "the op 'op2' is placed on 'GPU' but scheduled on 'CPU'"},
      {"\"tensor\": 0", "\"tensor\": 44", "/schedule/transfers/0/tensor",
       "the problem has no tensor number 44, only 4 of them"},
      {"\"tensor\": 0", "\"tensor\": \"t\"", "/schedule/transfers/0/tensor",
       "the problem has no tensor 't'"},
      {"\"leg\": \"direct\"", "\"leg\": \"left\"", "/schedule/transfers/0/leg",
       "expected 'direct', 'out' or 'in', found 'left'"},
      {"\"feasible\"", "\"good\"", "/status",
       "expected 'optimal', 'feasible', 'infeasible' or 'unknown', found 'good'"},
      {"\"total-completion\"", "\"latency\"", "/objective",
       "the plan is for the objective latency, the problem for total-completion"},
      {"\"version\": 1", "\"version\": 7", "/version",
       "the version of this plan file is not known: version 1 is read"},
      {"\"placement\"", "\"placements\"", "", "the status is feasible, but there is no placement"},
      {"\"placewright\"", "\"x\"", "",
       "is not a plan: expected the key 'placewright' (our own format), or the key 'fpgas' "
       "(expert split), or the key 'split_spec' (split points), or names of devices for all of its "
       "keys (device map)"},
      {"[\"op3\", \"op2\"]", "[\"op3\", \"op1\"]", "/groups/1/1", "the op 'op1' is in two groups"},
      {"[\"op3\", \"op2\"]", "[\"op3\", \"op9\"]", "/groups/1/1", "the problem has no op 'op9'"},
      {"[\"op3\", \"op2\"]", "[]", "/groups/1", "a group needs at least one op"},
      {"\"value\": ", "\"value\": \"", "line 3, column 11", ""},
  };
  for (const BadPlan& bad : cases) {
    SCOPED_TRACE(bad.replacement);
    std::string text = good;
    ASSERT_NE(text.find(bad.find), std::string::npos);
    text.replace(text.find(bad.find), bad.find.size(), bad.replacement);
    try {
      (void)PlanDocument(text, "plan.json").read(problem);
      FAIL() << "was accepted";
    } catch (const InputError& error) {
      if (bad.message.empty()) continue;
      EXPECT_EQ(error.place(), bad.place);
      EXPECT_EQ(error.message(), bad.message);
    }
  }
}

TEST(PlanFile, UnknownKeysAreWarnings) {
  const Problem problem = build_problem(read_problem(example_path("talos/six_ops.json")));
  std::string text = write_plan(problem, random_plan(problem, 5));
  text.replace(text.find("\"seed\""), 6, "\"seeds\"");
  const PlanFile plan = PlanDocument(text, "plan.json").read(problem);
  ASSERT_EQ(plan.warnings.size(), 1U);
  EXPECT_EQ(plan.warnings[0], "plan.json: /seeds: the key is not known and was ignored");
}

TEST(ExpertSplit, GivesAPlacementOfEveryPublishedSplit) {
  for (const std::string name : {"bert24_inference", "bert24_training", "gnmt_inference",
                                 "gnmt_training", "resnet50_inference"}) {
    SCOPED_TRACE(name);
    const ProblemFile file =
        read_problem(example_path("msr/throughput/LayerGraphs/" + name + ".json"));
    const Problem problem = build_problem(file);
    const std::string path = example_path("msr/human-experts/" + name + "_expert.json");
    const std::string text = read_whole(path);
    const PlanFile plan = PlanDocument(text, path).read(problem, file.op_ids);
    ASSERT_TRUE(plan.has_plan());
    const auto split = nlohmann::json::parse(text);
    for (std::size_t device = 0; device < split.at("fpgas").size(); ++device) {
      for (const int id : split.at("fpgas")[device].at("nodes")) {
        const auto at = std::find(file.op_ids.begin(), file.op_ids.end(), std::to_string(id));
        const OpId op{static_cast<std::size_t>(at - file.op_ids.begin())};
        EXPECT_EQ(plan.plan.placement[op], DeviceId{device});
      }
    }
    EXPECT_FALSE(PlanDocument(text, path).reference().objective.has_value());
  }
}

TEST(ExpertSplit, UnlistedOpsFollowTheirColour) {
  const ProblemFile file =
      read_problem(example_path("msr/throughput/LayerGraphs/bert24_training.json"));
  const Problem problem = build_problem(file);
  auto split = nlohmann::json::parse(
      read_whole(example_path("msr/human-experts/bert24_training_expert.json")));
  const PlanFile whole = PlanDocument(split.dump(), "split.json").read(problem, file.op_ids);
  for (auto& list : split["fpgas"]) {
    std::vector<int> forward;
    for (const int id : list["nodes"]) {
      if (id <= 32) forward.push_back(id);
    }
    list["nodes"] = forward;
  }
  const PlanFile half = PlanDocument(split.dump(), "split.json").read(problem, file.op_ids);
  EXPECT_TRUE(half.plan.placement == whole.plan.placement);
}

TEST(ExpertSplit, BadSplitsNameTheirPlace) {
  const ProblemFile file =
      read_problem(example_path("msr/throughput/LayerGraphs/bert24_inference.json"));
  const Problem problem = build_problem(file);
  const auto complaint = [&](const std::string& text) -> std::string {
    try {
      (void)PlanDocument(text, "split.json").read(problem, file.op_ids);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no complaint";
  };
  EXPECT_EQ(complaint(R"({"fpgas": [{"nodes": [1, 99]}]})"),
            "split.json: /fpgas/0/nodes/1: the problem has no node with the id 99");
  EXPECT_EQ(complaint(R"({"fpgas": [{"nodes": [1]}, {"nodes": [1]}]})"),
            "split.json: /fpgas/1/nodes/0: the node 1 is on 'acc0' already");
  EXPECT_EQ(complaint(R"({"fpgas": [{"nodes": [1]}]})"),
            "split.json: the op 'node3' is in no list");
  EXPECT_EQ(complaint(R"({"fpgas": [], "cpus": [{"nodes": []}, {"nodes": [1]}]})"),
            "split.json: /cpus/1: the problem has only 1 host devices");
}

}  // namespace
}  // namespace placewright
