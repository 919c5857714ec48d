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

    In the order of starts each activity begins at the latest end of what it waits for and of what leaves too little of
    its lane, ports or resources. With peak memory it may also wait for the end of any activity begun before it, since
    that can free memory.
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
        """What the activity occupies: (what, amount, of how much)."""
        if self.length[activity] == 0:
            return
        if isinstance(activity, rules.Transfer):
            if self.problem.rules["congestion"]:
                for port in rules.ports(self.problem, activity):
                    yield port, 1, 1
            return
        device = self.place[activity]
        yield ("device", device), 1, self.problem.devices[device].lanes
        for resource, amount in self.problem.demand([device], [activity]).items():
            yield ("resource", resource), amount, self.problem.capacities[resource]

    def earliest(self, activity, times, held):
        moment = max((times[before][1] for before in self.waits[activity]), default=0)
        if not isinstance(activity, rules.Transfer):
            model = self.problem.models[self.problem.ops[activity].model]
            moment = max(moment, model.get("arrival", 0))
        for what, amount, capacity in self.resources(activity):
            holders = held.get(what, [])
            for end in sorted({moment, *(end for end, _ in holders if end > moment)}):
                if rules.at_most(amount + sum(other for until, other in holders if until > end), capacity):
                    moment = end
                    break
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
                    occupied = {what: [*held.get(what, []), (end, amount)]
                                for what, amount, _ in self.resources(activity)}
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
            loads = rules.pipeline_loads(problem, stages)
            value = rules.pipeline_value(loads)
            if problem.sharing and value < best:
                value = best_period(problem, stages, loads, best)
            best = min(best, value)
    return best


def best_period(problem, stages, loads, enough):
    """The least value over all offsets; infinite where there is none, or none below `enough`."""
    if problem.rules["training"] == "phased":
        return sum(shortest_line(problem, stages, [load[number] for load in loads]) for number in (0, 1))
    loads = [load[0] for load in loads]
    longest = max(loads, default=0)
    circle = [(load, problem.demand(stage.devices, stage.ops)) for stage, load in zip(stages, loads) if load > 0]
    circle = [(load, demand) for load, demand in circle if demand]
    for period in sorted({longest, *cycle_ratios([load for load, _ in circle])}):
        if period >= enough:
            return math.inf
        if rules.at_most(longest, period) and fits_circle(problem, circle, period, [], set(range(len(circle)))):
            return period
    return math.inf


def shortest_line(problem, stages, loads):
    """The least end of the last stage: some list, with each stage as early as those before allow, is the best."""
    best = math.inf
    for order in itertools.permutations(range(len(stages))):
        ordered_loads = [loads[number] for number in order]
        offsets = rules.list_offsets(problem, [stages[number] for number in order], ordered_loads, [None] * len(order))
        if offsets is not None:
            best = min(best, max(map(sum, zip(offsets, ordered_loads))))
    return best


def cycle_ratios(loads):
    """The shortest period makes some stages follow each other round the circle without a gap, once or more."""
    for count in range(1, len(loads) + 1):
        for chosen in itertools.combinations(loads, count):
            for rounds in range(1, count + 1):
                yield sum(chosen) / rounds


def fits_circle(problem, stages, period, placed, left):
    """Whether the stages of `left` fit on a circle of this length beside those placed.

    If they fit at all then also with each stage in touch with others: whatever touches nothing can be turned back until
    it begins where another stage ends. So each begins where a placed one ends, or ends where a placed one begins.
    """
    tolerance = rules.time_tolerance([period])
    if not left:
        return True
    for number in left if placed else [min(left)]:
        load, demand = stages[number]
        starts = {start for at, other in placed for start in (at + stages[other][0], at - load)} or {0}
        for start in sorted({start % period for start in starts}):
            now = [*placed, (start, number)]
            holdings = [part for at, other in now
                        for part in rules.wrapped(at, stages[other][0], period, stages[other][1])]
            if any(rules.demand_faults(problem, holdings, tolerance)):
                continue
            if fits_circle(problem, stages, period, now, left - {number}):
                return True
    return False


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
            queues = [[rules.Call(device, ops) for ops in parts] for device, parts in zip(accelerators, lists)]
            if problem.sharing:
                best = min(best, best_turns(problem, place, queues, [], best))
                continue
            ends = rules.call_ends(problem, place, [call for queue in queues for call in queue], given_starts=False)
            if ends is not None:
                best = min(best, max(ends.values(), default=0))
    return best


def best_turns(problem, place, queues, timed, best):
    """The least value when calls with shared resources are timed one after the other, in any order that their devices'
    queues allow, each as early as it can be beside those timed before."""
    if not any(queues):
        ends = known_ends(problem, place, timed)
        return max(ends.values(), default=0) if len(ends) == len(problem.ops) else math.inf
    ends = known_ends(problem, place, timed)
    for number, queue in enumerate(queues):
        if not queue:
            continue
        call = queue[0]
        needed = {tensor.producer for tensor in problem.tensors
                  if tensor.producer not in call.ops and call.ops & set(tensor.consumers)}
        if not needed <= ends.keys():
            continue
        ready = max([0, *(ends[op] for op in needed), *(other.end for other in timed if other.device == call.device)])
        start = first_fit(problem, call, ready, timed)
        placed = rules.Call(call.device, call.ops, start, start + rules.call_length(problem, call))
        if placed.end < best:
            rest = [*queues[:number], queue[1:], *queues[number + 1:]]
            best = min(best, best_turns(problem, place, rest, [*timed, placed], best))
    return best


def first_fit(problem, call, ready, timed):
    length = rules.call_length(problem, call)
    demand = problem.demand([call.device], call.ops)
    others = [(other.start, other.end, problem.demand([other.device], other.ops)) for other in timed]
    for start in sorted({ready, *(end for _, end, _ in others if end > ready)}):
        window = [(max(a, start), min(b, start + length), held) for a, b, held in others]
        tolerance = rules.time_tolerance([start + length])
        if not any(rules.demand_faults(problem, [(start, start + length, demand), *window], tolerance)):
            return start
    raise AssertionError("after the last call everything is free")


def known_ends(problem, place, timed):
    """The ends of the ops of timed calls and of the host ops that follow from them."""
    ends = {op: call.end for call in timed for op in call.ops}
    for op in sorted(range(len(problem.ops)), key=problem.rank.get):
        needed = {tensor.producer for tensor in problem.tensors if op in tensor.consumers}
        if problem.devices[place[op]].host and needed <= ends.keys():
            ends[op] = max((ends[producer] for producer in needed), default=0) + problem.time(op, place[op])
    return ends


def call_lists(ops, limit):
    """Every way to cut the ops into an ordered list of at most `limit` calls."""
    for count in range(1, min(limit, len(ops)) + 1):
        for numbers in itertools.product(range(count), repeat=len(ops)):
            parts = [frozenset(op for op, number in zip(ops, numbers) if number == part) for part in range(count)]
            if all(parts):
                yield parts
