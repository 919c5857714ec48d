// For each violation code a valid plan that is broken so that exactly this code is reported.

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "problem/problem.h"
#include "samples.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A thousand and a hundred ops one after the other on one device.
Sample long_chain() {
  constexpr std::size_t kCount = kListedViolations + 100;
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.cluster.kinds = {{"kind"}};
  draft.cluster.devices = {{"device", KindId{0}}};
  draft.models = {{"model", 0, 1, {}}};
  sample.plan.schedule = Schedule{};
  for (std::size_t i = 0; i < kCount; ++i) {
    draft.ops.push_back(op(fmt::format("op{}", i), {1}));
    sample.plan.placement.push_back(DeviceId{0});
    sample.plan.schedule->start.push_back(static_cast<double>(i));
    sample.plan.schedule->end.push_back(static_cast<double>(i + 1));
  }
  sample.plan.value = kCount;
  return sample;
}

// Weights and tensors of the sample fill device a exactly: 3 x 10, and from 2 to 4 t0 (x -> y, z;
// until y ends), t1 and t2, 8 bytes each.
Sample peak_schedule() {
  Sample sample = links_schedule();
  sample.draft.rules.memory = MemoryModel::peak;
  sample.draft.cluster.devices[0].memory = 30 + 3 * 8;
  return sample;
}

Sample training_pipeline() {
  Sample sample = pipeline();
  ProblemDraft& draft = sample.draft;
  draft.rules.memory = MemoryModel::peak;
  draft.ops[2].backward = true;
  // acc0, the first of three stages: its weights and three samples of the tensor of p.
  draft.cluster.devices[0].memory = 10 + 3 * 5;
  // acc1, the second: two samples of both tensors.
  draft.cluster.devices[1].memory = 10 + 2 * 10;
  return sample;
}

Sample replicated_pipeline() {
  Sample sample = pipeline();
  sample.draft.rules.max_replicas = 2;
  sample.plan.stages[1].devices = devices({1, 2});
  sample.plan.stages[1].load = 3;
  return sample;
}

// Both p and r on acc0: q's way from acc0 leads back to it.
void go_back_to_first(Sample& sample) {
  sample.plan.placement = placed({0, 1, 0});
  sample.plan.stages = {{devices({0}), ops({0, 2}), 10}, {devices({1}), ops({1}), 6}};
  sample.plan.value = 10;
}

// Tensors of 8 bytes: t0 to t3 in ram from 6 to 7.25, two at a time on the gpu.
Sample peak_shared_cores() {
  Sample sample = shared_cores();
  sample.draft.rules.memory = MemoryModel::peak;
  sample.draft.cluster.spaces[0].memory = 55 + 4 * 8;
  sample.draft.cluster.devices[3].memory = 20 + 2 * 8;
  return sample;
}

// a and b in one stage on two devices of the space, which may use core 1 at once: half the load,
// weights once.
Sample shared_replicas() {
  Sample sample = shared_pipeline();
  sample.draft.rules.max_replicas = 2;
  sample.draft.cluster.resources[1].capacity = 2;
  sample.plan.placement = placed({0, 0, 2});
  sample.plan.stages = {{devices({0, 1}), ops({0, 1}), 1, 0.0}, {devices({2}), ops({2}), 1, 1.0}};
  sample.plan.value = 2;
  return sample;
}

Sample peak_shared_pipeline() {
  Sample sample = shared_pipeline();
  sample.draft.rules.memory = MemoryModel::peak;
  sample.draft.cluster.spaces[0].memory = 30 + 2 * 5;
  return sample;
}

Sample shared_calls_in_one_space() {
  Sample sample = shared_calls();
  sample.draft.cluster.spaces = {{"hbm", 30}};
  sample.draft.cluster.devices[0].space = sample.draft.cluster.devices[1].space = SpaceId{0};
  return sample;
}

Sample per_device(Sample sample) {
  sample.draft.rules.contiguity = Contiguity::per_device;
  return sample;
}

void move_op(Plan& plan, std::size_t op, double start, double end) {
  plan.schedule->start[OpId{op}] = start;
  plan.schedule->end[OpId{op}] = end;
}

struct Case {
  ViolationCode code;
  const char* what;
  Sample (*sample)();
  void (*breaks)(Sample&);
};

using Code = ViolationCode;

std::span<const Case> cases() {
  static constexpr Case kCases[]{
      {Code::placement_incomplete, "an op too few", links_schedule,
       [](Sample& s) {
         s.plan.placement = placed({0, 0, 1, 1});
       }},
      {Code::placement_incomplete, "no device", links_schedule,
       [](Sample& s) { s.plan.placement[OpId{2}] = DeviceId{}; }},
      {Code::placement_incomplete, "a device that does not exist", pipeline,
       [](Sample& s) { s.plan.placement[OpId{2}] = DeviceId{5}; }},
      {Code::unsupported_device, "y cannot run on b", links_schedule,
       [](Sample& s) { s.plan.placement[OpId{1}] = DeviceId{1}; }},
      {Code::pin_broken, "x pinned to b", links_schedule,
       [](Sample& s) { s.draft.ops[0].pinned_to = DeviceId{1}; }},
      {Code::pin_broken, "a replica elsewhere", replicated_pipeline,
       [](Sample& s) { s.draft.ops[1].pinned_to = DeviceId{1}; }},
      {Code::colocation_broken, "x and z apart", links_schedule,
       [](Sample& s) {
         s.draft.colocated = {ops({0, 2})};
       }},
      {Code::no_link, "from a to b", links_schedule,
       [](Sample& s) {
         std::erase_if(s.draft.cluster.links, [](const Link& link) {
           return link.from == DeviceId{0} && link.to == DeviceId{1};
         });
       }},
      {Code::memory_exceeded, "schedule", links_schedule,
       [](Sample& s) { s.draft.cluster.devices[0].memory = 29; }},
      {Code::memory_exceeded, "shared weights count once, but they count", links_schedule,
       [](Sample& s) {
         s.draft.cluster.devices[0].memory = 34;
         s.draft.shared_weights = {{"shared", 5, ops({0, 1})}};
       }},
      {Code::memory_exceeded, "a replica's", replicated_pipeline,
       [](Sample& s) { s.draft.cluster.devices[2].memory = 9; }},
      {Code::memory_exceeded, "over all calls", device_calls,
       [](Sample& s) { s.draft.cluster.devices[0].memory = 29; }},
      {Code::peak_memory_exceeded, "schedule, sender", peak_schedule,
       [](Sample& s) { s.draft.cluster.devices[0].memory -= 1; }},
      {Code::peak_memory_exceeded, "schedule, receiver", peak_schedule,
       [](Sample& s) { s.draft.cluster.devices[1].memory = 20 + 3 * 8 - 1; }},
      {Code::peak_memory_exceeded, "pipeline, first stage", training_pipeline,
       [](Sample& s) { s.draft.cluster.devices[0].memory -= 1; }},
      {Code::peak_memory_exceeded, "pipeline, second stage", training_pipeline,
       [](Sample& s) { s.draft.cluster.devices[1].memory -= 1; }},
      {Code::value_wrong, "schedule", links_schedule, [](Sample& s) { s.plan.value = 9.9999; }},
      {Code::value_wrong, "not a number", host_schedule, [](Sample& s) { s.plan.value = kNan; }},
      {Code::value_wrong, "pipeline", pipeline, [](Sample& s) { s.plan.value = 6; }},
      {Code::value_wrong, "calls", device_calls, [](Sample& s) { s.plan.value = kInfinity; }},

      {Code::schedule_missing, "none", links_schedule, [](Sample& s) { s.plan.schedule.reset(); }},
      {Code::schedule_missing, "an end too many", links_schedule,
       [](Sample& s) { s.plan.schedule->end.push_back(3); }},
      {Code::not_a_number, "NaN", links_schedule,
       [](Sample& s) { s.plan.schedule->start[OpId{4}] = kNan; }},
      {Code::not_a_number, "negative", links_schedule,
       [](Sample& s) { move_op(s.plan, 0, -1, 1); }},
      {Code::not_a_number, "infinite transfer", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers[0].end = kInfinity; }},
      {Code::not_a_number, "call", device_calls, [](Sample& s) { s.plan.calls[1].start = kNan; }},
      {Code::op_duration_wrong, "too short", links_schedule,
       [](Sample& s) { move_op(s.plan, 0, 0, 1.5); }},
      {Code::op_duration_wrong, "too long", links_schedule,
       [](Sample& s) {
         move_op(s.plan, 3, 9, 11);
         s.plan.value = 11;
       }},
      {Code::op_duration_wrong, "send overhead left out", links_schedule,
       [](Sample& s) { s.draft.cluster.devices[0].send_overhead = 0.25; }},
      {Code::op_duration_wrong, "receive overhead left out", host_schedule,
       [](Sample& s) { s.draft.cluster.devices[1].receive_overhead = 0.25; }},
      {Code::starts_before_arrival, "model arrives at 1", links_schedule,
       [](Sample& s) { s.draft.models[0].arrival = 1; }},
      {Code::input_not_arrived, "from another device", links_schedule,
       [](Sample& s) {
         move_op(s.plan, 3, 8, 9);
         s.plan.value = 9;
       }},
      {Code::input_not_arrived, "on the same device", links_schedule,
       [](Sample& s) {
         s.draft.cluster.devices[0].lanes = 2;
         move_op(s.plan, 1, 1, 4);
       }},
      {Code::input_not_arrived, "in host memory", host_schedule,
       [](Sample& s) {
         s.draft.cluster.devices[2].lanes = 2;
         move_op(s.plan, 1, 2, 7);
       }},
      {Code::device_overlap, "one lane", links_schedule,
       [](Sample& s) { move_op(s.plan, 4, 4.5, 5.5); }},
      {Code::device_overlap, "two lanes, three ops", links_schedule,
       [](Sample& s) {
         s.draft.cluster.devices[0].lanes = 2;
         s.draft.ops.push_back(op("u", {4, 4}));
         s.plan.placement.push_back(DeviceId{0});
         s.plan.schedule->start.push_back(2);
         s.plan.schedule->end.push_back(6);
         move_op(s.plan, 4, 4.5, 5.5);
       }},
      {Code::transfer_missing, "direct", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers.erase(s.plan.schedule->transfers.begin()); }},
      {Code::transfer_missing, "out", host_schedule,
       [](Sample& s) { s.plan.schedule->transfers.pop_back(); }},
      {Code::transfer_duplicate, "direct", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers.push_back(direct(0, 0, 1, 7, 9)); }},
      {Code::transfer_duplicate, "in", host_schedule,
       [](Sample& s) { s.plan.schedule->transfers.push_back(in(0, 1, 4, 5)); }},
      {Code::transfer_unneeded, "nobody reads it on c", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers.push_back(direct(0, 0, 2, 9, 11)); }},
      {Code::transfer_unneeded, "host devices receive for nothing", host_schedule,
       [](Sample& s) { s.plan.schedule->transfers.push_back(in(0, 2, 3, 4)); }},
      {Code::transfer_endpoints_wrong, "relayed", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers.push_back(direct(0, 1, 2, 9, 11)); }},
      {Code::transfer_endpoints_wrong, "a leg through the host", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers.push_back(out(0, 0, 9, 11)); }},
      {Code::transfer_endpoints_wrong, "a direct leg", host_schedule,
       [](Sample& s) { s.plan.schedule->transfers.push_back(direct(0, 0, 1, 9, 11)); }},
      {Code::transfer_endpoints_wrong, "no tensor", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers.push_back(direct(9, 0, 1, 9, 11)); }},
      {Code::transfer_endpoints_wrong, "no device", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers.push_back(direct(0, 0, 7, 9, 11)); }},
      {Code::transfer_duration_wrong, "direct", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers[1] = direct(1, 0, 1, 5.5, 7); }},
      {Code::transfer_duration_wrong, "out", host_schedule,
       [](Sample& s) { s.plan.schedule->transfers[2] = out(2, 1, 6, 7); }},
      {Code::transfer_too_early, "direct", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers[1] = direct(1, 0, 1, 4.5, 6.5); }},
      {Code::transfer_too_early, "in before out", host_schedule,
       [](Sample& s) { s.plan.schedule->transfers[1] = in(0, 1, 2.5, 3.5); }},
      {Code::port_overlap, "out and in", links_schedule,
       [](Sample& s) { s.plan.schedule->transfers[2] = direct(2, 0, 1, 6, 8); }},

      {Code::stages_inconsistent, "an op in no stage", pipeline,
       [](Sample& s) { s.plan.stages.pop_back(); }},
      {Code::stages_inconsistent, "an op in two stages", pipeline,
       [](Sample& s) {
         s.plan.stages[0].ops = ops({0, 1});
       }},
      {Code::stages_inconsistent, "an op that does not exist", pipeline,
       [](Sample& s) {
         s.plan.stages[0].ops = ops({0, 8});
       }},
      {Code::stages_inconsistent, "a device twice", replicated_pipeline,
       [](Sample& s) {
         s.plan.stages[1].devices = devices({1, 0});
       }},
      {Code::stages_inconsistent, "placed elsewhere", pipeline,
       [](Sample& s) { s.plan.placement[OpId{1}] = DeviceId{2}; }},
      {Code::stages_inconsistent, "a stage without devices", pipeline,
       [](Sample& s) { s.plan.stages[1].devices.clear(); }},
      {Code::stages_inconsistent, "a stage without ops", pipeline,
       [](Sample& s) {
         s.plan.stages.push_back({devices({2}), {}, 0});
       }},
      {Code::stages_out_of_order, "last stage first", pipeline,
       [](Sample& s) {
         std::rotate(s.plan.stages.begin(), s.plan.stages.begin() + 2, s.plan.stages.end());
       }},
      {Code::replicas_not_allowed, "too many", replicated_pipeline,
       [](Sample& s) { s.draft.rules.max_replicas = 1; }},
      {Code::replicas_not_allowed, "different kinds", replicated_pipeline,
       [](Sample& s) {
         s.plan.stages[1].devices = devices({1, 4});
       }},
      {Code::not_contiguous, "joint", pipeline, go_back_to_first},
      {Code::not_contiguous, "joint, without stages", pipeline,
       [](Sample& s) {
         go_back_to_first(s);
         s.plan.stages.clear();
       }},
      {Code::not_contiguous, "per device", [] { return per_device(pipeline()); }, go_back_to_first},
      {Code::stage_load_wrong, "too low", pipeline, [](Sample& s) { s.plan.stages[1].load = 5; }},
      {Code::stage_load_wrong, "not a number", pipeline,
       [](Sample& s) { s.plan.stages[0].load = kNan; }},

      {Code::calls_inconsistent, "an op in two calls", device_calls,
       [](Sample& s) {
         s.plan.calls[1].ops = ops({3, 0});
       }},
      {Code::calls_inconsistent, "a host op", device_calls,
       [](Sample& s) {
         s.plan.calls[0].ops = ops({0, 1});
       }},
      {Code::calls_inconsistent, "a call without ops", device_calls,
       [](Sample& s) {
         s.plan.calls.push_back({DeviceId{0}, {}, 13, 13});
       }},
      {Code::calls_inconsistent, "a call of the host", device_calls,
       [](Sample& s) {
         s.plan.calls.push_back({DeviceId{1}, ops({1}), 4, 9});
       }},
      {Code::call_missing, "r", device_calls, [](Sample& s) { s.plan.calls.pop_back(); }},
      {Code::too_many_calls, "three of two", device_calls,
       [](Sample& s) { s.draft.rules.calls_per_device = 2; }},
      {Code::too_many_calls, "by the rule", device_calls,
       [](Sample& s) {
         s.draft.rules.calls_per_device = 1;
         s.plan.calls.clear();
         s.plan.value = 7 + 5 + 4;  // s joins p
       }},
      {Code::calls_deadlock, "q between p and r", device_calls,
       [](Sample& s) {
         s.plan.calls.pop_back();
         s.plan.calls[0].ops = ops({0, 2});
       }},
      {Code::calls_deadlock, "by the order of calls", device_calls,
       [](Sample& s) {
         s.plan.calls[0] = {DeviceId{0}, ops({0}), 14, 18};
         s.plan.value = 18;
       }},
      {Code::call_start_too_early, "r", device_calls,
       [](Sample& s) {
         s.plan.calls[2] = {DeviceId{0}, ops({2}), 8, 12};
         s.plan.value = 12;
       }},
      {Code::call_duration_wrong, "r without its way in", device_calls,
       [](Sample& s) {
         s.plan.calls[2].end = 12;
         s.plan.value = 12;
       }},
      {Code::call_overlap, "s during p", device_calls,
       [](Sample& s) {
         s.plan.calls[1] = {DeviceId{0}, ops({3}), 3, 6};
       }},

      {Code::resource_exceeded, "u while v has core 1", shared_cores,
       [](Sample& s) { move_op(s.plan, 5, 8, 9.5); }},
      {Code::resource_exceeded, "shares of core 1 that add up to 1.25", shared_cores,
       [](Sample& s) {
         s.draft.ops[4].share = {0.75, 0.75, 0.75};
         s.draft.ops[5].share = {0.5, 0.5, 0.5};
         move_op(s.plan, 5, 7.5, 9);
       }},
      {Code::resource_exceeded, "stages in a period too short for them", shared_pipeline,
       [](Sample& s) { s.plan.value = 2.5; }},
      {Code::resource_exceeded, "an offset that collides", shared_pipeline,
       [](Sample& s) { s.plan.stages[2].offset = 1.5; }},
      {Code::resource_exceeded, "replicas by themselves", shared_replicas,
       [](Sample& s) { s.draft.cluster.resources[1].capacity = 1; }},
      {Code::resource_exceeded, "r during q", shared_calls,
       [](Sample& s) {
         s.plan.calls[2] = {DeviceId{0}, ops({2}), 7, 10};
         s.plan.value = 10;
       }},
      {Code::not_a_number, "offset", shared_pipeline,
       [](Sample& s) { s.plan.stages[1].offset = -1.0; }},
      {Code::value_wrong, "period", shared_pipeline, [](Sample& s) { s.plan.value = kNan; }},
      {Code::period_too_short, "below the loads", shared_pipeline,
       [](Sample& s) { s.plan.value = 0.5; }},
      {Code::op_duration_wrong, "hand-over left out", shared_cores,
       [](Sample& s) { move_op(s.plan, 0, 0, 2.5); }},
      {Code::op_duration_wrong, "receive after a hand-over left out", shared_cores,
       [](Sample& s) { move_op(s.plan, 2, 3, 6); }},
      {Code::op_duration_wrong, "receive on the second device of a space left out", shared_cores,
       [](Sample& s) { move_op(s.plan, 5, 8.5, 9.5); }},
      {Code::op_duration_wrong, "the tensor states what the cut costs", shared_cores,
       [](Sample& s) { s.draft.tensors[0].cuts[1].send = 0.25; }},
      {Code::stage_load_wrong, "hand-over left out", shared_pipeline,
       [](Sample& s) {
         s.draft.tensors[0].cuts = {{KindId{0}, 0.125, 0}};
         s.plan.stages[1].offset = 1.5;
         s.plan.stages[2].offset = 2.5;
         s.plan.value = 4;
       }},
      {Code::input_not_arrived, "in its space", shared_cores,
       [](Sample& s) { move_op(s.plan, 4, 6.5, 8); }},
      {Code::transfer_missing, "into a space", shared_cores,
       [](Sample& s) { s.plan.schedule->transfers.erase(s.plan.schedule->transfers.begin() + 1); }},
      {Code::transfer_duplicate, "to two devices of a space", shared_cores,
       [](Sample& s) { s.plan.schedule->transfers.push_back(direct(1, 3, 2, 7, 8)); }},
      {Code::transfer_unneeded, "inside a space", shared_cores,
       [](Sample& s) { s.plan.schedule->transfers.push_back(direct(0, 2, 0, 3, 3)); }},
      {Code::transfer_receiver_wrong, "u comes after v", shared_cores,
       [](Sample& s) { s.plan.schedule->transfers[1] = direct(1, 3, 2, 6, 7); }},
      {Code::no_link, "out of a space", shared_cores,
       [](Sample& s) {
         std::erase_if(s.draft.cluster.links,
                       [](const Link& link) { return link.from == DeviceId{3}; });
       }},
      {Code::port_overlap, "of two devices of a space", shared_cores,
       [](Sample& s) {
         s.plan.schedule->transfers[3] = direct(3, 1, 3, 6.5, 7.5);  // t2 leaves c0 at 7.25
       }},
      {Code::memory_exceeded, "of a space, shared weights once", shared_cores,
       [](Sample& s) { s.draft.cluster.spaces[0].memory = 54; }},
      {Code::memory_exceeded, "of a space, stages", shared_pipeline,
       [](Sample& s) { s.draft.cluster.spaces[0].memory = 29; }},
      {Code::memory_exceeded, "of a space, replicas once", shared_replicas,
       [](Sample& s) { s.draft.cluster.spaces[0].memory = 29; }},
      {Code::memory_exceeded, "of a space, calls", shared_calls_in_one_space,
       [](Sample& s) { s.draft.cluster.spaces[0].memory = 29; }},
      {Code::peak_memory_exceeded, "of a space", peak_shared_cores,
       [](Sample& s) { s.draft.cluster.spaces[0].memory -= 1; }},
      {Code::peak_memory_exceeded, "beside a space", peak_shared_cores,
       [](Sample& s) { s.draft.cluster.devices[3].memory -= 1; }},
      {Code::peak_memory_exceeded, "of a space, stages: each tensor once", peak_shared_pipeline,
       [](Sample& s) { s.draft.cluster.spaces[0].memory -= 1; }},

      {Code::further_violations, "all too long", long_chain,
       [](Sample& s) {
         for (const OpId id : s.plan.placement.keys()) s.plan.schedule->start[id] += 0.5;
       }},
  };
  return kCases;
}

std::set<std::string> codes_of(const std::vector<Violation>& violations) {
  std::set<std::string> codes;
  for (const Violation& violation : violations) codes.emplace(name_of(violation.code));
  return codes;
}

std::string told(const std::vector<Violation>& violations) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(violations.size(), 5); ++i) {
    text += fmt::format("{}: {}\n", name_of(violations[i].code), violations[i].message);
  }
  return text;
}

TEST(Violations, EveryCodeHasACase) {
  // Those of what a plan says of itself are in statement_test.cpp.
  std::set<ViolationCode> covered{Code::bound_above_value, Code::gap_wrong, Code::status_wrong};
  for (const Case& broken : cases()) covered.insert(broken.code);
  for (const ViolationCode code : violation_codes()) {
    EXPECT_TRUE(covered.contains(code)) << name_of(code) << " has no plan that breaks it";
  }
}

TEST(Violations, NamesAreDistinctAndKebabCase) {
  std::set<std::string_view> names;
  for (const ViolationCode code : violation_codes()) {
    const std::string_view name = name_of(code);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos)
        << name;
  }
}

TEST(Violations, ValidBeforeBreaking) {
  for (const Case& broken : cases()) {
    const Sample sample = broken.sample();
    const auto violations = verify(Problem(sample.draft), sample.plan);
    EXPECT_TRUE(violations.empty()) << name_of(broken.code) << ", " << broken.what << "\n"
                                    << told(violations);
  }
}

TEST(Violations, ExactlyTheBrokenCode) {
  for (const Case& broken : cases()) {
    Sample sample = broken.sample();
    broken.breaks(sample);
    const auto violations = verify(Problem(sample.draft), sample.plan);
    std::set<std::string> expected{std::string(name_of(broken.code))};
    if (broken.code == Code::further_violations) expected.emplace("op-duration-wrong");
    EXPECT_EQ(codes_of(violations), expected) << broken.what << "\n" << told(violations);
    for (const Violation& violation : violations) EXPECT_FALSE(violation.message.empty());
  }
}

TEST(Violations, TooManyAreCountedNotListed) {
  Sample sample = long_chain();
  for (const OpId id : sample.plan.placement.keys()) sample.plan.schedule->start[id] += 0.5;
  const auto violations = verify(Problem(sample.draft), sample.plan);
  ASSERT_EQ(violations.size(), kListedViolations + 1);
  EXPECT_EQ(violations.back().code, Code::further_violations);
  EXPECT_EQ(violations.back().message, "100 further violations are not listed");
}

TEST(Violations, AllAreReportedWithTheOpsConcerned) {
  Sample sample = links_schedule();
  move_op(sample.plan, 3, 8, 9);      // w too early: t2 arrives at 9
  move_op(sample.plan, 4, 4.5, 5.5);  // v while y runs
  const auto violations = verify(Problem(sample.draft), sample.plan);
  ASSERT_EQ(violations.size(), 3U) << told(violations);
  EXPECT_EQ(violations[0].code, Code::input_not_arrived);
  EXPECT_EQ(violations[0].ops, ops({1, 3}));
  EXPECT_EQ(violations[0].message,
            "op 'w' starts at 8, the tensor of op 'y' is on device 'b' at 9");
  EXPECT_EQ(violations[1].code, Code::device_overlap);
  EXPECT_EQ(violations[1].ops, ops({4, 1}));
  EXPECT_EQ(violations[1].devices, devices({0}));
  EXPECT_EQ(violations[2].code, Code::value_wrong);
  EXPECT_EQ(violations[2].message, "the plan states the value 10, it is 9");
}

TEST(Violations, ResourcesAreNamedWithWhoHoldsThem) {
  Sample schedule = shared_cores();
  move_op(schedule.plan, 5, 8, 9.5);
  const auto ops_at_once = verify(Problem(schedule.draft), schedule.plan);
  ASSERT_EQ(ops_at_once.size(), 1U) << told(ops_at_once);
  EXPECT_EQ(
      ops_at_once[0].message,
      "op 'u' on device 'c01', op 'v' on device 'c1' take 2 of resource 'core1' at 8, it has 1");
  EXPECT_EQ(ops_at_once[0].ops, ops({5, 4}));
  EXPECT_EQ(ops_at_once[0].devices, devices({2, 1}));

  Sample stages = shared_pipeline();
  stages.plan.value = 2.5;  // the last stage wraps round to 0-0.5, when the first has core 0
  const auto stages_at_once = verify(Problem(stages.draft), stages.plan);
  ASSERT_EQ(stages_at_once.size(), 1U) << told(stages_at_once);
  EXPECT_EQ(
      stages_at_once[0].message,
      "stage 3 on device 'c02', stage 1 on device 'c01' take 2 of resource 'core0' at 0, it has "
      "1");

  Sample calls = shared_calls();
  calls.plan.calls[2] = {DeviceId{0}, ops({2}), 7, 10};
  calls.plan.value = 10;
  const auto calls_at_once = verify(Problem(calls.draft), calls.plan);
  ASSERT_EQ(calls_at_once.size(), 1U) << told(calls_at_once);
  EXPECT_EQ(
      calls_at_once[0].message,
      "the call of device 'acc0' that holds op 'r', the call of device 'acc1' that holds op 'q' "
      "take 2 of resource 'bus' at 7, it has 1");
}

TEST(Violations, CirclesAreNamed) {
  Sample stages = pipeline();
  go_back_to_first(stages);
  const auto joint = verify(Problem(stages.draft), stages.plan);
  ASSERT_EQ(joint.size(), 1U);
  EXPECT_EQ(joint[0].message,
            "devices wait for each other in a circle: 'acc0' (op 'p' feeds op 'q') -> 'acc1' (op "
            "'q' feeds op 'r') -> 'acc0'");
  const auto own = verify(Problem(per_device(stages).draft), stages.plan);
  ASSERT_EQ(own.size(), 1U);
  EXPECT_EQ(own[0].message,
            "a path from op 'p' to op 'r' leaves device 'acc0' and comes back: 'acc0' -> 'acc1' -> "
            "'acc0'");
  EXPECT_EQ(own[0].ops, ops({0, 1, 2}));

  Sample calls = device_calls();
  calls.plan.calls.pop_back();
  calls.plan.calls[0].ops = ops({0, 2});
  const auto deadlock = verify(Problem(calls.draft), calls.plan);
  ASSERT_EQ(deadlock.size(), 1U);
  EXPECT_EQ(deadlock[0].message,
            "calls and host ops wait for each other in a circle: the call of device 'acc0' that "
            "holds op 'p' -> op 'q' -> the call of device 'acc0' that holds op 'p'");
}

}  // namespace
}  // namespace placewright::testing
