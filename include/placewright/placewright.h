// Placewright as a library: read or build a placement problem, plan it, check it, keep the plan.
//
//   const placewright::Problem problem = placewright::open_problem("model.json");
//   const placewright::Result result = placewright::solve(problem, {.planner = "auto", .seconds = 5});
//   if (result.plan) placewright::save_result("plan.json", problem, result);
//
// This header and the nouns it brings with it (problem/draft.h: a problem as plain records;
// problem/problem.h: checked and frozen; problem/plan.h: plans, certificates; problem/objective.h:
// objectives and rules; problem/ids.h: ids and tables) are the whole public interface. Everything
// is in the namespace placewright.
//
// Errors are exceptions whose message is one sentence: std::runtime_error for what is wrong with a
// file or a draft (the sentence names the file and the place in it, or the record), and
// std::invalid_argument for a task that makes no sense (an unknown planner or option). "Nothing
// fits", "no plan found" and "time is up" are not errors but results. Nothing prints, nothing ends
// the program. Functions may be called from several threads at once; a Problem may be shared by
// them.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "problem/draft.h"
#include "problem/ids.h"
#include "problem/objective.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// "0.1.0"
std::string_view library_version();

// How to read a problem file; the defaults let the file decide.
struct OpenOptions {
  std::string format = {};  // "placewright", "moirai", "msr", "talos"; empty: recognised by content
  std::optional<Objective> objective = {};  // absent: the file's, or its format's usual one
  std::string cluster = {};                 // path of a cluster file that gives the devices
};

// A problem from a file, of our own format or a published one. A problem made in code is
// `Problem(draft)`, which throws InvalidProblem (a std::runtime_error) when the draft breaks a
// rule.
Problem open_problem(const std::string& path, const OpenOptions& options = {});

// The same from text in memory; `origin` is what messages call it.
Problem read_problem_text(std::string_view text, const std::string& origin,
                          const OpenOptions& options = {});

// In our own format. Written whole or not at all.
void save_problem(const std::string& path, const Problem& problem);

// A planner as `placewright planners` lists it.
struct PlannerDescription {
  std::string name;
  std::string summary;
  std::vector<Objective> objectives;
  bool exact = false;                          // proves its plans optimal, given time
  std::map<std::string, std::string> options;  // name to what it does
};

std::vector<PlannerDescription> available_planners();

// How far a planner has come.
struct Milestone {
  std::string planner;
  double seconds = 0;
  double value = kInfinity;  // of the best plan so far; infinite: none yet
  double lower_bound = 0;
};

// What to do, and how much to spend on it.
struct Task {
  std::string planner = "auto";                                     // one of available_planners()
  std::map<std::string, std::string> options = {};                  // of the planner, as text
  double seconds = 10;                                              // time limit
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();  // work limit; repeatable
  int threads = 1;
  std::uint64_t seed = 1;
  const Plan* start = nullptr;              // improve this one
  const std::atomic<bool>* stop = nullptr;  // set it to end early with the best so far
  std::function<void(const Milestone&)> on_milestone = {};  // called in the planning thread
};

struct Result {
  Status status = Status::unknown;
  std::optional<Plan> plan;  // accepted by the verifier
  Certificate certificate;   // no plan has a value below its lower bound
  std::string reason;        // no plan: why
  std::string planner;
  double seconds = 0;
  std::uint64_t seed = 1;

  // (value - bound) / value; infinite without a plan.
  [[nodiscard]] double gap() const;
};

Result solve(const Problem& problem, const Task& task = {});

// What is wrong with a plan: a code in kebab case ("memory-exceeded") and one sentence.
struct Finding {
  std::string code;
  std::string message;
};

// Checks any plan from first principles; the answer is empty if it is valid.
std::vector<Finding> check_plan(const Problem& problem, const Plan& plan);

// The plan that a bare placement stands for: the better of two list schedules, one stage for each
// device, or the calls that the placement needs. Nothing where the placement breaks a rule on
// links, contiguity or calls; memory is left to check_plan.
std::optional<Plan> plan_for(const Problem& problem, const Placement& placement);

// A plan file that holds its problem too, as `placewright plan --embed -o` writes it. Throws
// std::invalid_argument when the result has no plan.
void save_result(const std::string& path, const Problem& problem, const Result& result);

// A plan file with its problem: the one inside, or the file that it names.
struct OpenedPlan {
  Problem problem;
  Plan plan;
};
OpenedPlan open_plan(const std::string& path);

}  // namespace placewright
