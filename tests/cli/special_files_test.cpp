// Pipes and devices where a file is expected: what never ends is refused, and what a shell offers
// (standard input, the pipe of a process substitution) is read.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/folder.h"
#include "support/locations.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;

const std::string kProblem = example_path("moirai/example-1.json");

class SpecialFiles : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(mkfifo(pipe_.c_str(), 0600), 0); }

  void expect_refused(const std::vector<std::string>& words, const std::string& message) {
    const auto result = run(words);
    EXPECT_EQ(result.exit_code, 3) << words[0] << ' ' << result.out;
    EXPECT_THAT(result.err, HasSubstr(message)) << words[0];
  }

  Folder folder_;
  std::string pipe_ = folder_.file("model.onnx");
};

TEST_F(SpecialFiles, ADeviceIsNoInput) {
  const std::string plan = folder_.file("plan.json");
  ASSERT_EQ(run({"plan", kProblem, "--planner", "heft", "-o", plan}).exit_code, 0);
  const std::string message = "/dev/zero: is a device, expected a file";
  for (const char* verb : {"plan", "check", "simulate", "explain", "info", "compare", "affinity",
                           "online", "run", "tune"}) {
    expect_refused({verb, "/dev/zero"}, message);
  }
  expect_refused({"whatif", "/dev/zero", "--devices", "1-2"}, message);
  expect_refused({"report", "/dev/zero", "-o", folder_.file("page.html")}, message);
  expect_refused({"export", "/dev/zero", "--to", "dot"}, message);
  expect_refused({"import", "/dev/zero", "-o", "-"}, message);
  expect_refused({"check", plan, "--problem", "/dev/zero"}, message);
  expect_refused({"plan", kProblem, "--cluster", "/dev/zero"}, message);
  expect_refused({"plan", kProblem, "--start", "/dev/zero"}, message);
  expect_refused({"report", plan, "--run", "/dev/zero", "-o", folder_.file("page.html")}, message);
}

TEST_F(SpecialFiles, APipeIsNoModel) {
  for (const char* verb : {"plan", "info", "profile"}) {
    expect_refused({verb, pipe_}, "is a pipe, expected a file");
  }
  expect_refused({"import", pipe_, "-o", "-"}, "is a pipe, expected a file");
}

// A model path inside a problem: opening the pipe would wait for its writer for ever.
TEST_F(SpecialFiles, APathInsideAFileIsThatOfAFile) {
  auto problem = run({"import", kProblem, "-o", "-"}).json();
  for (const std::string& model : {pipe_, std::string("/dev/zero")}) {
    for (const char* digest : {"", "0123"}) {
      problem["models"][0]["source"] = {{"path", model}, {"backend", "openvino"}};
      if (*digest != 0) problem["models"][0]["source"]["digest"] = digest;
      const std::string path = folder_.write("problem.json", problem.dump());
      const std::string plan = folder_.file("plan.json");
      ASSERT_EQ(run({"plan", path, "--planner", "heft", "-o", plan}).exit_code, 0);
      const std::string message = model == pipe_ ? "is a pipe" : "is a device";
      expect_refused({"run", plan}, message);
      expect_refused({"export", plan, "--to", "parts", "-o", folder_.file("parts")}, message);
    }
  }
}

TEST_F(SpecialFiles, AProblemThatAPlanOrATraceNamesIsAFile) {
  const std::string path = folder_.write("problem.json", run({"import", kProblem, "-o", "-"}).out);
  const std::string plan = folder_.file("plan.json");
  ASSERT_EQ(run({"plan", path, "--planner", "heft", "-o", plan}).exit_code, 0);
  auto document = nlohmann::json::parse(folder_.read("plan.json"));
  document["problem"]["path"] = "model.onnx";
  expect_refused({"check", folder_.write("other.json", document.dump())}, "is a pipe");
  const nlohmann::json trace = {{"placewright", "trace"},
                                {"version", 1},
                                {"models", {"model.onnx"}},
                                {"arrivals", {{{"model", "m"}, {"time", 0}}}}};
  expect_refused({"online", folder_.write("trace.json", trace.dump())}, "is a pipe");
}

TEST_F(SpecialFiles, WhatAShellOffersIsRead) {
  const std::string text = run({"import", kProblem, "-o", "-"}).out;
  for (const char* path : {"-", "/dev/stdin", "/proc/self/fd/0"}) {
    EXPECT_EQ(run({"plan", path, "--planner", "heft", "--json"}, text).exit_code, 0) << path;
  }
  // A process substitution of the shell gives such a pipe.
  const auto piped = run_redirected("3<&0 0</dev/null", {"info", "/dev/fd/3", "--json"});
  EXPECT_EQ(piped.exit_code, 3) << "an empty input is no problem";
  EXPECT_THAT(piped.err, HasSubstr("is empty"));
}

TEST_F(SpecialFiles, ATrainingFileMayComeThroughAPipe) {
  const std::string problem = folder_.file("cluster.json");
  const std::string plan = folder_.file("plan.json");
  ASSERT_EQ(run({"import", example_path("sailor"), "--format", "sailor", "--model", "OPT-350",
                 "--batch", "512", "--node", "GH-96=2", "-o", problem, "-q"})
                .exit_code,
            0);
  const auto planned =
      run({"plan", "-", "--time-limit", "1s", "-o", plan, "--json"}, folder_.read("cluster.json"));
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_EQ(planned.json()["objective"], "step-time");
  for (const char* path : {"-", "/dev/stdin"}) {
    RunningProgram piped(
        "/bin/sh", {"-c", "cat \"$1\" | \"$0\" simulate \"$2\" --json", program_path(), plan, path},
        "");
    const auto result = piped.wait();
    EXPECT_EQ(result.exit_code, 0) << path << result.err;
    EXPECT_EQ(result.json()["value"], planned.json()["value"]);
  }
}

// As `placewright explain <(cat plan.json)` does: a pipe can be read once.
TEST_F(SpecialFiles, APlanThroughAPipeIsRead) {
  const std::string plan = folder_.file("plan.json");
  ASSERT_EQ(run({"plan", kProblem, "--planner", "heft", "-o", plan}).exit_code, 0);
  for (const char* verb : {"check", "simulate", "explain"}) {
    RunningProgram piped(
        "/bin/sh", {"-c", "cat \"$1\" | \"$0\" \"$2\" /dev/stdin", program_path(), plan, verb}, "");
    const auto result = piped.wait();
    EXPECT_EQ(result.exit_code, 0) << verb << ' ' << result.err;
  }
}

}  // namespace
}  // namespace placewright::testing
