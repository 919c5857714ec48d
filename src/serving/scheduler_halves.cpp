// The scheduler's part about halves of the cores; the rule is in scheduler.h.

#include <algorithm>

#include "serving/scheduler.h"

namespace placewright {
namespace {

// Of the time of two requests one after the other: what saves less is not worth it.
constexpr double kHalvesGain = 0.97;

}  // namespace

const Scheduler::Begun* Scheduler::on_a_half() const {
  for (const auto& [number, entry] : models_) {
    for (const Begun& begun : entry.begun) {
      if (begun.half && begun.runs()) return &begun;
    }
  }
  return nullptr;
}

// Nothing of it waits at a border.
bool Scheduler::can_run_on_half(const Entry& entry) const {
  return in_segments() && entry.served.on_half > 0 && !entry.waiting.empty() &&
         std::ranges::all_of(entry.begun, &Begun::runs);
}

// Whose request would be next if the first one of this model were not there.
std::optional<ModelNumber> Scheduler::next_after(ModelNumber first) const {
  std::optional<std::pair<Turn, ModelNumber>> best;
  for (const auto& [model, entry] : models_) {
    const std::optional<Turn> turn = model == first ? waiting_turn_of(entry, 1) : turn_of(entry);
    if (turn && (!best || *turn < best->first)) best.emplace(*turn, model);
  }
  if (!best) return std::nullopt;
  return best->second;
}

bool Scheduler::run_better_side_by_side(ModelNumber first, double now) const {
  const Entry& one = models_.at(first);
  if (!can_run_on_half(one) || batch_size(one, now) > 1) return false;
  const std::optional<ModelNumber> second = next_after(first);
  if (!second || !can_run_on_half(models_.at(*second))) return false;
  const Entry& other = models_.at(*second);
  const double one_by_one = one.own + other.own;
  const double first_ends = one.served.on_half;
  const double second_ends = other.served.on_half;
  const double deadline = one.turns.begin()->first;
  const double second_deadline = waiting_turn_of(other, first == *second ? 1 : 0)->deadline;
  return std::max(first_ends, second_ends) <= kHalvesGain * one_by_one &&
         first_ends + second_ends <= one.own + one_by_one && now + first_ends <= deadline &&
         now + second_ends <= second_deadline;
}

// Beside the half that computes.
std::optional<Step> Scheduler::next_on_half(double now) {
  const Begun* running = on_a_half();
  if (running == nullptr || aged_model_) return std::nullopt;
  const std::optional<ModelNumber> chosen = first_in_turn();
  if (!chosen) return std::nullopt;
  const Entry& entry = models_.at(*chosen);
  if (!can_run_on_half(entry)) return std::nullopt;
  const double time = entry.served.on_half;
  const bool sooner = time <= running->step_left(now) + entry.own;
  if (!sooner || now + time > entry.turns.begin()->first) return std::nullopt;
  return begin_on_half(*chosen, 1 - *running->half, now);
}

Step Scheduler::begin_on_half(ModelNumber model, std::size_t half, double now) {
  Entry& entry = models_.at(model);
  Begun begun{.requests = {take(entry, entry.turns.begin()->second)}, .half = half};
  entry.begun.push_back(std::move(begun));
  return step_of(model, entry.begun.back(), now);
}

}  // namespace placewright
