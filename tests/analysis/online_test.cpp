// Models that arrive and go while others run.

#include "analysis/online.h"

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "support/published.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

Problem two_chains() {
  return testing::published_problem("talos/two_chains.json", Objective::total_completion);
}

Problem generated(GraphFamily family, std::size_t ops, std::size_t models, std::uint64_t seed) {
  GenerateOptions options;
  options.family = family;
  options.objective = Objective::total_completion;
  options.ops = ops;
  options.models = models;
  options.devices = 3;
  options.seed = seed;
  return Problem(generate(options));
}

TraceArrival arrival(const std::string& model, const std::string& name, double time) {
  TraceArrival made;
  made.model = model;
  made.name = name;
  made.time = time;
  return made;
}

// One model "m" of ops with (cpu, gpu) times in a chain.
Problem chain(const std::vector<std::pair<double, double>>& times) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  draft.cluster.kinds = {{"cpu"}, {"gpu"}};
  draft.cluster.devices = {{.name = "CPU", .kind = KindId{0}}, {.name = "GPU", .kind = KindId{1}}};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}}, {DeviceId{1}, DeviceId{0}}};
  draft.models = {{.name = "m"}};
  for (std::size_t i = 0; i < times.size(); ++i) {
    draft.ops.push_back({.name = std::to_string(i), .time = {times[i].first, times[i].second}});
    if (i > 0) draft.tensors.push_back({.producer = OpId{i - 1}, .consumers = {OpId{i}}});
  }
  return Problem(std::move(draft));
}

TEST(Online, EveryMethodRunsEveryTraceSoundly) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Problem catalogue =
        generated(seed % 2 == 0 ? GraphFamily::inception : GraphFamily::layered, 60, 3, seed);
    ArrivalTrace trace = poisson_trace(catalogue, 8, 0.3 * mean_time_alone(catalogue), seed);
    if (seed % 3 == 0) trace.arrivals[2].cancelled = trace.arrivals[4].time;
    for (const OnlineMethod method : values_of<OnlineMethod>()) {
      SCOPED_TRACE(std::string{name_of(method)} + ", seed " + std::to_string(seed));
      const OnlineRun run = run_online(catalogue, trace, method);
      EXPECT_EQ(run.fault, "");
      EXPECT_GE(run.total_completion, run.lower_bound * (1 - 1e-9));
      EXPECT_EQ(run.models.size(), 8U);
      for (std::size_t i = 0; i < run.models.size(); ++i) {
        EXPECT_EQ(run.models[i].complete, !trace.arrivals[i].cancelled || run.models[i].complete);
        EXPECT_GE(run.models[i].completion, trace.arrivals[i].time);
      }
    }
  }
}

TEST(Online, AnArrivalAtTheMomentAnotherEnds) {
  const Problem catalogue = chain({{9, 2}, {9, 2}});
  ArrivalTrace trace{"t", {arrival("m", "a", 0), arrival("m", "b", 4)}};
  const OnlineRun run = run_online(catalogue, trace, OnlineMethod::talos, {1, 0});
  EXPECT_EQ(run.fault, "");
  EXPECT_DOUBLE_EQ(run.models[0].completion, 4);
  EXPECT_DOUBLE_EQ(run.models[1].completion, 8);
  EXPECT_DOUBLE_EQ(run.total_completion, 8);
}

TEST(Online, ACancelledModelMakesRoomAndDoesNotCount) {
  const Problem catalogue = chain({{90, 2}, {90, 2}, {90, 2}, {90, 2}});
  ArrivalTrace trace{"t", {arrival("m", "a", 0), arrival("m", "b", 1)}};
  trace.arrivals[0].cancelled = 3;
  const OnlineRun run = run_online(catalogue, trace, OnlineMethod::tsam, {1, 0});
  EXPECT_EQ(run.fault, "");
  EXPECT_FALSE(run.models[0].complete);
  EXPECT_TRUE(run.models[1].complete);
  for (const OnlineMethod method : values_of<OnlineMethod>()) {
    const OnlineRun other = run_online(catalogue, trace, method, {1, 0});
    EXPECT_EQ(other.fault, "");
    EXPECT_FALSE(other.models[0].complete) << name_of(method);
    EXPECT_DOUBLE_EQ(other.total_completion, other.models[1].completion - 1) << name_of(method);
  }
  // The op that runs at the moment of the cancellation ends first, at 4; then b has the GPU.
  const OnlineRun flow = run_online(catalogue, trace, OnlineMethod::talos, {1, 0});
  EXPECT_DOUBLE_EQ(flow.models[1].completion, 12);
}

TEST(Online, OpsThatHaveStartedStay) {
  // b is short and would go first if a's long op were not under way.
  const Problem catalogue = chain({{kUnsupported, 10}});
  const ArrivalTrace trace{"t", {arrival("m", "a", 0), arrival("m", "b", 5)}};
  const OnlineRun run = run_online(catalogue, trace, OnlineMethod::talos, {1, 0});
  EXPECT_DOUBLE_EQ(run.models[0].completion, 10);
  EXPECT_DOUBLE_EQ(run.models[1].completion, 20);
}

TEST(Online, DeadlinesAreReported) {
  const Problem catalogue = chain({{9, 2}});
  ArrivalTrace trace{"t", {arrival("m", "a", 0), arrival("m", "b", 0)}};
  trace.arrivals[0].deadline = trace.arrivals[1].deadline = 3;
  const OnlineRun run = run_online(catalogue, trace, OnlineMethod::talos, {1, 0});
  EXPECT_NE(run.models[0].late, run.models[1].late);
}

TEST(Online, TheSameSeedGivesTheSameTraceAndTheSameRun) {
  const Problem catalogue = two_chains();
  const ArrivalTrace first = poisson_trace(catalogue, 10, 1e5, 3);
  const ArrivalTrace second = poisson_trace(catalogue, 10, 1e5, 3);
  ASSERT_EQ(first.arrivals.size(), second.arrivals.size());
  for (std::size_t i = 0; i < first.arrivals.size(); ++i) {
    EXPECT_EQ(first.arrivals[i].time, second.arrivals[i].time);
    EXPECT_EQ(first.arrivals[i].name, second.arrivals[i].name);
  }
  EXPECT_EQ(run_online(catalogue, first, OnlineMethod::talos).total_completion,
            run_online(catalogue, second, OnlineMethod::talos).total_completion);
}

TEST(Online, BeatsTheBaselinesOnTwoChains) {
  const Problem catalogue = two_chains();
  const ArrivalTrace trace = poisson_trace(catalogue, 12, mean_time_alone(catalogue), 1);
  const double talos = run_online(catalogue, trace, OnlineMethod::talos).total_completion;
  EXPECT_LE(talos, run_online(catalogue, trace, OnlineMethod::aswm).total_completion);
  EXPECT_LE(talos, run_online(catalogue, trace, OnlineMethod::tsam).total_completion);
}

// Four cores, alone, in pairs and together; one model "m" that takes this long on each width.
Problem on_cores(const std::vector<double>& times) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  Cluster& cluster = draft.cluster;
  cluster.spaces = {{"memory", kInfinity}};
  for (std::size_t core = 0; core < 4; ++core) {
    cluster.resources.push_back({"core " + std::to_string(core), 1});
  }
  for (std::size_t width = 1; width <= 4; width *= 2) {
    cluster.kinds.push_back({"cpu-" + std::to_string(width)});
    for (std::size_t first = 0; first < 4; first += width) {
      Device& device = cluster.devices.emplace_back();
      device.name = std::to_string(first) + "+" + std::to_string(width);
      device.kind = KindId{cluster.kinds.size() - 1};
      device.space = SpaceId{0};
      for (std::size_t core = first; core < first + width; ++core) {
        device.uses.push_back({ResourceId{core}, 1});
      }
    }
  }
  draft.models = {{.name = "m"}};
  draft.ops = {{.name = "op", .time = times}};
  return Problem(std::move(draft));
}

TEST(OnlineOnCores, AModelAloneGetsAllCoresAndManyShareThem) {
  const Problem catalogue = on_cores({4, 3, 2.5});
  const ArrivalTrace alone{"t", {arrival("m", "a", 0)}};
  EXPECT_DOUBLE_EQ(run_online(catalogue, alone, OnlineMethod::talos).total_completion, 2.5);
  ArrivalTrace four{"t", {}};
  for (const char* name : {"a", "b", "c", "d"}) four.arrivals.push_back(arrival("m", name, 0));
  EXPECT_DOUBLE_EQ(run_online(catalogue, four, OnlineMethod::talos).total_completion, 16);
  EXPECT_DOUBLE_EQ(run_online(catalogue, four, OnlineMethod::shortest).total_completion, 25);
}

TEST(OnlineOnCores, SharingMustGainWhatIsAskedOfIt) {
  const Problem catalogue = on_cores({4, 3, 2.5});
  ArrivalTrace four{"t", {}};
  for (const char* name : {"a", "b", "c", "d"}) four.arrivals.push_back(arrival("m", name, 0));
  const auto total = [&](double least_gain) {
    return run_online(catalogue, four, OnlineMethod::talos, {.least_gain = least_gain})
        .total_completion;
  };
  EXPECT_DOUBLE_EQ(total(0.35), 16) << "36 % less than in turn";
  EXPECT_DOUBLE_EQ(total(0.37), 25);
}

TEST(OnlineOnCores, WhoHasTheCoresKeepsThem) {
  // b comes while a has all four cores.
  const Problem catalogue = on_cores({4, 3, 2.5});
  const ArrivalTrace trace{"t", {arrival("m", "a", 0), arrival("m", "b", 1)}};
  const OnlineRun run = run_online(catalogue, trace, OnlineMethod::talos);
  EXPECT_DOUBLE_EQ(run.models[0].completion, 2.5);
  EXPECT_DOUBLE_EQ(run.models[1].completion, 5);
}

void expect_sound_runs(const Problem& catalogue, std::uint64_t seed) {
  ArrivalTrace trace = poisson_trace(catalogue, 10, 0.5 * mean_time_alone(catalogue), seed);
  for (std::size_t i = seed % 3; i + 2 < 10; i += 3) {
    trace.arrivals[i].cancelled = trace.arrivals[i + 2].time;
  }
  for (const OnlineMethod method : values_of<OnlineMethod>()) {
    SCOPED_TRACE(std::string{name_of(method)} + ", seed " + std::to_string(seed));
    const OnlineRun run = run_online(catalogue, trace, method);
    EXPECT_EQ(run.fault, "");
    EXPECT_GE(run.total_completion, run.lower_bound * (1 - 1e-9));
    for (std::size_t i = 0; i < run.models.size(); ++i) {
      const auto& cancelled = trace.arrivals[i].cancelled;
      EXPECT_TRUE(run.models[i].complete || cancelled);
      EXPECT_LE(run.models[i].completion, cancelled.value_or(kInfinity));
    }
  }
}

TEST(OnlineOnCores, AModelThatIsCancelledWhileItRunsIsStoppedAndDoesNotCount) {
  const Problem catalogue = on_cores({4, 3, 2.5});
  ArrivalTrace trace{"t", {arrival("m", "dead", 0), arrival("m", "b", 1)}};
  trace.arrivals[0].cancelled = 2;
  for (const OnlineMethod method : {OnlineMethod::talos, OnlineMethod::shortest}) {
    const OnlineRun run = run_online(catalogue, trace, method);
    EXPECT_EQ(run.fault, "");
    EXPECT_FALSE(run.models[0].complete) << name_of(method);
    EXPECT_DOUBLE_EQ(run.models[1].completion, 4.5) << "the cores are free from 2 on";
    EXPECT_DOUBLE_EQ(run.total_completion, 3.5);
    EXPECT_LE(run.lower_bound, 3.5);
  }
  trace.arrivals[0].cancelled = 2.5;  // too late
  const OnlineRun late = run_online(catalogue, trace, OnlineMethod::talos);
  EXPECT_TRUE(late.models[0].complete);
  EXPECT_DOUBLE_EQ(late.total_completion, 2.5 + 4);
}

TEST(Online, ACancelledModelDoesNotCountAlthoughAllOfItsOpsHaveStarted) {
  const Problem catalogue = chain({{kUnsupported, 10}});
  ArrivalTrace trace{"t", {arrival("m", "dead", 0), arrival("m", "b", 1)}};
  trace.arrivals[0].cancelled = 3;
  const OnlineRun by_ops = run_online(catalogue, trace, OnlineMethod::talos, {1, 0});
  EXPECT_EQ(by_ops.fault, "");
  EXPECT_FALSE(by_ops.models[0].complete);
  EXPECT_DOUBLE_EQ(by_ops.total_completion, 19) << "an op runs on to its end";
  const OnlineRun whole = run_online(catalogue, trace, OnlineMethod::talos, {.whole = true});
  EXPECT_EQ(whole.fault, "");
  EXPECT_FALSE(whole.models[0].complete);
  EXPECT_DOUBLE_EQ(whole.total_completion, 12) << "a model that is whole is stopped";
}

TEST(OnlineOnCores, EveryMethodRunsEveryTraceSoundly) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    testing::RandomProblemOptions options;
    options.objective = Objective::total_completion;
    options.ops = 12;
    options.models = 3;
    expect_sound_runs(Problem(testing::core_set_draft(options, seed)), seed);
  }
}

TEST(Online, EveryMethodKnowsThatCutsCostTime) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    testing::RandomProblemOptions options;
    options.objective = Objective::total_completion;
    options.ops = 12;
    options.models = 3;
    options.overheads = seed % 3 != 1;
    options.cuts = seed % 3 != 2;
    expect_sound_runs(Problem(testing::random_draft(options, seed)), seed);
  }
}

TEST(OnlineOnCores, ModelsThatComeTogetherAreNeverWorseThanInTurn) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    testing::RandomProblemOptions options;
    options.objective = Objective::total_completion;
    options.ops = 12;
    options.models = 4;
    const Problem catalogue(testing::core_set_draft(options, seed));
    const ArrivalTrace trace = poisson_trace(catalogue, 6, 0, seed);
    EXPECT_LE(run_online(catalogue, trace, OnlineMethod::talos).total_completion,
              run_online(catalogue, trace, OnlineMethod::shortest).total_completion * (1 + 1e-9))
        << "seed " << seed;
  }
}

TEST(Online, WrongTracesAreRefused) {
  const Problem catalogue = chain({{9, 2}});
  EXPECT_THROW(trace_problem(catalogue, {"t", {}}), std::invalid_argument);
  EXPECT_THROW(trace_problem(catalogue, {"t", {arrival("x", "a", 0)}}), std::invalid_argument);
  EXPECT_THROW(trace_problem(catalogue, {"t", {arrival("m", "a", 0), arrival("m", "a", 1)}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace placewright
