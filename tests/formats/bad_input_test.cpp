// Everything that can be wrong with an input, each with the place and the sentence that it must
// give.

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/cluster_file.h"
#include "formats/input_error.h"
#include "formats/plan_file.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "support/folder.h"

namespace placewright {
namespace {

using testing::Folder;

struct BadInput {
  std::string what;
  std::string text;
  std::string place;
  std::string message;
};

void PrintTo(const BadInput& input, std::ostream* out) {
  *out << input.what;
}

std::string moirai(const std::string& nodes, const std::string& edges = "") {
  return R"({"devices": [{"memory": 9}, {"memory": 9}], "nodes": [)" + nodes + R"(], "edges": [)" +
         edges + "]}";
}
const std::string kTwoNodes =
    R"({"id": 0, "time": [1, 2], "memory": 1}, {"id": 1, "time": [1, 2], "memory": 1})";

std::string msr(const std::string& head, const std::string& node, const std::string& edges = "") {
  return "{" + head + R"(, "nodes": [{"id": 1, "supportedOnFpga": 1, "cpuLatency": 1,
    "fpgaLatency": 1, "size": 0}, {"id": 2, "size": 0, )" +
         node + R"(}], "edges": [)" + edges + "]}";
}
const std::string kHead = R"("maxSizePerFPGA": 5, "maxFPGAs": 1, "maxCPUs": 1)";
const std::string kNode = R"("supportedOnFpga": 1, "cpuLatency": 1, "fpgaLatency": 1)";

std::string native(const std::string& ops, const std::string& rest = "",
                   const std::string& version = "1") {
  return R"({"placewright": "problem", "version": )" + version + R"(, "kinds": [{"name": "k"}],
    "devices": [{"name": "a", "kind": "k"}, {"name": "b", "kind": "k"}],
    "interconnect": {"kind": "links", "all": {"latency": 1}}, "ops": [)" +
         ops + "]" + rest + "}";
}
const std::string kOps = R"({"name": "x", "time": [1]}, {"name": "y", "time": [1]})";

std::string nested(std::size_t depth) {
  return R"({"nodes": )" + std::string(depth, '[') + std::string(depth, ']') + "}";
}

std::string nested_place() {
  std::string place = "/nodes";
  for (int i = 0; i < 199; ++i) place += "/0";
  return place;
}

const std::vector<BadInput>& bad_problems() {
  static const std::vector<BadInput> inputs = {
      // graphs
      {"a cycle", moirai(kTwoNodes, R"({"source": 0, "target": 1, "comm": [[0,1],[1,0]]},
                            {"source": 1, "target": 0, "comm": [[0,1],[1,0]]})"),
       "", "the graph has a cycle: '0' -> '1' -> '0'"},
      {"an op that feeds itself", native(kOps, R"(, "tensors": [{"from": "x", "to": ["x"]}])"), "",
       "the graph has a cycle: 'x' -> 'x'"},
      {"a missing id", moirai(R"({"time": [1, 2], "memory": 1})"), "/nodes/0",
       "the key 'id' is missing"},
      {"a duplicate id", moirai(kTwoNodes + R"(, {"id": 1, "time": [1, 2], "memory": 1})"),
       "/nodes/2/id", "the id 1 is taken already (by node number 1)"},
      {"a duplicate name", native(kOps + R"(, {"name": "x", "time": [1]})"), "/ops/2",
       "two ops are called 'x' (numbers 0 and 2)"},
      {"an op without a name", native(R"({"time": [1]})"), "/ops/0", "the key 'name' is missing"},
      {"a duplicate id in a model",
       R"({"models": [{"ops": [{"id": 1, "cpu": 1, "gpu": 1}, {"id": 1, "cpu": 1, "gpu": 1}]}]})",
       "/models/0/ops/1/id", "the id 1 is taken already in this model"},
      {"an edge from nowhere",
       moirai(kTwoNodes, R"({"source": 7, "target": 1, "comm": [[0,1],[1,0]]})"), "/edges/0/source",
       "no node has the id 7"},
      {"an edge to nowhere", msr(kHead, kNode, R"({"sourceId": 1, "destId": 3, "cost": 1})"),
       "/edges/0/destId", "no node has the id 3"},
      {"an edge out of a model",
       R"({"models": [{"ops": [{"cpu": 1, "gpu": 1}], "edges": [[0, 1]]}]})", "/models/0/edges/0/1",
       "no op of this model has the id 1"},
      {"an edge of three", R"({"models": [{"ops": [{"cpu": 1, "gpu": 1}], "edges": [[0, 0, 0]]}]})",
       "/models/0/edges/0", "expected a pair of op ids"},
      {"a tensor without producer", native(kOps, R"(, "tensors": [{"to": ["x"]}])"), "/tensors/0",
       "the tensor has no producer: the key 'from' is missing"},
      {"a tensor of an unknown producer",
       native(kOps, R"(, "tensors": [{"from": "z", "to": ["x"]}])"), "/tensors/0/from",
       "no op is called 'z'"},
      {"a tensor of a producer out of range",
       native(kOps, R"(, "tensors": [{"from": 2, "to": ["x"]}])"), "/tensors/0/from",
       "there is no op number 2, only 2 of them"},
      {"a reader listed twice", native(kOps, R"(, "tensors": [{"from": "x", "to": ["y", "y"]}])"),
       "/tensors/0", "tensor 0 lists the reader 'y' twice"},
      {"an op that no device supports", native(kOps + R"(, {"name": "z", "time": [null]})"),
       "/ops/2", "op 'z' is supported by no device"},
      {"an op that no accelerator there is supports",
       msr(R"("maxSizePerFPGA": 5, "maxFPGAs": 1, "maxCPUs": 0)",
           R"("supportedOnFpga": 0, "cpuLatency": 1)"),
       "/nodes/1", "op '2' is supported by no device"},
      {"a pin to no device", native(R"({"name": "x", "time": [1], "pin": "c"})"), "/ops/0/pin",
       "no device is called 'c'"},
      {"no ops", native(""), "", "the problem has no ops"},

      // numbers
      {"a negative time", moirai(R"({"id": 0, "time": [1, -2], "memory": 1})"), "/nodes/0/time/1",
       "expected a number that is not negative, found -2"},
      {"a negative latency",
       msr(kHead, R"("supportedOnFpga": 1, "cpuLatency": -1, "fpgaLatency": 1)"),
       "/nodes/1/cpuLatency", "expected a number that is not negative, found -1"},
      {"NaN", moirai(R"({"id": 0, "time": [1, NaN], "memory": 1})"), "/nodes/0/time/1",
       "found NaN, expected a finite number"},
      {"nan", moirai(R"({"id": 0, "time": [nan, 1], "memory": 1})"), "/nodes/0/time/0",
       "found nan, expected a finite number"},
      {"Infinity", moirai(R"({"id": 0, "time": [1, 2], "memory": Infinity})"), "/nodes/0/memory",
       "found Infinity, expected a finite number"},
      {"-Infinity", moirai(R"({"id": 0, "time": [1, 2], "memory": -Infinity})"), "/nodes/0/memory",
       "found -Infinity, expected a finite number"},
      {"a number beyond all doubles", moirai(R"({"id": 0, "time": [1, 1e999], "memory": 1})"),
       "/nodes/0/time/1", "the number 1e999 is too large, expected a finite number"},
      {"a diagonal that is not zero",
       moirai(kTwoNodes, R"({"source": 0, "target": 1, "comm": [[0,1],[1,3]]})"), "/edges/0",
       "the tensor from op '0' takes 3 from device 'd1' to itself, expected 0"},
      {"edges of one op that cost differently",
       msr(kHead, kNode,
           R"({"sourceId": 1, "destId": 2, "cost": 1}, {"sourceId": 1, "destId": 2, "cost": 2})"),
       "/edges/1/cost", "the edges from node '1' cost 1 and 2, expected one cost for all of them"},
      {"a negative number of devices",
       msr(R"("maxSizePerFPGA": 5, "maxFPGAs": -1, "maxCPUs": 1)", kNode), "/maxFPGAs",
       "expected a whole number from 0 to 2048, found -1"},
      {"half a device", msr(R"("maxSizePerFPGA": 5, "maxFPGAs": 1.5, "maxCPUs": 1)", kNode),
       "/maxFPGAs", "expected a whole number from 0 to 2048, found 1.5"},
      {"too many devices", msr(R"("maxSizePerFPGA": 5, "maxFPGAs": 2000, "maxCPUs": 49)", kNode),
       "", "has 2049 devices, at most 2048 are read"},
      {"no devices", msr(R"("maxSizePerFPGA": 5, "maxFPGAs": 0, "maxCPUs": 0)", kNode), "/maxFPGAs",
       "there are no devices: maxCPUs is 0 too"},
      {"a bandwidth of zero",
       R"({"placewright": "problem", "version": 1, "kinds": [{"name": "k"}], "devices": [{"name": "a", "kind": "k"},
          {"name": "b", "kind": "k"}], "interconnect": {"kind": "links", "all": {}, "links": [{"from": "a", "to": "b",
          "bandwidth": 0}]}, "ops": [{"name": "x", "time": [1]}]})",
       "/interconnect/links/0", "the bandwidth of a link is 0; leave the link out instead"},

      // types and shapes
      {"a text for a number", moirai(R"({"id": 0, "time": [1, "2"], "memory": 1})"),
       "/nodes/0/time/1", "expected a number, found the text '2'"},
      {"a number for a list", moirai(R"({"id": 0, "time": 1, "memory": 1})"), "/nodes/0/time",
       "expected a list, found 1"},
      {"a list for an object", moirai("[]"), "/nodes/0", "expected an object, found a list"},
      {"an object for an id", moirai(R"({"id": {}, "time": [1, 2], "memory": 1})"), "/nodes/0/id",
       "expected an id (a whole number or a text), found an object"},
      {"a flag that is none",
       msr(kHead, R"("supportedOnFpga": 2, "cpuLatency": 1, "fpgaLatency": 1)"),
       "/nodes/1/supportedOnFpga", "expected true or false (or 1 or 0), found 2"},
      {"too few times", moirai(R"({"id": 0, "time": [1], "memory": 1})"), "/nodes/0/time",
       "has 1 times, expected 2, one for each device"},
      {"too few times of ours", native(R"({"name": "x", "time": []})"), "/ops/0/time",
       "op 'x' has 0 times for 1 device kinds"},
      {"times of an unknown kind", native(R"({"name": "x", "time": {"q": 1}})"), "/ops/0/time/q",
       "no kind is called 'q'"},
      {"a table that is not square",
       moirai(kTwoNodes, R"({"source": 0, "target": 1, "comm": [[0,1],[0]]})"), "/edges/0/comm/1",
       "has 1 entries, expected 2, one for each device"},
      {"an unknown unit", R"({"unit": "h", "models": []})", "/unit",
       "expected 'none', 's', 'ms' or 'us', found 'h'"},
      {"an unknown objective", native(kOps, R"(, "objective": "speed")"), "/objective",
       "expected 'throughput', 'call-latency', 'latency' or 'total-completion', found 'speed'"},
      {"an unknown rule", native(kOps, R"(, "rules": {"contiguity": "some"})"), "/rules/contiguity",
       "expected 'none', 'joint' or 'per-device', found 'some'"},
      {"an objective that the interconnect does not have",
       native(kOps, R"(, "objective": "call-latency")"), "",
       "the objective call-latency is defined for a host interconnect only, and this problem has "
       "links"},
      {"another version", native(kOps, "", "4"), "/version",
       "the version of this problem file is not known: versions 1 to 3 are read"},
      {"resources in version 1", native(kOps, R"(, "resources": [{"name": "r"}])"), "/version",
       "resources, memory spaces, shares and cuts need version 2 of the file"},
      {"shares in version 1", native(R"({"name": "x", "time": [1], "share": [0.5]})"), "/version",
       "resources, memory spaces, shares and cuts need version 2 of the file"},
      {"a resource without capacity",
       native(kOps, R"(, "resources": [{"name": "r", "capacity": 0}])", "2"), "/resources/0",
       "capacity of resource 'r' is 0, expected a finite number above 0"},
      {"a share above 1", native(R"({"name": "x", "time": [1], "share": {"k": 2}})", "", "2"),
       "/ops/0", "share of op 'x' is 2, expected a number above 0 and at most 1"},
      {"shares for other kinds", native(R"({"name": "x", "time": [1], "share": [1, 1]})", "", "2"),
       "/ops/0/share", "op 'x' has 2 shares for 1 device kinds"},
      {"cuts of no kind",
       native(kOps, R"(, "tensors": [{"from": "x", "to": ["y"], "cuts": [{"kind": "z"}]}])", "2"),
       "/tensors/0/cuts/0/kind", "no kind is called 'z'"},
      {"a plan for a problem", R"({"placewright": "plan", "version": 1})", "/placewright",
       "this is a plan file, expected a problem file"},
      {"no kind of file", R"({"placewright": "plna", "version": 1, "ops": []})", "/placewright",
       "no kind of file is called 'plna', expected a problem file"},
      {"a training plan for a problem", R"({"placewright": "training-plan", "version": 1})",
       "/placewright",
       "expected a problem file; this is a training plan, which only check, simulate and export "
       "take"},
      {"an expert split for a problem", R"({"fpgas": [], "cpus": []})", "",
       "this is a plan (expert split); expected a problem"},
      {"no devices of our own", R"({"placewright": "problem", "version": 1, "ops": []})", "",
       "has no devices: the keys 'kinds', 'devices' and 'interconnect' are missing, and no cluster "
       "file is given"},
      {"an unknown format", R"({"layers": []})", "",
       "the format is not known: expected the key 'placewright' (placewright), or 'maxFPGAs' or "
       "'maxCPUs' (msr), or 'devices' and 'nodes' (moirai), or 'models' (talos)"},
      {"a list at the top", "[1]", "", "expected an object, found a list"},
      {"a key that needs escapes", native(R"({"name": "x", "time": {"a/b~c": 1}})"),
       "/ops/0/time/a~1b~0c", "no kind is called 'a/b~c'"},

      // keys that are there twice
      {"a key twice", native(R"({"name": "x", "time": [1], "memory": 1, "memory": 2})"),
       "/ops/0/memory", "the key is given twice in this object"},
      {"a key twice, far apart", native(kOps, R"(, "models": [], "ops": [])"), "/ops",
       "the key is given twice in this object"},
      {"a key twice where any key may be", native(R"({"name": "x", "time": {"k": 1, "k": 1}})"),
       "/ops/0/time/k", "the key is given twice in this object"},
      {"a key twice, once with escapes", R"({"placewright": 1, "placewr\u0069ght": 2})",
       "/placewright", "the key is given twice in this object"},

      // texts that are no JSON
      {"nothing", "", "", "is empty, expected JSON"},
      {"white space", " \n\t", "", "is empty, expected JSON"},
      {"a text that is cut off", "{\"nodes\": [\n  {\"id\": 1,", "line 2, column 12",
       "the text ends in the middle, it seems to be cut off"},
      {"a string that is cut off", "{\"nodes\": \"abc", "line 1, column 15",
       "is not JSON: invalid string: missing closing quote"},
      {"more after the end", "{}\n}", "line 2, column 1",
       "is not JSON: unexpected '}'; expected end of input"},
      {"a comma too many", "{\"nodes\": [1,]}", "line 1, column 14",
       "is not JSON: unexpected ']'; expected '[', '{', or a literal"},
      {"bytes that are not UTF-8", "{\"nodes\": \"\xff\"}", "line 1, column 12",
       "is not JSON: invalid string: ill-formed UTF-8 byte"},
      {"UTF-16", std::string("\xFF\xFE{\0", 4), "", "is in UTF-16 or UTF-32, expected UTF-8"},
      {"UTF-16, most significant byte first", std::string("\xFE\xFF\0{", 4), "",
       "is in UTF-16 or UTF-32, expected UTF-8"},
      {"UTF-16 without a mark", std::string("{\0}\0", 4), "",
       "is in UTF-16 or UTF-32, expected UTF-8"},
      {"UTF-32", std::string("\0\0\xFE\xFF\0\0\0{", 8), "",
       "is in UTF-16 or UTF-32, expected UTF-8"},
      {"nesting without end", nested(100000), nested_place(), "is nested deeper than 200 levels"},
  };
  return inputs;
}

class BadProblem : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadProblem, IsOneSentenceWithFileAndPlace) {
  const BadInput& input = GetParam();
  try {
    (void)build_problem(parse_problem(input.text, "bad.json"));
    FAIL() << "was accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), "bad.json");
    EXPECT_EQ(error.place(), input.place);
    EXPECT_EQ(error.message(), input.message);
    EXPECT_EQ(error.what(),
              "bad.json: " + (input.place.empty() ? "" : input.place + ": ") + input.message);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadProblem, ::testing::ValuesIn(bad_problems()));

TEST(BadProblem, AByteOrderMarkIsNone) {
  const std::string text = native(kOps);
  EXPECT_EQ(parse_problem("\xEF\xBB\xBF" + text, "marked.json").draft.ops,
            parse_problem(text, "plain.json").draft.ops);
}

TEST(BadProblem, NestingUpToTheLimitIsRead) {
  try {
    (void)parse_problem(nested(199), "deep.json");
    FAIL() << "was accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.message().find("the format is not known"), 0U) << error.what();
  }
}

const std::string kCluster = R"({"placewright": "cluster", "version": 1, "kinds": [{"name": "d0"}],
  "devices": [{"name": "NAME", "kind": "d0"}], "interconnect": {"kind": "links"}})";

InputError error_with_cluster(const std::string& problem, const std::string& cluster_text) {
  const Folder folder;
  ReadOptions options;
  options.cluster = folder.file("cluster.json");
  write_whole(options.cluster, cluster_text);
  try {
    (void)build_problem(parse_problem(problem, "problem.json", options));
  } catch (const InputError& error) {
    return error;
  }
  return {"", "", "was accepted"};
}

TEST(BadCluster, AKindWithoutTimesNamesBothFiles) {
  std::string cluster = kCluster;
  cluster.replace(cluster.find("d0"), 2, "npu");
  cluster.replace(cluster.find("d0"), 2, "npu");
  const InputError error = error_with_cluster(moirai(kTwoNodes), cluster);
  EXPECT_NE(error.file().find("cluster.json"), std::string::npos);
  EXPECT_EQ(error.place(), "/kinds/0");
  EXPECT_EQ(error.message(),
            "the ops of problem.json have no times for the kind 'npu', only for 'd0' and 'd1'");
}

TEST(BadCluster, ADeviceWithoutTransferTimes) {
  const InputError error = error_with_cluster(
      moirai(kTwoNodes, R"({"source": 0, "target": 1, "comm": [[0,1],[1,0]]})"), kCluster);
  EXPECT_EQ(error.place(), "/devices/0");
  EXPECT_EQ(error.message(),
            "problem.json gives tables of transfer times between its own devices, and 'NAME' is "
            "none of them");
}

TEST(BadCluster, ADeviceThatAnOpIsPinnedTo) {
  std::string cluster = kCluster;
  while (cluster.find("d0") != std::string::npos) cluster.replace(cluster.find("d0"), 2, "k");
  const InputError error =
      error_with_cluster(native(R"({"name": "x", "time": [1], "pin": "b"})"), cluster);
  EXPECT_EQ(error.place(), "/devices");
  EXPECT_EQ(error.message(), "has no device 'b', to which op 'x' of problem.json is pinned");
}

TEST(BadCluster, ListsWithoutKindsOfTheirOwn) {
  const InputError error = error_with_cluster(
      R"({"placewright": "problem", "version": 1, "ops": [{"name": "x", "time": [1]}]})", kCluster);
  EXPECT_EQ(error.place(), "/ops/0/time");
  EXPECT_EQ(error.message(),
            "a list of times needs the file's own kinds, expected an object by kind name");
}

TEST(BadCluster, IsNoProblem) {
  const InputError error = error_with_cluster(moirai(kTwoNodes), native(kOps));
  EXPECT_EQ(error.message(), "this is a problem file, expected a cluster file");
}

}  // namespace
}  // namespace placewright
