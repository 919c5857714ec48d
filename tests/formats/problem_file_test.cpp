#include "formats/problem_file.h"

#include <limits>
#include <numeric>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "formats/cluster_file.h"
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

TEST(PublishedInputs, HaveTheirPublishedSizes) {
  for (const auto& input : published_inputs()) {
    SCOPED_TRACE(input.path);
    const ProblemFile file = read_problem(example_path(input.path));
    const Problem problem = build_problem(file);
    EXPECT_EQ(problem.op_count(), input.ops);
    EXPECT_EQ(problem.edge_count(), input.edges);
    EXPECT_EQ(problem.device_count(), input.devices);
    EXPECT_TRUE(file.warnings.empty());
    EXPECT_EQ(file.digest, digest_of(read_whole(example_path(input.path))));
  }
}

TEST(PublishedInputs, SurviveOurOwnFormat) {
  for (const auto& input : published_inputs()) {
    SCOPED_TRACE(input.path);
    const ProblemDraft draft = read_problem(example_path(input.path)).draft;
    const ProblemFile again = parse_problem(write_problem(draft), "again.json");
    EXPECT_EQ(again.format, "placewright");
    EXPECT_TRUE(again.draft == draft);
    EXPECT_TRUE(again.warnings.empty());
    EXPECT_EQ(write_problem(again.draft), write_problem(draft));
  }
}

TEST(Moirai, OneTensorForEachEdgeAndOneKindForEachDevice) {
  const ProblemFile file = read_problem(example_path("moirai/example-1.json"));
  EXPECT_EQ(file.format, "moirai");
  const Problem problem = build_problem(file);
  EXPECT_EQ(problem.objective(), Objective::latency);
  EXPECT_EQ(problem.unit(), TimeUnit::none);
  EXPECT_TRUE(problem.rules().congestion);
  EXPECT_EQ(problem.tensor_count(), 19U);
  EXPECT_EQ(problem.device(DeviceId{2}).name, "d2");
  EXPECT_EQ(problem.device(DeviceId{2}).memory, 16);
  const OpId op = *problem.find_op("5");  // the fourth node
  EXPECT_EQ(op.index(), 3U);
  EXPECT_EQ(problem.time(op, DeviceId{0}), 8);
  EXPECT_EQ(problem.time(op, DeviceId{1}), 5);
  EXPECT_EQ(problem.time(op, DeviceId{2}), 6);
  EXPECT_EQ(problem.memory(op), 4);
}

TEST(Msr, OneTensorForEachOpWithReaders) {
  const ProblemFile file =
      read_problem(example_path("msr/throughput/OperatorGraphs/bert_l-3_training.json"));
  EXPECT_EQ(file.format, "msr");
  const Problem problem = build_problem(file);
  EXPECT_EQ(problem.objective(), Objective::throughput);
  EXPECT_EQ(problem.interconnect(), InterconnectKind::host);
  EXPECT_TRUE(problem.has_backward_ops());
  for (const OpId op : problem.ops()) EXPECT_LE(problem.outputs(op).size(), 1U);
  EXPECT_EQ(problem.device(DeviceId{0}).name, "acc0");
  EXPECT_EQ(problem.device(DeviceId{0}).memory, 17185374208.0);
  EXPECT_EQ(problem.device(DeviceId{3}).name, "cpu0");
  EXPECT_EQ(problem.device(DeviceId{3}).memory, kInfinity);
  EXPECT_TRUE(problem.on_host(DeviceId{3}));
  // 579 of the 600 ops have one of 121 colours, the other 21 stand alone.
  EXPECT_EQ(problem.group_count(), 121U + 21U);
  EXPECT_EQ(problem.op(OpId{0}).name, "cls.seq_relationship.weight");
  EXPECT_EQ(file.op_ids[0], "0");
}

TEST(Msr, CallLatencyHasOneHostDevice) {
  ReadOptions options;
  options.objective = Objective::call_latency;
  const Problem problem = build_problem(
      read_problem(example_path("msr/latency/LayerGraphs/bert24_inference.json"), options));
  ASSERT_EQ(problem.device_count(), 6U);
  EXPECT_EQ(problem.device(DeviceId{4}).name, "acc4");
  EXPECT_EQ(problem.device(DeviceId{5}).name, "cpu");
}

std::string msr_graph(const std::string& nodes, const std::string& edges) {
  return R"({"maxSizePerFPGA": 10, "maxFPGAs": 2.0, "maxCPUs": 1, "nodes": [)" + nodes +
         R"(], "edges": [)" + edges + "]}";
}

std::string msr_node(const std::string& id, const std::string& more = "") {
  return R"({"id": )" + id +
         R"(, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 1, "size": 3)" + more + "}";
}

TEST(Msr, ReadsFlagsColoursAndRepeatedEdges) {
  const std::string text =
      msr_graph(R"({"id": 4, "supportedOnFpga": false, "cpuLatency": 2, "size": 3},)" +
                    msr_node("7", R"(, "colorClass": 3)") + "," +
                    msr_node("\"x\"", R"(, "colorClass": 3, "isBackwardNode": 1)"),
                R"({"sourceId": 4, "destId": 7, "cost": 5, "size": 8},
                   {"sourceId": 4, "destId": "x", "cost": 5.0, "size": 9},
                   {"sourceId": 4, "destId": 7, "cost": 5}, )"
                R"({"sourceId": 7, "destId": "x", "cost": 0.5})");
  const Problem problem = build_problem(parse_problem(text, "graph.json"));
  EXPECT_EQ(problem.op(OpId{2}).name, "x");
  EXPECT_EQ(problem.time(OpId{0}, DeviceId{0}), kUnsupported);
  EXPECT_EQ(problem.time(OpId{0}, DeviceId{2}), 2);
  EXPECT_TRUE(problem.op(OpId{2}).backward);
  EXPECT_EQ(problem.group(OpId{1}), problem.group(OpId{2}));
  ASSERT_EQ(problem.tensor_count(), 2U);
  EXPECT_EQ(problem.consumers(TensorId{0}).size(), 2U);
  EXPECT_EQ(problem.host_time(TensorId{0}), 5);
  EXPECT_EQ(problem.tensor(TensorId{0}).bytes, 9);
}

TEST(Names, AreUsedWhereAllHaveOneAndNoTwoTheSame) {
  const auto names = [](const std::string& first, const std::string& second) {
    const ProblemFile file = parse_problem(
        msr_graph(msr_node("8", first) + "," + msr_node("9", second), ""), "graph.json");
    return file.draft.ops[0].name + " " + file.draft.ops[1].name;
  };
  EXPECT_EQ(names(R"(, "name": "a")", R"(, "name": "b")"), "a b");
  EXPECT_EQ(names(R"(, "name": "a")", R"(, "name": "a")"), "8 9");
  EXPECT_EQ(names(R"(, "name": "a")", ""), "8 9");
}

TEST(Talos, ReadsModelsAndChains) {
  const Problem six = build_problem(read_problem(example_path("talos/six_ops.json")));
  EXPECT_EQ(six.objective(), Objective::total_completion);
  EXPECT_EQ(six.unit(), TimeUnit::milliseconds);
  EXPECT_EQ(six.model_count(), 2U);
  EXPECT_EQ(six.device(DeviceId{0}).name, "CPU");
  EXPECT_EQ(six.device(DeviceId{1}).name, "GPU");
  const OpId op6 = *six.find_op("op6");
  EXPECT_EQ(six.time(op6, DeviceId{0}), 2);
  EXPECT_EQ(six.time(op6, DeviceId{1}), 4);
  EXPECT_EQ(six.predecessors(op6).size(), 2U);
  EXPECT_EQ(six.link_time(TensorId{0}, DeviceId{0}, DeviceId{1}), 0);

  const Problem chains = build_problem(read_problem(example_path("talos/two_chains.json")));
  EXPECT_EQ(chains.unit(), TimeUnit::microseconds);
  EXPECT_EQ(chains.op(OpId{0}).name, "first/0");
  EXPECT_EQ(chains.op(OpId{25}).name, "second/0");
  EXPECT_EQ(chains.model(ModelId{1}).name, "second");
  EXPECT_TRUE(chains.predecessors(OpId{25}).empty());
  EXPECT_EQ(chains.successors(OpId{23})[0], OpId{24});
}

TEST(Talos, EqualIdsOfTwoModelsAreToldApart) {
  const ProblemFile file = parse_problem(
      R"({"models": [{"name": "m", "arrival": 2, "weight": 3, "ops": [{"id": 1, "cpu": 1, "gpu": null}]},
                     {"name": "n", "deadline": 7, "ops": [{"id": 1, "cpu": 1, "gpu": 2}]}]})",
      "two.json");
  const Problem problem = build_problem(file);
  EXPECT_EQ(problem.op(OpId{0}).name, "m/1");
  EXPECT_EQ(problem.op(OpId{1}).name, "n/1");
  EXPECT_EQ(problem.time(OpId{0}, DeviceId{1}), kUnsupported);
  EXPECT_EQ(problem.model(ModelId{0}).arrival, 2);
  EXPECT_EQ(problem.model(ModelId{0}).weight, 3);
  EXPECT_EQ(problem.model(ModelId{1}).deadline, 7);
  EXPECT_EQ(problem.unit(), TimeUnit::none);
}

TEST(Format, CanBeForced) {
  const std::string text = read_whole(example_path("talos/six_ops.json"));
  ReadOptions options;
  options.format = "talos";
  EXPECT_EQ(parse_problem(text, "x", options).draft.ops.size(), 6U);
  options.format = "moirai";
  EXPECT_THROW(parse_problem(text, "x", options), InputError);
  options.format = "onnx";
  EXPECT_THROW(read_problem(example_path("talos/six_ops.json"), options), std::invalid_argument);
}

TEST(Format, KindOfFile) {
  EXPECT_EQ(kind_of_file(read_whole(example_path("talos/six_ops.json")), "x"), FileKind::problem);
  EXPECT_EQ(
      kind_of_file(read_whole(example_path("msr/human-experts/gnmt_inference_expert.json")), "x"),
      FileKind::plan);
  EXPECT_EQ(kind_of_file(R"({"placewright": "plan"})", "x"), FileKind::plan);
  EXPECT_EQ(kind_of_file(R"({"placewright": "cluster"})", "x"), FileKind::cluster);
  EXPECT_THROW(kind_of_file("[]", "x"), InputError);
}

// Everything that a draft can say, with names and numbers that are hard to write.
ProblemDraft elaborate_draft() {
  ProblemDraft draft;
  draft.name = "quotes \" and \\ and \n and Zürich";
  draft.unit = TimeUnit::seconds;
  draft.objective = Objective::throughput;
  draft.rules = {Contiguity::per_device,
                 TransferMode::duplex,
                 TrainingMode::phased,
                 MemoryModel::peak,
                 false,
                 3,
                 2,
                 1.0 / 3,
                 PipelineSchedule::gpipe,
                 7};
  draft.cluster.kinds = {{"gpu", false}, {"host", true}};
  draft.cluster.devices = {
      {"g0", KindId{0}, 1e9, 2, 0.1, 0.2}, {"g1", KindId{0}}, {"h", KindId{1}, 0.1 + 0.2}};
  draft.cluster.interconnect = InterconnectKind::links;
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}, 1e-300, 5e-324},
                         {DeviceId{1}, DeviceId{0}, 0.5}};
  draft.models = {{"first", 0, 1, {}}, {"", 0.7, 2.5, 1e22}};
  draft.models[1].name = "second";
  Op op;
  op.name = "a";
  op.time = {std::numeric_limits<double>::max(), kUnsupported};
  draft.ops.push_back(op);
  op.name = "b\t";
  op.type = "MatMul";
  op.memory = 123456789012345680.0;
  op.backward = true;
  op.pinned_to = DeviceId{0};
  op.time = {std::numeric_limits<double>::denorm_min(), 1.0 / 3};
  draft.ops.push_back(op);
  Op other;
  other.name = "c";
  other.model = ModelId{1};
  other.time = {0, 1};
  draft.ops.push_back(other);
  Tensor tensor;
  tensor.name = "t";
  tensor.producer = OpId{0};
  tensor.consumers = {OpId{1}};
  tensor.bytes = 1e15;
  tensor.host_time = 0.1;
  tensor.link_times = {0, kInfinity, 1, 2, 0, 3, 4, 5.5, 0};
  draft.tensors = {tensor, Tensor{"", OpId{2}, {}, 0, 0, {}}};
  draft.colocated = {{OpId{0}, OpId{1}}};
  draft.shared_weights = {{"w", 1e3, {OpId{0}, OpId{1}}}, {"", 5, {}}};
  return draft;
}

TEST(OurFormat, KeepsEverything) {
  const ProblemDraft draft = elaborate_draft();
  const std::string text = write_problem(draft);
  EXPECT_TRUE(parse_problem(text, "elaborate.json").draft == draft) << text;
}

TEST(OurFormat, KeepsEveryDouble) {
  std::mt19937_64 random(7);
  ProblemDraft draft = elaborate_draft();
  for (int i = 0; i < 20000; ++i) {
    const double number = std::abs(std::bit_cast<double>(random()));
    if (!std::isfinite(number)) continue;
    Op op;
    op.name = std::to_string(i);
    op.time = {number, static_cast<double>(random() >> 10)};
    draft.ops.push_back(op);
  }
  EXPECT_TRUE(parse_problem(write_problem(draft), "doubles.json").draft == draft);
}

TEST(OurFormat, TheShorthandForLinksIsWrittenAndRead) {
  const ProblemDraft draft = parse_problem(R"({"placewright": "problem", "version": 1,
    "kinds": [{"name": "k"}],
    "devices": [{"name": "a", "kind": "k"}, {"name": "b", "kind": "k", "memory": null}],
    "interconnect": {"kind": "links", "all": {"latency": 1, "bandwidth": 4},
                     "links": [{"from": "b", "to": "a", "latency": 2}]},
    "ops": [{"name": "x", "time": {"k": 3}}, {"name": "y", "time": [4]}],
    "tensors": [{"from": 0, "to": ["y"], "bytes": 8}]})",
                                           "short.json")
                                 .draft;
  EXPECT_EQ(draft.name, "short");
  EXPECT_EQ(draft.cluster.links.size(), 3U);
  const std::string text = write_problem(draft);
  EXPECT_NE(text.find("\"all\": {\"latency\": 1, \"bandwidth\": 4}"), std::string::npos) << text;
  EXPECT_TRUE(parse_problem(text, "short.json").draft == draft);
  const Problem problem(draft);
  EXPECT_EQ(problem.link_time(TensorId{0}, DeviceId{0}, DeviceId{1}), 3);
  EXPECT_EQ(problem.link_time(TensorId{0}, DeviceId{1}, DeviceId{0}), 2);
}

TEST(OurFormat, WarnsOfUnknownKeys) {
  std::string text = write_problem(elaborate_draft());
  text.replace(text.find("\"type\""), 6, "\"typo\"");
  text.insert(1, "\"colour\": {\"deep\": [1]}, ");
  const ProblemFile file = parse_problem(text, "file.json");
  ASSERT_EQ(file.warnings.size(), 2U);
  EXPECT_EQ(file.warnings[0], "file.json: /colour: the key is not known and was ignored");
  EXPECT_EQ(file.warnings[1], "file.json: /ops/1/typo: the key is not known and was ignored");
}

TEST(OurFormat, ManyUnknownKeysAreCounted) {
  std::string text = write_problem(elaborate_draft());
  std::string keys;
  for (int i = 0; i < 50; ++i) keys += "\"key" + std::to_string(i) + "\": 0, ";
  text.insert(1, keys);
  const ProblemFile file = parse_problem(text, "file.json");
  ASSERT_EQ(file.warnings.size(), 21U);
  EXPECT_EQ(file.warnings.back(), "30 more unknown keys were ignored");
}

TEST(ClusterFile, RoundTrip) {
  for (const auto& input : published_inputs()) {
    const Cluster cluster = read_problem(example_path(input.path)).draft.cluster;
    EXPECT_TRUE(parse_cluster(write_cluster(cluster), "cluster.json").cluster == cluster)
        << input.path;
  }
}

TEST(ClusterFile, ReplacesTheDevicesByKindName) {
  const Folder folder;
  const std::string cluster = folder.file("cluster.json");
  write_whole(cluster, R"({"placewright": "cluster", "version": 1,
    "kinds": [{"name": "cpu", "host": true}, {"name": "acc"}],
    "devices": [{"name": "core", "kind": "cpu"}, {"name": "card", "kind": "acc", "memory": 5e9}],
    "interconnect": {"kind": "host"}})");
  ReadOptions options;
  options.cluster = cluster;
  const std::string path = example_path("msr/throughput/LayerGraphs/bert24_inference.json");
  const Problem before = build_problem(read_problem(path));
  const Problem after = build_problem(read_problem(path, options));
  ASSERT_EQ(after.device_count(), 2U);
  EXPECT_EQ(after.device(DeviceId{1}).memory, 5e9);
  for (const OpId op : before.ops()) {
    EXPECT_EQ(after.time(op, DeviceId{0}), before.time(op, DeviceId{6}));
    EXPECT_EQ(after.time(op, DeviceId{1}), before.time(op, DeviceId{0}));
  }
}

TEST(ClusterFile, TablesGoWithTheNamesOfTheDevices) {
  const Folder folder;
  const std::string cluster = folder.file("cluster.json");
  write_whole(cluster, R"({"placewright": "cluster", "version": 1,
    "kinds": [{"name": "d2"}, {"name": "d0"}],
    "devices": [{"name": "d2", "kind": "d2"}, {"name": "d0", "kind": "d0"}],
    "interconnect": {"kind": "links"}})");
  ReadOptions options;
  options.cluster = cluster;
  const std::string path = example_path("moirai/GoogLeNet.json");
  const Problem before = build_problem(read_problem(path));
  const Problem after = build_problem(read_problem(path, options));
  for (const TensorId id : before.tensors()) {
    EXPECT_EQ(after.link_time(id, DeviceId{0}, DeviceId{1}),
              before.link_time(id, DeviceId{2}, DeviceId{0}));
    EXPECT_EQ(after.link_time(id, DeviceId{1}, DeviceId{0}),
              before.link_time(id, DeviceId{0}, DeviceId{2}));
  }
}

TEST(ClusterFile, CompletesAProblemWithoutDevices) {
  const std::string text = R"({"placewright": "problem", "version": 1, "objective": "latency",
    "ops": [{"name": "x", "time": {"big": 1}, "pin": "b"}, {"name": "y", "time": {"small": 3, "big": 2}}],
    "tensors": [{"from": "x", "to": ["y"], "bytes": 8}]})";
  const Folder folder;
  const std::string cluster = folder.file("cluster.json");
  write_whole(cluster, R"({"placewright": "cluster", "version": 1,
    "kinds": [{"name": "small"}, {"name": "big"}],
    "devices": [{"name": "s", "kind": "small"}, {"name": "b", "kind": "big"}],
    "interconnect": {"kind": "links", "all": {}}})");
  ReadOptions options;
  options.cluster = cluster;
  const Problem problem = build_problem(parse_problem(text, "model.json", options));
  EXPECT_EQ(problem.time(OpId{0}, DeviceId{0}), kUnsupported);
  EXPECT_EQ(problem.time(OpId{1}, DeviceId{0}), 3);
  EXPECT_EQ(problem.time(OpId{1}, DeviceId{1}), 2);
  EXPECT_EQ(problem.op(OpId{0}).pinned_to, DeviceId{1});
  EXPECT_THROW(parse_problem(text, "model.json"), InputError);
}

}  // namespace
}  // namespace placewright
