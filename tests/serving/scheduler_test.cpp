#include "serving/scheduler.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/simulation.h"

namespace placewright {
namespace {

ServedModel model(std::string name, double whole, std::size_t segments) {
  ServedModel made{.name = std::move(name), .whole = whole};
  const double each = whole / static_cast<double>(segments) + 0.05;
  if (segments > 1) made.segments.assign(segments, each);
  return made;
}

std::vector<ServedModel> short_and_long() {
  return {model("short", 1, 1), model("long", 20, 4)};
}

RequestId accepted(Scheduler& scheduler, const NewRequest& request, double now) {
  const Admission admission = scheduler.submit(request, now);
  EXPECT_TRUE(admission.request.has_value());
  return admission.request.value_or(0);
}

TEST(Scheduler, LeavesALongRequestAtABorderForAShortOne) {
  Scheduler scheduler;
  for (const ServedModel& each : short_and_long()) scheduler.add(each);
  accepted(scheduler, {.model = 1}, 0);
  const Step first = scheduler.next(0).value();
  EXPECT_EQ(first.segment, 0U);
  EXPECT_FALSE(first.last);
  const RequestId urgent = accepted(scheduler, {.model = 0}, 1);
  EXPECT_FALSE(scheduler.next(1).has_value()) << "the cores are busy";
  EXPECT_THAT(scheduler.finish(first, 5).completed, testing::IsEmpty());
  const Step second = scheduler.next(5).value();
  EXPECT_THAT(second.requests, testing::ElementsAre(urgent));
  EXPECT_FALSE(second.segment.has_value());
  EXPECT_THAT(scheduler.finish(second, 6).completed, testing::ElementsAre(urgent));
  EXPECT_EQ(scheduler.next(6).value().segment, 1U);
}

TEST(Scheduler, RunsAModelUncutThatIsAlone) {
  Scheduler scheduler;
  const ModelNumber alone = scheduler.add(model("long", 20, 4));
  accepted(scheduler, {.model = alone}, 0);
  const Step step = scheduler.next(0).value();
  EXPECT_FALSE(step.segment.has_value());
  EXPECT_TRUE(step.last);
  EXPECT_EQ(step.expected, 20);
}

TEST(Scheduler, FinishesUncutWhatBeganUncutWhenAnotherModelComes) {
  Scheduler scheduler;
  const ModelNumber first = scheduler.add(model("long", 20, 4));
  accepted(scheduler, {.model = first}, 0);
  const Step step = scheduler.next(0).value();
  scheduler.add(model("short", 1, 1));
  EXPECT_EQ(scheduler.finish(step, 20).completed.size(), 1U);
  accepted(scheduler, {.model = first}, 20);
  EXPECT_EQ(scheduler.next(20).value().segment, 0U);
}

TEST(Scheduler, PrioritiesAreStrict) {
  std::vector<ServedModel> models = short_and_long();
  models[1].service.priority = 1;
  Scheduler scheduler;
  for (const ServedModel& each : models) scheduler.add(each);
  accepted(scheduler, {.model = 0}, 0);
  accepted(scheduler, {.model = 1}, 0);
  EXPECT_EQ(scheduler.next(0).value().model, 1U);
}

TEST(Scheduler, TheEarliestDeadlineComesFirst) {
  Scheduler scheduler;
  for (const ServedModel& each : short_and_long()) scheduler.add(each);
  accepted(scheduler, {.model = 0}, 0);
  accepted(scheduler, {.model = 0, .deadline = 200}, 0);
  const RequestId first = accepted(scheduler, {.model = 1, .deadline = 100}, 0);
  EXPECT_THAT(scheduler.next(0).value().requests, testing::ElementsAre(first));
}

TEST(Scheduler, RefusesWhatCannotBeInTimeAndWhatWouldMakeOthersLate) {
  Scheduler scheduler;
  for (const ServedModel& each : short_and_long()) scheduler.add(each);
  const Admission alone = scheduler.submit({.model = 1, .deadline = 10}, 0);
  ASSERT_TRUE(alone.refusal.has_value());
  EXPECT_EQ(alone.refusal->reason, RefusalReason::too_late);
  EXPECT_THAT(alone.refusal->text, testing::HasSubstr("'long' needs 20.2 ms"));
  accepted(scheduler, {.model = 1, .deadline = 22}, 0);
  const Admission behind = scheduler.submit({.model = 0, .deadline = 21.9}, 0);
  EXPECT_TRUE(behind.refusal.has_value()) << "the one accepted before would be late";
  EXPECT_EQ(scheduler.live(), 1U);
}

TEST(Scheduler, ServesLateRequestsBehindTheOthersWhereAsked) {
  Scheduler scheduler({.late = Late::serve});
  for (const ServedModel& each : short_and_long()) scheduler.add(each);
  accepted(scheduler, {.model = 1, .deadline = 10}, 0);
  const RequestId in_time = accepted(scheduler, {.model = 0, .deadline = 10}, 0);
  EXPECT_THAT(scheduler.next(0).value().requests, testing::ElementsAre(in_time));
}

TEST(Scheduler, AFullQueueRefuses) {
  ServedModel small = model("short", 1, 1);
  small.service.queue = {.requests = 2, .bytes = 100};
  Scheduler scheduler;
  scheduler.add(small);
  accepted(scheduler, {.model = 0, .bytes = 60}, 0);
  EXPECT_EQ(scheduler.submit({.model = 0, .bytes = 60}, 0).refusal.value().reason,
            RefusalReason::queue_bytes);
  accepted(scheduler, {.model = 0, .bytes = 40}, 0);
  EXPECT_EQ(scheduler.submit({.model = 0}, 0).refusal.value().reason, RefusalReason::queue_full);
}

TEST(Scheduler, ACancelledRequestLeavesAtTheNextBorder) {
  Scheduler scheduler;
  for (const ServedModel& each : short_and_long()) scheduler.add(each);
  const RequestId running = accepted(scheduler, {.model = 1}, 0);
  const RequestId waiting = accepted(scheduler, {.model = 1}, 0);
  const Step step = scheduler.next(0).value();
  EXPECT_TRUE(scheduler.cancel(waiting));
  EXPECT_FALSE(scheduler.cancel(running));
  EXPECT_THAT(scheduler.finish(step, 5).cancelled, testing::ElementsAre(running));
  EXPECT_EQ(scheduler.live(), 0U);
  EXPECT_FALSE(scheduler.next(5).has_value());
}

TEST(Scheduler, JoinsThoseThatWaitWhereABatchTakesLessForEach) {
  ServedModel batched = model("short", 1, 1);
  batched.batches = {{2, 1.9}, {4, 4.2}};
  Scheduler scheduler;
  scheduler.add(batched);
  for (int i = 0; i < 5; ++i) accepted(scheduler, {.model = 0}, 0);
  const Step step = scheduler.next(0).value();
  EXPECT_EQ(step.requests.size(), 2U) << "four at once cost more for each";
  EXPECT_EQ(step.expected, 1.9);
  EXPECT_EQ(scheduler.finish(step, 1.9).completed.size(), 2U);
}

TEST(Scheduler, AModelThatGoesServesWhatItHasAndIsForgotten) {
  Scheduler scheduler;
  for (const ServedModel& each : short_and_long()) scheduler.add(each);
  const RequestId begun = accepted(scheduler, {.model = 1}, 0);
  const RequestId waits = accepted(scheduler, {.model = 1}, 0);
  const Step step = scheduler.next(0).value();
  scheduler.remove(1);
  EXPECT_THROW(scheduler.submit({.model = 1}, 0), std::invalid_argument);
  EXPECT_THAT(scheduler.finish(step, 5).completed, testing::IsEmpty());
  std::vector<RequestId> ended;
  for (double now = 5; const auto each = scheduler.next(now); now += 5) {
    const auto completed = scheduler.finish(*each, now + 5).completed;
    ended.insert(ended.end(), completed.begin(), completed.end());
    EXPECT_EQ(scheduler.has(1), ended.size() < 2);
  }
  EXPECT_THAT(ended, testing::ElementsAre(begun, waits));
}

TEST(Scheduler, ManyReloadsLeaveNothingBehind) {
  Scheduler scheduler;
  const ModelNumber first = scheduler.add(model("short", 1, 1));
  for (int reload = 0; reload < 100; ++reload) {
    const ModelNumber next = scheduler.add(model("long", 20, 4));
    EXPECT_FALSE(scheduler.is_alone());
    const RequestId waits = accepted(scheduler, {.model = next}, 0);
    scheduler.remove(next);
    EXPECT_TRUE(scheduler.has(next));
    EXPECT_TRUE(scheduler.cancel(waits));
    EXPECT_FALSE(scheduler.has(next));
    EXPECT_TRUE(scheduler.is_alone());
  }
  EXPECT_EQ(scheduler.model(first).name, "short");
}

// Random models, classes and traces; checks at every event what must always be true.
class RandomService {
 public:
  explicit RandomService(std::uint64_t seed) : random_(seed) {
    options_.policy =
        pick({ServingPolicy::normalised, ServingPolicy::srpt, ServingPolicy::arrival});
    options_.late = pick({Late::refuse, Late::serve});
    options_.ageing = real(1, 10);
    options_.share = real(0.05, 0.5);
    const std::size_t count = 1 + random_() % 4;
    for (std::size_t i = 0; i < count; ++i) add_model(i);
    scheduler_ = Scheduler(options_);
    for (const ServedModel& each : models_) scheduler_.add(each);
  }

  [[nodiscard]] std::size_t on_halves() const { return on_halves_; }
  void run() {
    const double load = real(0.5, 1.5);
    double mean = 0;
    for (const ServedModel& each : models_)
      mean += each.whole / static_cast<double>(models_.size());
    std::exponential_distribution<double> gap(load / mean);
    double next_arrival = 0;
    int left = 200;
    while (left > 0 || !running_.empty() || scheduler_.live() > 0) {
      const double end =
          running_.empty() ? std::numeric_limits<double>::infinity() : running_.begin()->first;
      if (left > 0 && next_arrival <= end) {
        now_ = next_arrival;
        --left;
        next_arrival = now_ + gap(random_);
        arrive();
      } else {
        now_ = end;
        finish();
      }
      decide();
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(accepted_.size(), ended_.size()) << "a request was lost";
  }

 private:
  struct Known {
    ModelNumber model = 0;
    double arrival = 0;
    double deadline = std::numeric_limits<double>::infinity();
    bool cancelled = false;
  };

  double real(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  template <class Value>
  Value pick(std::initializer_list<Value> values) {
    return values.begin()[random_() % values.size()];
  }
  void add_model(std::size_t number) {
    ServedModel made = model("model " + std::to_string(number), real(0.5, 30), 1 + random_() % 6);
    made.service.priority = static_cast<int>(random_() % 2);
    made.service.weight = real(0.5, 2);
    if (random_() % 3 == 0) made.service.objective = made.whole * real(2, 10);
    if (random_() % 3 == 0) made.batches = {{2, made.whole * real(1.2, 2.2)}, {4, made.whole * 3}};
    if (random_() % 3 == 0) made.on_half = made.whole * real(1, 2);
    if (random_() % 4 == 0) made.service.queue.requests = 5;
    models_.push_back(std::move(made));
  }
  void arrive() {
    NewRequest request{.model = random_() % models_.size()};
    if (random_() % 4 == 0) request.deadline = now_ + real(1, 200);
    const std::size_t before = scheduler_.live();
    const Admission admission = scheduler_.submit(request, now_);
    EXPECT_NE(admission.request.has_value(), admission.refusal.has_value());
    if (!admission.request) {
      EXPECT_EQ(scheduler_.live(), before);
      return;
    }
    EXPECT_TRUE(accepted_.emplace(*admission.request, Known{request.model, now_}).second);
    if (random_() % 10 == 0) cancel();
  }
  void cancel() {
    const RequestId id = 1 + random_() % accepted_.rbegin()->first;
    if (ended_.contains(id) || !accepted_.contains(id)) {
      EXPECT_FALSE(scheduler_.cancel(id));
      return;
    }
    if (scheduler_.cancel(id)) end(id);
  }
  void end(RequestId id) {
    EXPECT_TRUE(ended_.insert(id).second) << "a request ended twice";
    const auto bound = bounds_.find(id);
    if (bound != bounds_.end()) {
      EXPECT_LE(now_, bound->second + 1e-6) << "a request waited for longer than the bound";
    }
  }
  void finish() {
    const Step step = std::move(running_.extract(running_.begin()).mapped());
    const Scheduler::Finished finished = scheduler_.finish(step, now_);
    for (const RequestId id : finished.completed) end(id);
    for (const RequestId id : finished.cancelled) end(id);
  }
  void decide() {
    if (running_.empty()) note_bounds();
    while (const auto step = scheduler_.next(now_)) {
      for (const auto& [end, other] : running_) {
        ASSERT_TRUE(step->half && other.half) << "all cores compute one step at a time";
        EXPECT_NE(step->half, other.half);
      }
      for (const RequestId id : step->requests) {
        EXPECT_TRUE(accepted_.contains(id) && !ended_.contains(id));
        EXPECT_EQ(accepted_.at(id).model, step->model);
        EXPECT_TRUE(running_ids_.insert({id, now_}).second || step->segment) << "it began twice";
      }
      on_halves_ += step->half ? 1 : 0;
      running_.emplace(now_ + step->expected, *step);
    }
    EXPECT_EQ(!running_.empty(), scheduler_.live() > 0) << "the cores idle beside work";
  }
  void note_bounds() {
    for (const auto& [id, known] : accepted_) {
      if (ended_.contains(id) || bounds_.contains(id)) continue;
      if (const auto bound = scheduler_.bound(id, now_)) bounds_[id] = *bound;
    }
  }

  std::mt19937_64 random_;
  SchedulerOptions options_;
  std::vector<ServedModel> models_;
  Scheduler scheduler_;
  std::map<RequestId, Known> accepted_;
  std::set<RequestId> ended_;
  std::map<RequestId, double> bounds_;
  std::map<RequestId, double> running_ids_;  // when it began
  std::multimap<double, Step> running_;      // by end
  std::size_t on_halves_ = 0;
  double now_ = 0;
};

TEST(Scheduler, KeepsItsPromisesOnRandomTraces) {
  std::size_t on_halves = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomService service(seed);
    service.run();
    on_halves += service.on_halves();
    if (HasFailure()) return;
  }
  EXPECT_GT(on_halves, 1000U) << "or they were not tried";
}

ServedModel small(double on_half) {
  return {.name = "small", .whole = 2, .on_half = on_half};
}

TEST(Scheduler, TwoShortRequestsRunSideBySideWhereBothEndSooner) {
  Scheduler scheduler;
  scheduler.add(small(3));
  const RequestId one = accepted(scheduler, {.model = 0}, 0);
  const RequestId other = accepted(scheduler, {.model = 0}, 0);
  const Step first = scheduler.next(0).value();
  const Step second = scheduler.next(0).value();
  EXPECT_EQ(first.half, 0U);
  EXPECT_EQ(second.half, 1U);
  EXPECT_EQ(first.expected, 3);
  EXPECT_FALSE(scheduler.next(0).has_value());
  EXPECT_THAT(scheduler.finish(second, 3).completed, testing::ElementsAre(other));
  const RequestId third = accepted(scheduler, {.model = 0}, 3);
  EXPECT_FALSE(scheduler.next(3).has_value()) << "all cores are free at once, which is sooner";
  EXPECT_THAT(scheduler.finish(first, 3).completed, testing::ElementsAre(one));
  const Step last = scheduler.next(3).value();
  EXPECT_FALSE(last.half.has_value()) << "alone it has all cores";
  EXPECT_THAT(last.requests, testing::ElementsAre(third));
}

TEST(Scheduler, ALongRequestWaitsForBothHalves) {
  Scheduler scheduler;
  scheduler.add(small(3));
  scheduler.add(model("long", 20, 4));
  accepted(scheduler, {.model = 0}, 0);
  accepted(scheduler, {.model = 0}, 0);
  const Step first = scheduler.next(0).value();
  const Step second = scheduler.next(0).value();
  accepted(scheduler, {.model = 1}, 1);
  scheduler.finish(first, 3);
  EXPECT_FALSE(scheduler.next(3).has_value());
  const RequestId next = accepted(scheduler, {.model = 0}, 3.5);
  EXPECT_THAT(scheduler.finish(second, 4.5).completed, testing::SizeIs(1));
  EXPECT_THAT(scheduler.next(4.5).value().requests, testing::ElementsAre(next));
}

TEST(Scheduler, HalvesThatGainNothingOrMissADeadlineAreNotUsed) {
  for (const auto& [on_half, deadline] : {std::pair(3.95, 100.0), std::pair(3.0, 2.5)}) {
    Scheduler scheduler;
    scheduler.add(small(on_half));
    accepted(scheduler, {.model = 0, .deadline = deadline}, 0);
    accepted(scheduler, {.model = 0}, 0);
    EXPECT_FALSE(scheduler.next(0).value().half.has_value());
  }
}

TEST(Scheduler, ABatchMakesNobodyLate) {
  ServedModel batched = model("short", 1, 1);
  batched.batches = {{2, 1.5}};
  Scheduler scheduler;
  scheduler.add(batched);
  scheduler.add(model("other", 1, 1));
  accepted(scheduler, {.model = 0, .deadline = 1.2}, 0);
  accepted(scheduler, {.model = 0, .deadline = 50}, 0);
  EXPECT_EQ(scheduler.next(0).value().requests.size(), 1U) << "the first one would be late";
}

// Whoever was accepted with a deadline is in time, as long as the times hold.
TEST(Scheduler, WhatIsAcceptedIsInTime) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<ServedModel> models = short_and_long();
    models[0].batches = {{2, 1.6}, {4, 2.8}};
    if (seed % 2 == 0) models[0].on_half = 1.4;
    for (ServedModel& each : models) each.service.objective = 5 * each.whole;
    const std::vector<double> rates{400, 40};  // load 1.2
    const auto arrivals = poisson_arrivals(rates, 500, seed);
    const ServiceSimulation run = simulate_service(models, {}, arrivals);
    std::size_t refused = 0;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      if (run.requests[i].fate == RequestFate::refused) {
        ++refused;
        continue;
      }
      const double objective = *models[arrivals[i].model].service.objective;
      EXPECT_LE(run.requests[i].end, arrivals[i].time + objective + 1e-9);
    }
    EXPECT_GT(refused, 0U);
  }
}

}  // namespace
}  // namespace placewright
