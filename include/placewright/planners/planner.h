// What a planner is: a function from a Problem to an Answer within a Budget.
//
// Adding one takes a new file with a function `PlannerEntry name()` and one line in the family's
// `register_…` function (registry.h). The entry's record feeds `placewright planners`, the flags,
// the docs and the shared test suite.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "placewright/problem/plan.h"
#include "placewright/problem/problem.h"

namespace placewright {

// One tunable of a planner. Its default's type is the option's type.
using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

// As Settings::set takes it.
std::string text_of(const OptionValue& value);

struct Option {
  std::string name;
  std::string text;
  OptionValue standard;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  // strings only; empty: any text
};

// Option values by name; what is absent has its default.
class Settings {
 public:
  Settings() = default;
  explicit Settings(std::vector<Option> options) : options_(std::move(options)) {}

  // Parses, checks type, bounds and choices; throws std::invalid_argument with one sentence.
  void set(const std::string& name, const std::string& text);

  [[nodiscard]] bool flag(const std::string& name) const;
  [[nodiscard]] std::int64_t integer(const std::string& name) const;
  [[nodiscard]] double number(const std::string& name) const;
  [[nodiscard]] const std::string& text(const std::string& name) const;
  [[nodiscard]] const std::vector<Option>& options() const { return options_; }
  [[nodiscard]] const OptionValue& value(const std::string& name) const;

 private:
  std::vector<Option> options_;
  std::map<std::string, OptionValue> values_;
};

struct Budget {
  double seconds = 10;
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();  // work limit, repeatable
  int threads = 1;
  std::uint64_t seed = 1;
  // Bytes that a planner may take beyond the problem itself. Planners estimate what they build
  // before they build it.
  double memory = kInfinity;
};

struct Progress {
  std::string planner;
  double seconds = 0;
  double value = kInfinity;  // best so far
  double lower_bound = 0;
  std::uint64_t steps = 0;  // of work so far, as the planner counts them
};

class ProgressRelay;
class Exchange;

// A planner's window on the outside: when to stop, and whom to tell. Planners ask `should_stop`
// often (it costs a few nanoseconds) and then return the best they have.
//
// A Control belongs to the thread that made it, and the observer is called in that thread only.
// Other threads may use it one at a time: what they report waits until the owner asks
// `should_stop`, reports something itself, or calls `deliver_reports`.
class Control {
 public:
  using Clock = std::chrono::steady_clock;
  using Observer = std::function<void(const Progress&)>;

  Control(std::string planner, Budget budget, const std::atomic<bool>* interrupted = nullptr,
          Observer observer = {});

  [[nodiscard]] const Budget& budget() const { return budget_; }
  [[nodiscard]] double elapsed() const;
  [[nodiscard]] double remaining() const { return budget_.seconds - elapsed(); }

  // Why work that cannot be interrupted must not be begun, when it is estimated to take so long and
  // so many bytes; empty: there is time and memory for it.
  [[nodiscard]] std::string cannot_afford(double seconds, double bytes) const;

  // Counts `steps` of work and answers whether time, steps or patience are at an end. Looks at a
  // clock that moves every few milliseconds, on each call: a step that takes long is the last one.
  [[nodiscard]] bool should_stop(std::uint64_t steps = 0);
  [[nodiscard]] bool interrupted() const {
    return interrupted_ != nullptr && interrupted_->load(std::memory_order_relaxed);
  }
  [[nodiscard]] const std::atomic<bool>* interruption() const { return interrupted_; }
  // Why it stopped, for `reason` and notes: "time limit", "step limit", "interrupted".
  [[nodiscard]] std::string stop_reason() const;

  // Told of every better plan or bound.
  void report(double value, double lower_bound);
  // The same, and the plan itself passes `check_incumbent`, where one is set.
  void report(const Plan& incumbent, double lower_bound);
  // Hands what other threads have reported to the observer.
  void deliver_reports();

  // What the user should know beside the answer, in one sentence: a member of a portfolio that
  // failed or was left out, for example.
  void note(std::string sentence) { notes_.push_back(std::move(sentence)); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  // Throws when a plan is wrong. The planning service sets it in debug builds, since planners do
  // not know the verifier.
  std::function<void(const Plan&)> check_incumbent = {};

  // A plan to start from, where the planner can use one.
  const Plan* start = nullptr;

  // What planners share that run at the same time on the same problem (planners/exchange.h); null:
  // this one runs alone. Children do not inherit it: their problem may be another.
  std::shared_ptr<Exchange> exchange = {};

  // A child for a part of the work: at most `seconds`, the same seed, observer, owner and
  // interruption.
  [[nodiscard]] Control part(std::string planner, double seconds) const;
  // A child that runs beside others, in a thread and with a budget and an interruption of its own.
  [[nodiscard]] Control beside(std::string planner, Budget budget,
                               const std::atomic<bool>* interrupted) const;
  // The same as `part` for work on another problem, such as a part of this one, of which nobody is
  // told.
  [[nodiscard]] Control apart(std::string planner, double seconds) const;

 private:
  Control(std::string planner, Budget budget, const std::atomic<bool>* interrupted,
          std::shared_ptr<ProgressRelay> relay);

  std::string planner_;
  Budget budget_;
  const std::atomic<bool>* interrupted_;
  std::shared_ptr<ProgressRelay> relay_;  // null: nobody is told
  Clock::time_point begin_;
  Clock::time_point deadline_;
  std::uint64_t steps_ = 0;
  bool stopped_ = false;
  std::vector<std::string> notes_;
};

enum class Strength { heuristic, exact };
template <>
inline constexpr auto kSpellings<Strength> = std::to_array<Spelling<Strength>>(
    {{Strength::heuristic, "heuristic"}, {Strength::exact, "exact"}});

// How long it runs, so that those who run several planners know the order and the shares of time.
enum class Effort {
  instant,    // a pass or two over the ops: has a plan in the time it takes to read the problem
  quick,      // ends by itself soon
  anytime,    // goes on improving while there is time
  portfolio,  // runs other planners
};

// Why it is here.
enum class Role {
  own,        // what this project stands on
  yardstick,  // what any planner should beat
  published,  // another group's method as published, for comparison
  imitation,  // what another tool does, for comparison
};
template <>
inline constexpr auto kSpellings<Role> =
    std::to_array<Spelling<Role>>({{Role::own, "own"},
                                   {Role::yardstick, "yardstick"},
                                   {Role::published, "published"},
                                   {Role::imitation, "imitation"}});

// For planners of placements, whatever is minimised.
std::vector<Objective> every_objective();

struct PlannerEntry {
  std::string name;
  std::string summary;  // one line
  std::vector<Objective> objectives;
  Role role = Role::own;
  Strength strength = Strength::heuristic;
  Effort effort = Effort::quick;
  // In a portfolio: the weight of its claim on the time that is left when its turn comes.
  double share = 1;
  // In a portfolio: whether it is worth that time on this problem; empty: on all that it serves.
  std::function<bool(const Problem&)> worth_its_time = {};
  // What it plans for; it refuses problems that ask for more.
  Features knows = kCommonFeatures;
  // Whether it gains from Budget::threads above 1.
  bool uses_threads = false;
  std::vector<Option> options = {};
  // Why it cannot serve this problem although it knows all that is asked; empty: it can.
  std::function<std::string(const Problem&)> refuses = {};
  std::function<Answer(const Problem&, const Settings&, Control&)> plan;

  [[nodiscard]] bool serves(Objective objective) const;
  // `refuses`, and what follows from the record itself.
  [[nodiscard]] std::string refusal(const Problem& problem) const;
};

}  // namespace placewright
