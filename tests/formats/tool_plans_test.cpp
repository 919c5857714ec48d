// Plans as other tools take them, and maps written for those tools as plans.

#include "formats/tool_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "evaluate/pipeline.h"
#include "evaluate/placement_plan.h"
#include "formats/input_error.h"
#include "formats/plan_file.h"
#include "support/random_plan.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

// Two GPUs, host memory and a chain: embedding, six layers of two ops each, head.
Problem chain(Objective objective = Objective::latency) {
  ProblemDraft draft;
  draft.name = "chain";
  draft.objective = objective;
  draft.models = {{.name = "chain"}};
  draft.cluster.kinds = {{"any"}};
  for (const char* name : {"cuda:0", "cuda:1", "cpu"}) {
    draft.cluster.devices.push_back({.name = name, .kind = KindId{0}});
  }
  for (std::size_t from = 0; from < 3; ++from) {
    for (std::size_t to = 0; to < 3; ++to) {
      if (from != to) draft.cluster.links.push_back({DeviceId{from}, DeviceId{to}});
    }
  }
  std::vector<std::string> names = {"model.embed"};
  for (int layer = 0; layer < 6; ++layer) {
    names.push_back("model.layers." + std::to_string(layer) + ".attention");
    names.push_back("model.layers." + std::to_string(layer) + ".mlp");
  }
  names.emplace_back("head");
  for (const std::string& name : names) {
    Op& op = draft.ops.emplace_back();
    op.name = name;
    op.time = {1};
  }
  for (std::size_t op = 0; op + 1 < names.size(); ++op) {
    Tensor& tensor = draft.tensors.emplace_back();
    tensor.producer = OpId{op};
    tensor.consumers = {OpId{op + 1}};
  }
  return Problem(std::move(draft));
}

constexpr std::size_t kGpu0 = 0;
constexpr std::size_t kGpu1 = 1;
constexpr std::size_t kCpu = 2;

// One place for the embedding, each layer and the head.
Plan placed(const Problem& problem, const std::vector<std::size_t>& places) {
  Placement placement(problem.op_count());
  placement[OpId{0}] = DeviceId{places.front()};
  for (std::size_t op = 1; op + 1 < problem.op_count(); ++op) {
    placement[OpId{op}] = DeviceId{places[1 + (op - 1) / 2]};
  }
  placement[OpId{problem.op_count() - 1}] = DeviceId{places.back()};
  return *plan_of_placement(problem, placement);
}

std::string refusal(std::string (*write)(const Problem&, const Plan&), const Problem& problem,
                    const Plan& plan) {
  try {
    return "none, but the text " + write(problem, plan);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(Accelerate, MapNamesTheLargestModulesOnOneDevice) {
  const Problem problem = chain();
  const Plan plan = placed(problem, {kGpu0, kGpu0, kGpu0, kGpu1, kGpu1, kCpu, kCpu, kGpu0});
  EXPECT_EQ(Json::parse(accelerate_map(problem, plan)),
            Json::parse(R"({"head": 0, "model.embed": 0, "model.layers.0": 0, "model.layers.1": 0,
                            "model.layers.2": 1, "model.layers.3": 1, "model.layers.4": "cpu",
                            "model.layers.5": "cpu"})"));
  const Plan together = placed(problem, std::vector<std::size_t>(8, kGpu1));
  EXPECT_EQ(Json::parse(accelerate_map(problem, together)), Json({{"", 1}}));
}

TEST(Accelerate, MapIsReadAsThePlacementThatItWasWrittenFrom) {
  const Problem problem = chain();
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomSource random(seed);
    const auto plan = plan_of_placement(problem, random_placement(problem, random));
    ASSERT_TRUE(plan);
    const PlanFile read = PlanDocument(accelerate_map(problem, *plan), "map.json").read(problem);
    EXPECT_EQ(read.plan.placement, plan->placement) << "seed " << seed;
  }
}

TEST(TorchPipelining, SplitsBeforeTheFirstLayerOfAStageAndIsReadAgain) {
  const Problem problem = chain(Objective::throughput);
  const Plan plan = placed(problem, {kGpu1, kGpu1, kGpu1, kGpu1, kGpu1, kGpu0, kGpu0, kGpu0});
  const std::string text = torch_pipelining_split(problem, plan);
  EXPECT_EQ(Json::parse(text), Json::parse(R"({"split_spec": {"model.layers.4": "beginning"},
                                               "stages": [["cuda:1"], ["cuda:0"]]})"));
  EXPECT_EQ(PlanDocument(text, "split.json").read(problem).plan.placement, plan.placement);
}

TEST(ToolPlans, EndsMayHaveStagesOfTheirOwn) {
  const Problem problem = chain(Objective::throughput);
  const Plan plan = placed(problem, {kCpu, kGpu1, kGpu1, kGpu1, kGpu1, kGpu1, kGpu1, kGpu0});
  EXPECT_EQ(Json::parse(torch_pipelining_split(problem, plan))["split_spec"],
            Json::parse(R"({"model.layers.0": "beginning", "head": "beginning"})"));
  EXPECT_THAT(megatron_layout(problem, plan), HasSubstr("\"E|tttttt|L\""));
  EXPECT_EQ(Json::parse(deepspeed_parts(problem, plan))["parts"], Json({0, 1, 7, 8}));
}

TEST(Megatron, LayoutHasALetterForEachLayer) {
  const Problem problem = chain(Objective::throughput);
  const Plan plan = placed(problem, {kGpu1, kGpu1, kGpu1, kGpu1, kGpu1, kGpu0, kGpu0, kGpu0});
  EXPECT_EQ(megatron_layout(problem, plan),
            "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout \"Etttt|ttL\"\n");
}

TEST(DeepSpeed, PartsCountTheEmbeddingAndTheHeadAsLayers) {
  const Problem problem = chain(Objective::throughput);
  const Plan plan = placed(problem, {kGpu1, kGpu1, kGpu1, kGpu1, kGpu1, kGpu0, kGpu0, kGpu0});
  EXPECT_EQ(Json::parse(deepspeed_parts(problem, plan))["parts"], Json({0, 5, 8}));
}

TEST(LlamaCpp, SharesLayersOutInOrderAndOverridesTheRest) {
  const Problem problem = chain();
  EXPECT_EQ(llama_cpp_arguments(
                problem, placed(problem, {kCpu, kCpu, kCpu, kGpu0, kGpu0, kGpu0, kGpu1, kGpu1})),
            "-dev CUDA0,CUDA1 -ngl 5 -ts 3,2\n");
  EXPECT_EQ(llama_cpp_arguments(
                problem, placed(problem, {kCpu, kGpu1, kCpu, kGpu0, kGpu0, kGpu0, kCpu, kGpu1})),
            "-dev CUDA1,CUDA0 -ngl 5 -ts 1,4 -ot "
            "\"blk\\.(5)\\.=CPU,blk\\.(2)\\.=CUDA0,blk\\.(0)\\.=CUDA1\"\n");
  EXPECT_EQ(llama_cpp_arguments(problem, placed(problem, std::vector<std::size_t>(8, kCpu))),
            "-ngl 0\n");
}

TEST(ToolPlans, SayWhatAToolCannotExpress) {
  const Problem latency = chain();
  const Plan one = placed(latency, std::vector<std::size_t>(8, kGpu0));
  for (const auto write : {torch_pipelining_split, megatron_layout, deepspeed_parts}) {
    EXPECT_THAT(refusal(write, latency, one), HasSubstr("it is no pipeline"));
  }
  Placement torn = one.placement;
  torn[OpId{4}] = DeviceId{kGpu1};
  EXPECT_THAT(refusal(llama_cpp_arguments, latency, *plan_of_placement(latency, torn)),
              HasSubstr("layer 1 is on two devices ('model.layers.1.attention' and "
                        "'model.layers.1.mlp' are apart)"));

  ProblemDraft nameless = chain().draft();
  for (std::size_t op = 0; op < nameless.ops.size(); ++op) {
    nameless.ops[op].name = std::string(1, static_cast<char>('a' + op));
  }
  const Problem letters(std::move(nameless));
  EXPECT_THAT(
      refusal(llama_cpp_arguments, letters, placed(letters, std::vector<std::size_t>(8, 0))),
      HasSubstr("no op is named by its layer"));
}

std::string complaint(const std::string& text) {
  const Problem problem = chain();
  try {
    (void)PlanDocument(text, "map.json").read(problem);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(DeviceMap, LongestNameCounts) {
  const Problem problem = chain();
  const auto plan =
      PlanDocument(R"({"": 0, "model.layers": "cpu", "model.layers.3": 1})", "map.json")
          .read(problem)
          .plan;
  EXPECT_EQ(plan.placement,
            placed(problem, {kGpu0, kCpu, kCpu, kCpu, kGpu1, kCpu, kCpu, kGpu0}).placement);
}

TEST(DeviceMap, SaysWhereItIsWrong) {
  EXPECT_THAT(complaint(R"({"model": 0})"), HasSubstr("the op 'head' is in no module of the map"));
  EXPECT_THAT(complaint(R"({"": 0, "tail": 1})"),
              HasSubstr("/tail: no op is in the module 'tail'"));
  EXPECT_THAT(complaint(R"({"": "tpu"})"),
              HasSubstr("the problem has no device 'tpu' (it has cuda:0, cuda:1, cpu)"));
  EXPECT_THAT(complaint(R"({"": 7})"), HasSubstr("no device '7'"));
  EXPECT_THAT(complaint(R"({"": 1.5})"), HasSubstr("is not a plan"));
  EXPECT_THAT(complaint(R"({"split_spec": {"x": "beginning"}, "stages": ["cpu"]})"),
              HasSubstr("1 split points make 2 stages, found 1"));
  EXPECT_THAT(complaint(R"({"split_spec": {"x": "beginning"}, "stages": ["cpu", "cuda:1"]})"),
              HasSubstr("/split_spec/x: no op is in the module 'x'"));
  EXPECT_THAT(complaint(R"({"split_spec": {"head": "end"}, "stages": ["cpu", "cuda:1"]})"),
              HasSubstr("expected 'beginning'"));
}

}  // namespace
}  // namespace placewright::testing
