// Small models on every backend. Nothing here depends on how long anything takes.

#include "profiling/profile.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/target_devices.h"
#include "formats/cluster_file.h"
#include "formats/input_error.h"
#include "formats/problem_file.h"
#include "problem/problem.h"
#include "support/backend_case.h"
#include "support/cache_folder.h"
#include "support/folder.h"
#include "support/program.h"
#include "zoo/zoo.h"

namespace placewright {
namespace {

using placewright::testing::backend_cases;
using placewright::testing::BackendCase;
using placewright::testing::Folder;
using placewright::testing::model_file;
using placewright::testing::name_of_case;
using placewright::testing::run;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ProfileRequest request_for(const std::vector<BackendCase>& models, const Folder& folder) {
  ProfileRequest request;
  for (const BackendCase& model : models) {
    request.files.push_back({model_file(model, folder.file("")), {}});
  }
  request.targets = all_targets(backend_named(models.front().backend));
  request.measure.repeat = 3;
  return request;
}

// No path leaves a group and comes back, also with all groups contracted.
bool groups_are_acyclic(const Problem& problem) {
  std::vector<std::set<std::size_t>> before(problem.group_count());
  for (const OpId op : problem.ops()) {
    for (const OpId next : problem.successors(op)) {
      if (problem.group(op) != problem.group(next)) {
        before[problem.group(next).index()].insert(problem.group(op).index());
      }
    }
  }
  std::vector<char> done(problem.group_count(), 0);
  for (std::size_t finished = 0; finished < done.size(); ++finished) {
    std::size_t next = done.size();
    for (std::size_t group = 0; group < done.size() && next == done.size(); ++group) {
      const bool ready =
          done[group] == 0 && std::all_of(before[group].begin(), before[group].end(),
                                          [&](std::size_t g) { return done[g] != 0; });
      if (ready) next = group;
    }
    if (next == done.size()) return false;
    done[next] = 1;
  }
  return true;
}

class ProfileOf : public ::testing::TestWithParam<BackendCase> {};

TEST_P(ProfileOf, IsAValidProblemWhoseTimesSumUpToTheLatency) {
  const Folder folder;
  const auto profile = profile_models(request_for({GetParam()}, folder));
  ASSERT_TRUE(profile);
  const Problem problem(profile->draft);
  ASSERT_EQ(profile->models.size(), 1U);
  const ModelProfile& model = profile->models.front();
  EXPECT_EQ(model.ops, problem.op_count());
  EXPECT_EQ(model.fused, problem.group_count());
  EXPECT_LT(model.fused, model.ops);
  ASSERT_EQ(model.kinds.size(), problem.kind_count());
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    double sum = 0;
    for (const OpId op : problem.ops()) sum += problem.op(op).time[kind];
    EXPECT_NEAR(sum, model.kinds[kind].latency.median * model.kinds[kind].loaded(), 1e-9 * sum);
    EXPECT_GE(model.kinds[kind].loaded(), 1);
    EXPECT_GT(sum, 0);
    EXPECT_EQ(model.kinds[kind].unsupported, 0U);
  }
  EXPECT_TRUE(groups_are_acyclic(problem));
  EXPECT_EQ(problem.model(ModelId{0}).source->path.find(folder.file("")), 0U);
  EXPECT_GE(problem.draft().origin.size(), 4U);
  // Reading what was written gives the same problem.
  EXPECT_EQ(parse_problem(write_problem(profile->draft), "written").draft, profile->draft);
}

INSTANTIATE_TEST_SUITE_P(Backends, ProfileOf, ::testing::ValuesIn(backend_cases()), name_of_case);

TEST(Profile, SeveralModelsAreOneProblemWithNamesThatLeadBack) {
  for (const auto& models :
       {std::vector<BackendCase>{{"openvino", "tiny-pair"}, {"openvino", "tiny-branches"}},
        std::vector<BackendCase>{{"toy", "pair"}, {"toy", "branches"}}}) {
    const Folder folder;
    ProfileRequest request = request_for(models, folder);
    request.files.push_back(request.files.front());
    const auto profile = profile_models(request);
    ASSERT_TRUE(profile);
    const Problem problem(profile->draft);
    ASSERT_EQ(problem.model_count(), 3U);
    EXPECT_EQ(problem.objective(), Objective::total_completion);
    EXPECT_EQ(problem.model(ModelId{2}).name, models.front().model + "#2");
    for (const OpId op : problem.ops()) {
      const std::string& model = problem.model(problem.op(op).model).name;
      EXPECT_EQ(problem.op(op).name.find(model + "/"), 0U);
    }
  }
}

TEST(Profile, OfDevicesWithMemoriesOfTheirOwnMeasuresTheCopies) {
  const Folder folder;
  const auto profile = profile_models(request_for({{"toy", "branches"}}, folder));
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->links.size(), 6U);
  for (const LinkProfile& link : profile->links) {
    // A copy of the toy backend takes 0.2 ms and 1 ms for each MB, at least.
    for (const HandOverPoint& point : link.cost.points) {
      EXPECT_GE(point.milliseconds, 0.2 + point.bytes / 1e6) << link.from << " to " << link.to;
    }
    EXPECT_EQ(link.cost.watched, link.to != "toy:1");
  }
  for (const KindProfile& kind : profile->models.front().kinds) {
    EXPECT_EQ(kind.latency.watched, kind.kind != "toy:1");
  }
}

TEST(Profile, DevicesOfAnotherBackendAreRefused) {
  const Folder folder;
  ProfileRequest request = request_for({{"toy", "pair"}}, folder);
  request.targets.push_back(target_of_cores({allowed_cores().front()}));
  EXPECT_THROW(profile_models(request), std::invalid_argument);
  request.targets = {target_of_cores({allowed_cores().front()})};
  EXPECT_THROW(profile_models(request), InputError);
}

TEST(Profile, UnequalKindsHaveTimesOfTheirOwn) {
  const std::vector<int> cores = allowed_cores();
  if (cores.size() < 2) GTEST_SKIP() << "needs two cores";
  const Folder folder;
  ProfileRequest request = request_for({{"openvino", "tiny-branches"}}, folder);
  request.targets = {target_of_cores({cores[0]}), target_of_cores({cores[0], cores[1]})};
  const auto profile = profile_models(request);
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->draft.cluster.kinds.size(), 2U);
  EXPECT_EQ(profile->draft.ops.front().time.size(), 2U);
}

TEST(Profile, SetsWithCoresInCommonShareThemAndTheMemory) {
  const std::vector<int> cores = allowed_cores();
  if (cores.size() < 2) GTEST_SKIP() << "needs two cores";
  const Folder folder;
  ProfileRequest request = request_for({{"openvino", "tiny-branches"}}, folder);
  request.targets = {target_of_cores({cores[0]}), target_of_cores({cores[1]}),
                     target_of_cores({cores[0], cores[1]})};
  const auto profile = profile_models(request);
  ASSERT_TRUE(profile);
  EXPECT_TRUE(profile->links.empty());
  const Problem problem(profile->draft);
  EXPECT_EQ(problem.resource_count(), 2U);
  EXPECT_EQ(problem.space_count(), 1U);
  for (const TensorId tensor : problem.tensors()) {
    EXPECT_EQ(problem.tensor(tensor).cuts.size(), 2U);
    // Both sides begin another segment; who receives also waits, and takes the tensor in.
    EXPECT_GE(problem.receive_overhead(tensor, DeviceId{0}),
              problem.send_overhead(tensor, DeviceId{0}));
  }
  // Two replicas on a core each, or both cores as threads.
  EXPECT_EQ(problem.rules().max_replicas, 2);
  // Nothing is beside both cores.
  const auto& loading = profile->models.front().kinds[0].beside_busy_cores;
  ASSERT_TRUE(loading);
  EXPECT_FALSE(profile->models.front().kinds[1].beside_busy_cores);
  const std::string used =
      loading->by_op ? "a factor for each fused group" : "one factor for all ops";
  EXPECT_THAT(profile->draft.origin,
              Contains(AllOf(HasSubstr("times as long while the other cores work"),
                             HasSubstr("; " + used + ", off by "), HasSubstr("for the model in ")))
                  .Times(1));
  EXPECT_THAT(profile->draft.origin,
              Contains(AllOf(HasSubstr("that slept while"), HasSubstr("unwatched"))).Times(1))
      << "who wakes up has no probe";
}

TEST(Profile, DevicesWithoutACommonCoreAreBusyWhereSeveralModelsShareThem) {
  const std::vector<int> cores = allowed_cores();
  if (cores.size() < 2) GTEST_SKIP() << "needs two cores";
  const Folder folder;
  ProfileRequest request = request_for({{"openvino", "tiny-branches"}}, folder);
  request.targets = {target_of_cores({cores[0]}), target_of_cores({cores[1]})};
  request.whole = true;
  const auto one = profile_models(request);
  ASSERT_TRUE(one);
  EXPECT_FALSE(one->models.front().kinds.front().beside_busy_cores) << "one device alone may win";
  EXPECT_FALSE(one->models.front().kinds.front().in_turn);
  request.files.push_back(request.files.front());
  const auto two = profile_models(request);
  ASSERT_TRUE(two);
  const Problem problem(two->draft);
  for (const ModelProfile& model : two->models) {
    const KindProfile& kind = model.kinds.front();
    ASSERT_TRUE(kind.beside_busy_cores);
    EXPECT_EQ(kind.beside_busy_cores->segments, 1U) << "models stay whole";
    ASSERT_TRUE(kind.in_turn);
    double sum = 0;
    for (const OpId op : problem.ops()) {
      if (problem.model(problem.op(op).model).name == model.name) sum += problem.op(op).time[0];
    }
    EXPECT_NEAR(sum, kind.latency.median * kind.loaded(), 1e-9 * sum);
  }
  EXPECT_THAT(two->draft.origin, Contains(HasSubstr("times as long after another model")).Times(2));
  EXPECT_THAT(two->draft.origin, Contains(HasSubstr("for the model in 1 segment beside")).Times(2));
}

TEST(Profile, AKindIsAsDoubtfulAsWhateverWasMeasuredOnIt) {
  const Measured steady{.median = 10, .low = 10, .high = 10, .kept = 5};
  const Measured disturbed{.median = 10, .low = 10, .high = 10, .kept = 1, .rejected = 4};
  KindProfile kind;
  kind.latency = steady;
  kind.beside_busy_cores = Loading{.latency = steady, .trial = steady};
  kind.in_turn = TurnTimes{.first = steady, .again = steady};
  EXPECT_THAT(kind.doubt(), IsEmpty());
  kind.in_turn->again = disturbed;
  EXPECT_EQ(kind.doubt(), "in turn 4 of 5 runs were disturbed") << "the factor is relative to it";
  kind.beside_busy_cores->trial = disturbed;
  EXPECT_EQ(kind.doubt(), "beside busy cores 4 of 5 runs were disturbed");
  kind.latency = disturbed;
  EXPECT_EQ(kind.doubt(), "4 of 5 runs were disturbed");
}

TEST(Profile, EndsWhenItIsAskedTo) {
  const Folder folder;
  const std::atomic<bool> stop{true};
  ProfileRequest request = request_for({{"openvino", "tiny-branches"}}, folder);
  request.measure.stop = &stop;
  EXPECT_FALSE(profile_models(request));
}

// The zoo's small model with an input of open batch size.
std::string open_model(const Folder& folder) {
  ZooModel model = zoo_model("tiny-branches");
  const std::string closed = "<data shape=\"1,";
  const auto place = model.xml.find(closed);
  EXPECT_NE(place, std::string::npos);
  model.xml.replace(place, closed.size(), "<data shape=\"?,");
  folder.write("open.bin", model.weights);
  return folder.write("open.xml", model.xml);
}

TEST(ProfileVerb, BadInputIsOneSentence) {
  const Folder folder;
  const std::string out = folder.file("out.json");
  const auto expect = [&](const std::vector<std::string>& arguments, int code,
                          const std::string& words) {
    for (const char* verb : {"import", "profile"}) {
      std::vector<std::string> all{verb};
      all.insert(all.end(), arguments.begin(), arguments.end());
      all.insert(all.end(), {"-o", out});
      const auto result = run(all);
      EXPECT_EQ(result.exit_code, code) << result.err;
      EXPECT_THAT(result.err, HasSubstr(words));
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
      EXPECT_THAT(folder.read("out.json"), IsEmpty());
    }
  };
  const std::string model = make_zoo_model("tiny-branches", folder.file("")).xml;
  expect({folder.file("none.xml")}, 3, "no such file");
  expect({folder.write("text.xml", "hello")}, 3, "is not an OpenVINO model");
  expect({folder.write("text.onnx", "hello")}, 3, "is not an ONNX model");
  expect({model, "--shape", "other=1x3x8x8"}, 3, "no input is called 'other'");
  expect({model, "--shape", "1x3x"}, 2, "is not a shape");
  expect({model, "--device", "cpu:1023"}, 2, "may use only");
  expect({model, "--device", "cpu:x"}, 2, "is not a set of cores");
  expect({model, "--device", "TPU"}, 2, "no device 'TPU'");
}

TEST(ImportVerb, GivesOpenInputsUsualSizesAndSaysSo) {
  const Folder folder;
  const std::string path = folder.file("problem.json");
  const auto imported = run({"import", open_model(folder), "-o", path});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.err, HasSubstr("taken as 1x3x32x32"));
  EXPECT_THAT(imported.err, HasSubstr("--shape"));
  const ProblemFile file = read_problem(path);
  EXPECT_THAT(file.draft.models.front().source->shapes, ::testing::SizeIs(1));
}

TEST(ProfileVerb, WritesAProblemThatPlannersTake) {
  const Folder folder;
  const std::string model = open_model(folder);
  const std::string path = folder.file("problem.json");
  const auto profiled =
      run({"profile", model, "--shape", "2x3x32x32", "--repeat", "2", "--json", "-o", path});
  ASSERT_EQ(profiled.exit_code, 0) << profiled.err;
  const auto document = profiled.json();
  EXPECT_EQ(document["models"][0]["ops"], 24);
  EXPECT_LT(document["models"][0]["fused"], 24);
  const ProblemFile file = read_problem(path);
  EXPECT_THAT(folder.read("problem.json"), HasSubstr("{\"path\": \"open.xml\""));
  EXPECT_EQ(file.draft.models.front().source->shapes, std::vector<std::string>{"2x3x32x32"});
  EXPECT_EQ(run({"plan", path, "--planner", "heft", "-q"}).exit_code, 0);
  EXPECT_EQ(run({"plan", path, "--objective", "throughput", "--planner", "single", "-q"}).exit_code,
            0);
}

TEST(ImportVerb, WritesAModelsGraphWithEstimatedTimes) {
  const Folder folder;
  const std::string model = make_zoo_model("tiny-bert", folder.file("")).xml;
  const std::string path = folder.file("problem.json");
  const auto imported = run({"import", model, "--objective", "throughput", "-o", path});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const Problem problem(read_problem(path).draft);
  EXPECT_EQ(problem.objective(), Objective::throughput);
  for (const OpId op : problem.ops()) {
    const bool view = problem.op(op).type == "Reshape";
    EXPECT_EQ(problem.time(op, DeviceId{0}) > 0, !view) << problem.op(op).name;
  }
  EXPECT_THAT(problem.draft().origin.front(), HasSubstr("estimated"));
}

TEST(TuneVerb, ShowsEachRoundAndTheFinalAndKeepsAPlan) {
  const placewright::testing::CacheFolder cache;
  const Folder folder;
  const std::string model = make_zoo_model("tiny-branches", folder.file("")).xml;
  const std::string plan = folder.file("plan.json");
  const auto tuned = run({"tune", model, "--objective", "throughput", "--rounds", "2", "--repeat",
                          "3", "--time-limit", "200ms", "--json", "-o", plan, "--corrected",
                          folder.file("corrected.json")});
  const auto document = tuned.json();
  ASSERT_GE(document["rounds"].size(), 1U) << tuned.err;
  EXPECT_LE(document["rounds"].size(), 2U);
  ASSERT_GE(document["finalists"].size(), 1U);
  EXPECT_EQ(document["finalists"].front()["uncut"], true);
  for (const char* list : {"rounds", "finalists"}) {
    for (const auto& round : document[list]) EXPECT_EQ(round["outputs_equal"], true);
  }
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_LE(document["best"], document["finalists"].size());
  EXPECT_EQ(run({"check", plan}).exit_code, 0);
  const Problem corrected(read_problem(folder.file("corrected.json")).draft);
  EXPECT_THAT(corrected.draft().origin.back(), HasSubstr("corrected"));
  EXPECT_EQ(run({"tune", folder.file("corrected.json"), "--rounds", "1", "--repeat", "3",
                 "--time-limit", "100ms"})
                .err.find("measured now"),
            std::string::npos)
      << "a problem is not profiled again";
  // This is said before anybody looks for the device on which to measure.
  const auto calls = run({"tune", model, "--objective", "call-latency", "--device", "cpu:9999"});
  EXPECT_EQ(calls.exit_code, 2);
  EXPECT_THAT(calls.err, HasSubstr("call-latency cannot be run"));
  EXPECT_EQ(run({"tune", model, "--rounds", "0"}).exit_code, 2);
}

TEST(DevicesVerb, WritesAClusterFile) {
  const Folder folder;
  const std::string path = folder.file("cluster.json");
  const auto devices = run({"devices", "--json", "-o", path});
  ASSERT_EQ(devices.exit_code, 0) << devices.err;
  EXPECT_EQ(devices.json()["cores"].size(), allowed_cores().size());
  EXPECT_EQ(read_cluster(path).cluster.devices.size(), nested_core_sets(allowed_cores()).size());
}

}  // namespace
}  // namespace placewright
