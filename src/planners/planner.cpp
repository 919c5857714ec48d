#include "planners/planner.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <stdexcept>

#include <fmt/format.h>

#include "planners/exchange.h"
#include "planners/progress_relay.h"

namespace placewright {
namespace {

const Option& find_option(const std::vector<Option>& options, const std::string& name) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.name == name; });
  if (found != options.end()) return *found;
  std::string known;
  for (const Option& option : options) known += (known.empty() ? "" : ", ") + option.name;
  throw std::invalid_argument(
      fmt::format("unknown option '{}' (known: {})", name, known.empty() ? "none" : known));
}

template <class Number>
Number parse_number(const Option& option, const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw std::invalid_argument(
        fmt::format("option '{}' is '{}', expected a number", option.name, text));
  }
  // Written so that a value that is no number is outside.
  const auto real = static_cast<double>(value);
  if (!(real >= option.lower && real <= option.upper)) {
    throw std::invalid_argument(fmt::format("option '{}' is {}, expected {} to {}", option.name,
                                            text, option.lower, option.upper));
  }
  return value;
}

OptionValue parse(const Option& option, const std::string& text) {
  if (std::holds_alternative<bool>(option.standard)) {
    if (text == "true" || text == "on" || text == "1") return true;
    if (text == "false" || text == "off" || text == "0") return false;
    throw std::invalid_argument(
        fmt::format("option '{}' is '{}', expected true or false", option.name, text));
  }
  if (std::holds_alternative<std::int64_t>(option.standard)) {
    return parse_number<std::int64_t>(option, text);
  }
  if (std::holds_alternative<double>(option.standard)) return parse_number<double>(option, text);
  const auto& choices = option.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
    throw std::invalid_argument(fmt::format("option '{}' is '{}', expected one of: {}", option.name,
                                            text, fmt::join(choices, ", ")));
  }
  return text;
}

using Clock = Control::Clock;

// What an estimate may say where steps are limited. The clock has no part in it, so that the same
// work is begun on every machine.
constexpr double kAffordableSeconds = 10;

// Read from memory that the kernel updates with every tick: a fifth of the cost of Clock::now(),
// which is on the same time scale.
Clock::time_point coarse_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return Clock::time_point(std::chrono::seconds(time.tv_sec) +
                           std::chrono::nanoseconds(time.tv_nsec));
}

// Budgets may be infinite or larger than a clock can say.
Clock::time_point after(Clock::time_point begin, double seconds) {
  constexpr double kYear = 3600.0 * 24 * 365;
  return begin + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(std::clamp(seconds, 0.0, kYear)));
}

}  // namespace

std::string text_of(const OptionValue& value) {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

void Settings::set(const std::string& name, const std::string& text) {
  values_[name] = parse(find_option(options_, name), text);
}

const OptionValue& Settings::value(const std::string& name) const {
  const auto found = values_.find(name);
  return found != values_.end() ? found->second : find_option(options_, name).standard;
}

bool Settings::flag(const std::string& name) const {
  return std::get<bool>(value(name));
}
std::int64_t Settings::integer(const std::string& name) const {
  return std::get<std::int64_t>(value(name));
}
double Settings::number(const std::string& name) const {
  return std::get<double>(value(name));
}
const std::string& Settings::text(const std::string& name) const {
  return std::get<std::string>(value(name));
}

Control::Control(std::string planner, Budget budget, const std::atomic<bool>* interrupted,
                 Observer observer)
    : Control(std::move(planner), budget, interrupted,
              observer ? std::make_shared<ProgressRelay>(std::move(observer)) : nullptr) {}

Control::Control(std::string planner, Budget budget, const std::atomic<bool>* interrupted,
                 std::shared_ptr<ProgressRelay> relay)
    : planner_(std::move(planner)),
      budget_(budget),
      interrupted_(interrupted),
      relay_(std::move(relay)),
      begin_(Clock::now()),
      deadline_(after(coarse_now(), budget.seconds)) {}

double Control::elapsed() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

std::string Control::cannot_afford(double seconds, double bytes) const {
  if (bytes > budget_.memory) {
    return fmt::format("it would take about {:.0f} MB of memory, and the limit is {:.0f} MB",
                       bytes / 1e6, budget_.memory / 1e6);
  }
  const bool steps_limited = budget_.steps < Budget{}.steps;
  const double left = steps_limited ? kAffordableSeconds : std::max(0.0, remaining());
  if (seconds <= left) return {};
  return fmt::format("it would take about {:.2g} s before it could be stopped, and {:.2g} s are {}",
                     seconds, left, steps_limited ? "the most with a limit of steps" : "left");
}

bool Control::should_stop(std::uint64_t steps) {
  if (stopped_) return true;
  steps_ += steps;
  deliver_reports();
  stopped_ = steps_ > budget_.steps || interrupted() || coarse_now() >= deadline_;
  return stopped_;
}

std::string Control::stop_reason() const {
  if (interrupted()) return "interrupted";
  if (steps_ > budget_.steps) return "step limit";
  return "time limit";
}

void Control::report(double value, double lower_bound) {
  if (exchange) exchange->raise_bound(lower_bound);
  if (relay_) relay_->report(Progress{planner_, elapsed(), value, lower_bound, steps_});
}

void Control::deliver_reports() {
  if (relay_) relay_->deliver();
}

void Control::report(const Plan& incumbent, double lower_bound) {
  if (check_incumbent) check_incumbent(incumbent);
  if (exchange) exchange->offer_in_passing(planner_, incumbent);
  report(incumbent.value, lower_bound);
}

Control Control::part(std::string planner, double seconds) const {
  Budget budget = budget_;
  budget.seconds = std::max(0.0, std::min(seconds, remaining()));
  Control control{std::move(planner), budget, interrupted_, relay_};
  control.check_incumbent = check_incumbent;
  return control;
}

Control Control::beside(std::string planner, Budget budget,
                        const std::atomic<bool>* interrupted) const {
  Control control{std::move(planner), budget, interrupted, relay_};
  control.check_incumbent = check_incumbent;
  return control;
}

Control Control::apart(std::string planner, double seconds) const {
  Budget budget = budget_;
  budget.seconds = std::max(0.0, std::min(seconds, remaining()));
  return {std::move(planner), budget, interrupted_};
}

std::vector<Objective> every_objective() {
  const auto objectives = values_of<Objective>();
  return {objectives.begin(), objectives.end()};
}

bool PlannerEntry::serves(Objective objective) const {
  return std::find(objectives.begin(), objectives.end(), objective) != objectives.end();
}

std::string PlannerEntry::refusal(const Problem& problem) const {
  if (const Features lacking = problem.features() - knows; !lacking.empty()) {
    return "it does not plan for " + text_of(lacking);
  }
  return refuses ? refuses(problem) : std::string{};
}

}  // namespace placewright
