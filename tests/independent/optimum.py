"""The best plan of a small problem by trying all of them, on the rules of rules.py."""

import itertools
import math

import rules


def optimum(problem):
    """The least value that any plan has; infinite where there is no plan."""
    search = {"throughput": best_pipeline, "call-latency": best_calls}
    return search.get(problem.objective, best_schedule)(problem)


def placements(problem):
    choices = [[device for device in range(len(problem.devices)) if not math.isinf(problem.time(op, device))
                and problem.ops[op].pin in (None, device)] for op in range(len(problem.ops))]
    for place in itertools.product(*choices):
        if not any(rules.placement_faults(problem, place)):
            yield place


def best_schedule(problem):
    best = math.inf
    for place in placements(problem):
        if not any(rules.resident_faults(problem, place)):
            best = ScheduleSearch(problem, place, best).run()
    return best


class ScheduleSearch:
    """All schedules of one placement in which nothing could start earlier by itself, in the order of starts.

    In the order of starts each activity begins at the latest end of what it waits for and of what holds its lane or
    ports. With peak memory it may also wait for the end of any activity begun before it, since that can free memory.
    """

    def __init__(self, problem, place, best):
        self.problem = problem
        self.place = place
        self.best = best
        self.waits = rules.sources(problem, place)
        self.peak = problem.rules["memory"] == "peak"
        lengths = rules.durations(problem, place)
        self.length = {activity: problem.length(activity) if isinstance(activity, rules.Transfer)
                       else lengths[activity] for activity in self.waits}
        self.activities = list(self.waits)
        self.tails = {}
        for activity in self.activities:
            self.tail(activity)

    def tail(self, activity):
        """Time from the start of an activity to the end of the longest path after it."""
        if activity not in self.tails:
            after = [other for other, waits in self.waits.items() if activity in waits]
            self.tails[activity] = self.length[activity] + max(map(self.tail, after), default=0)
        return self.tails[activity]

    def run(self):
        self.extend({}, {}, 0)
        return self.best

    def resources(self, activity):
        """Each resource that the activity occupies, with its capacity."""
        if self.length[activity] == 0:
            return
        if not isinstance(activity, rules.Transfer):
            yield ("device", self.place[activity]), self.problem.devices[self.place[activity]].lanes
        elif self.problem.rules["congestion"]:
            for port in rules.ports(self.problem, activity):
                yield port, 1

    def earliest(self, activity, times, held):
        moment = max((times[before][1] for before in self.waits[activity]), default=0)
        if not isinstance(activity, rules.Transfer):
            model = self.problem.models[self.problem.ops[activity].model]
            moment = max(moment, model.get("arrival", 0))
        for resource, capacity in self.resources(activity):
            ends = sorted(held.get(resource, []))
            if len(ends) >= capacity:
                moment = max(moment, ends[len(ends) - capacity])
        return moment

    def bound(self, times, now):
        """No schedule that goes on from here has a smaller value."""
        ends = []
        for op in range(len(self.problem.ops)):
            start = times[op][0] if op in times else now
            ends.append(times[op][1] if op in times else start + self.length[op])
        if self.problem.objective == "latency":
            paths = [now + self.tails[activity] for activity in self.activities if activity not in times]
            return max([*ends, *paths], default=0)
        return rules.schedule_value(self.problem, ends)

    def extend(self, times, held, now):
        if len(times) == len(self.activities):
            self.finish(times)
            return
        if self.bound(times, now) >= self.best:
            return
        for activity in self.activities:
            if activity in times or any(before not in times for before in self.waits[activity]):
                continue
            earliest = self.earliest(activity, times, held)
            starts = {earliest}
            if self.peak:
                starts |= {end for _, end in times.values() if end > earliest}
            for start in starts:
                if start >= now:
                    end = start + self.length[activity]
                    occupied = {resource: [*held.get(resource, []), end] for resource, _ in self.resources(activity)}
                    self.extend({**times, activity: (start, end)}, {**held, **occupied}, start)

    def finish(self, times):
        ops = {op: times[op] for op in range(len(self.problem.ops))}
        value = rules.schedule_value(self.problem, [ops[op][1] for op in range(len(ops))])
        if value >= self.best:
            return
        transfers = {activity: span for activity, span in times.items() if isinstance(activity, rules.Transfer)}
        if self.peak and any(rules.peak_faults(self.problem, self.place, rules.Schedule(ops, transfers))):
            return
        self.best = value


def best_pipeline(problem):
    best = math.inf
    for stages in pipelines(problem):
        if not any(rules.pipeline_faults(problem, stages, listed=ordered(problem))):
            best = min(best, rules.pipeline_value(rules.pipeline_loads(problem, stages)))
    return best


def ordered(problem):
    """The number of samples that a stage holds depends on its place in the pipeline."""
    return problem.rules["memory"] == "peak" and problem.training


def pipelines(problem):
    """Every list of stages; the order of stages only where the rules look at it, replicas only where they may be."""
    for place in itertools.product(range(len(problem.devices)), repeat=len(problem.ops)):
        if any(len({place[op] for op in group}) > 1 for group in problem.groups):
            continue
        leaders = sorted(set(place))
        parts = {leader: frozenset(op for op, where in enumerate(place) if where == leader) for leader in leaders}
        for helpers in itertools.product([None, *leaders], repeat=len(problem.devices) - len(leaders)):
            if problem.rules["max_replicas"] == 1 and any(helper is not None for helper in helpers):
                continue
            spare = [device for device in range(len(problem.devices)) if device not in parts]
            stages = [rules.Stage((leader, *(device for device, helper in zip(spare, helpers) if helper == leader)),
                                  parts[leader]) for leader in leaders]
            yield from map(list, itertools.permutations(stages)) if ordered(problem) else [stages]


def best_calls(problem):
    best = math.inf
    for place in placements(problem):
        if any(rules.resident_faults(problem, place)):
            continue
        accelerators = sorted({device for device in place if not problem.devices[device].host})
        splits = [list(call_lists([op for op, where in enumerate(place) if where == device],
                                  problem.rules["calls_per_device"])) for device in accelerators]
        for lists in itertools.product(*splits):
            calls = [rules.Call(device, ops) for device, parts in zip(accelerators, lists) for ops in parts]
            ends = rules.call_ends(problem, place, calls, given_starts=False)
            if ends is not None:
                best = min(best, max(ends.values(), default=0))
    return best


def call_lists(ops, limit):
    """Every way to cut the ops into an ordered list of at most `limit` calls."""
    for count in range(1, min(limit, len(ops)) + 1):
        for numbers in itertools.product(range(count), repeat=len(ops)):
            parts = [frozenset(op for op, number in zip(ops, numbers) if number == part) for part in range(count)]
            if all(parts):
                yield parts
