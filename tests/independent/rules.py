"""What a plan costs and which rules it breaks, from docs/semantics.md alone.

A third implementation beside src/evaluate and src/verify, in another language and written from the page without reading
either: where all three agree, the page says what it should. `Problem.read` takes a problem file, `check` a plan of it
and returns its value and the rules it breaks. Plain and slow on purpose.
"""

import dataclasses
import itertools
import json
import math

TOLERANCE = 1e-9
OPTIMAL_GAP = 1e-6
DEFAULT_RULES = {
    "contiguity": "joint",
    "transfers": "sequential",
    "training": "interleaved",
    "memory": "resident",
    "congestion": True,
    "calls_per_device": 1,
    "max_replicas": 1,
    "replica_bandwidth": 0,
    "schedule": "1f1b",
    "micro_batches": 0,
}


def same(a, b):
    """Values, loads and bytes."""
    return a == b or abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def at_most(a, b):
    return a <= b or same(a, b)


def time_tolerance(ends):
    """For the moments and durations of a plan with these ends."""
    return TOLERANCE * max(ends, default=0)


@dataclasses.dataclass(frozen=True)
class Device:
    name: str
    kind: int
    host: bool  # of a host interconnect: reads and writes host memory for nothing
    lanes: int
    send_overhead: float
    receive_overhead: float
    uses: tuple  # (resource, amount)
    space: int


@dataclasses.dataclass(frozen=True)
class Op:
    name: str
    times: tuple  # by kind; infinite where the kind cannot run it
    memory: float
    backward: bool
    model: int
    pin: int | None
    shares: tuple  # by kind


@dataclasses.dataclass(frozen=True)
class Tensor:
    producer: int
    consumers: tuple
    bytes: float
    host_time: float
    table: list | None
    cuts: dict  # kind -> (send, receive)


@dataclasses.dataclass(frozen=True)
class Transfer:
    """One leg of a tensor's way: `direct` from a to b, `out` from a to host memory, `in` from host memory to b."""

    tensor: int
    leg: str
    sender: int | None
    receiver: int | None


def unlimited(memory):
    return math.inf if memory is None else memory


def position(reference, names):
    return reference if isinstance(reference, int) else names.index(reference)


class Problem:
    def __init__(self, document, rules=None, objective=None):
        self.objective = objective or document.get("objective", "latency")
        self.rules = DEFAULT_RULES | document.get("rules", {}) | (rules or {})
        kinds = [kind["name"] for kind in document["kinds"]]
        resources = document.get("resources", [])
        resource_names = [resource["name"] for resource in resources]
        self.capacities = [resource.get("capacity", 1) for resource in resources]
        self.resource_names = resource_names
        spaces = document.get("spaces", [])
        space_names = [space["name"] for space in spaces]
        self.space_memory = [unlimited(space.get("memory")) for space in spaces]
        hosts = {kind["name"] for kind in document["kinds"] if kind.get("host")}
        self.through_host = document["interconnect"]["kind"] == "host"
        self.devices = []
        for device in document["devices"]:
            if device.get("space") is None:
                space = len(self.space_memory)
                self.space_memory.append(unlimited(device.get("memory")))
            else:
                space = position(device["space"], space_names)
            self.devices.append(Device(
                name=device["name"],
                kind=kinds.index(device["kind"]),
                host=self.through_host and device["kind"] in hosts,
                lanes=device.get("lanes", 1),
                send_overhead=device.get("send_overhead", 0),
                receive_overhead=device.get("receive_overhead", 0),
                uses=tuple((position(use["resource"], resource_names), use.get("amount", 1))
                           for use in device.get("uses", [])),
                space=space,
            ))
        self.sharing = any(device.uses for device in self.devices)
        self.device_names = [device.name for device in self.devices]
        self.links = self._links(document["interconnect"])
        self.models = document.get("models") or [{"name": "model"}]
        model_names = [model["name"] for model in self.models]
        self.op_names = [op["name"] for op in document["ops"]]
        self.ops = [
            Op(
                name=op["name"],
                times=self._times(op["time"], kinds),
                memory=op.get("memory", 0),
                backward=bool(op.get("backward", False)),
                model=position(op.get("model", 0), model_names),
                pin=None if op.get("pin") is None else self.device_names.index(op["pin"]),
                shares=self._shares(op.get("share", {}), kinds),
            )
            for op in document["ops"]
        ]
        self.tensors = [
            Tensor(
                producer=position(tensor["from"], self.op_names),
                consumers=tuple(dict.fromkeys(position(op, self.op_names) for op in tensor["to"])),
                bytes=tensor.get("bytes", 0),
                host_time=tensor.get("time", 0),
                table=tensor.get("table"),
                cuts={kinds.index(cut["kind"]): (cut.get("send", 0), cut.get("receive", 0))
                      for cut in tensor.get("cuts", [])},
            )
            for tensor in document.get("tensors", [])
        ]
        self.tensor_names = [tensor.get("name") for tensor in document.get("tensors", [])]
        self.groups = self._merge(
            [position(op, self.op_names) for op in group] for group in document.get("colocate", [])
        )
        self.weights = [
            (weight["bytes"], {position(op, self.op_names) for op in weight["ops"]})
            for weight in document.get("weights", [])
        ]
        self.training = any(op.backward for op in self.ops)
        self.rank = self._ranks()

    @staticmethod
    def read(path, **overrides):
        with open(path, encoding="utf-8") as file:
            return Problem(json.load(file), **overrides)

    def _links(self, interconnect):
        links = {}
        for a, b in itertools.permutations(range(len(self.devices)), 2):
            if interconnect.get("all") is not None:
                links[a, b] = interconnect["all"]
        for link in interconnect.get("links", []):
            links[self.device_names.index(link["from"]), self.device_names.index(link["to"])] = link
        return links

    @staticmethod
    def _times(times, kinds):
        by_kind = times if isinstance(times, list) else [times.get(kind) for kind in kinds]
        return tuple(math.inf if time is None else time for time in by_kind)

    @staticmethod
    def _shares(shares, kinds):
        return tuple(shares if isinstance(shares, list) else (shares.get(kind, 1) for kind in kinds))

    @staticmethod
    def _merge(groups):
        """Groups that share an op are one group."""
        merged = []
        for group in map(set, groups):
            for other in [other for other in merged if other & group]:
                merged.remove(other)
                group |= other
            merged.append(group)
        return merged

    def _ranks(self):
        """The place of each op in the list of ops without inputs, then of consumers as their producers are listed."""
        producers = [set() for _ in self.ops]
        for tensor in self.tensors:
            for consumer in tensor.consumers:
                producers[consumer].add(tensor.producer)
        listed = [op for op, needed in enumerate(producers) if not needed]
        for rank, op in enumerate(listed):
            so_far = set(listed[: rank + 1])
            listed += [consumer for consumer, needed in enumerate(producers) if op in needed and needed <= so_far]
        return {op: rank for rank, op in enumerate(listed)}

    def time(self, op, device):
        return self.ops[op].times[self.devices[device].kind]

    def link_time(self, tensor, a, b):
        tensor = self.tensors[tensor]
        if tensor.table is not None:
            return math.inf if tensor.table[a][b] is None else tensor.table[a][b]
        link = self.links.get((a, b))
        if link is None:
            return math.inf
        bandwidth = link.get("bandwidth")
        if bandwidth is None or tensor.bytes == 0:
            return link.get("latency", 0)
        return link.get("latency", 0) + (tensor.bytes / bandwidth if bandwidth > 0 else math.inf)

    def length(self, transfer):
        if transfer.leg == "direct":
            return self.link_time(transfer.tensor, transfer.sender, transfer.receiver)
        return self.tensors[transfer.tensor].host_time

    def space(self, device):
        return self.devices[device].space

    def space_devices(self, space):
        return [device for device, facts in enumerate(self.devices) if facts.space == space]

    def send(self, tensor, device):
        cut = self.tensors[tensor].cuts.get(self.devices[device].kind)
        return self.devices[device].send_overhead if cut is None else cut[0]

    def receive(self, tensor, device):
        cut = self.tensors[tensor].cuts.get(self.devices[device].kind)
        return self.devices[device].receive_overhead if cut is None else cut[1]

    def readers(self, number):
        """The consumers of a tensor by topological rank."""
        return sorted(self.tensors[number].consumers, key=self.rank.get)

    def transfers(self, place):
        """What must travel when op v sits on the device (or the first device of the stage) place[v]."""
        for number, tensor in enumerate(self.tensors):
            source = place[tensor.producer]
            receiving = {}  # space -> its receiving device
            for op in self.readers(number):
                receiving.setdefault(self.space(place[op]), place[op])
            receiving.pop(self.space(source), None)
            if not self.through_host:
                for receiver in receiving.values():
                    yield Transfer(number, "direct", source, receiver)
                continue
            if receiving and not self.devices[source].host:
                yield Transfer(number, "out", source, None)
            for receiver in receiving.values():
                if not self.devices[receiver].host:
                    yield Transfer(number, "in", None, receiver)

    def sends(self, place):
        """(tensor, time) for each time that a producer's device bears a send."""
        for transfer in self.transfers(place):
            if transfer.sender is not None:
                yield transfer.tensor, self.send(transfer.tensor, transfer.sender)
        for number, tensor in enumerate(self.tensors):
            source = place[tensor.producer]
            others = {place[op] for op in tensor.consumers} - {source}
            if any(self.space(device) == self.space(source) for device in others):
                yield number, self.send(number, source)

    def receives(self, place):
        """(tensor, device, time) for each receive that a device bears."""
        for number, tensor in enumerate(self.tensors):
            source = place[tensor.producer]
            for device in sorted({place[op] for op in tensor.consumers} - {source}):
                if self.devices[device].host and self.space(device) != self.space(source):
                    continue
                yield number, device, self.receive(number, device)

    def demand(self, devices, ops):
        """What ops that run as a whole on these devices hold of each resource."""
        held = {}
        for device in devices:
            facts = self.devices[device]
            share = max(self.ops[op].shares[facts.kind] for op in ops)
            for resource, amount in facts.uses:
                held[resource] = held.get(resource, 0) + share * amount
        return held

    def resident(self, ops):
        ops = set(ops)
        shared = sum(size for size, readers in self.weights if readers & ops)
        return sum(self.ops[op].memory for op in ops) + shared


def placement_faults(problem, place):
    """The rules that hold for every objective: supported, pinned and colocated; a way for every tensor."""
    for op, device in enumerate(place):
        if math.isinf(problem.time(op, device)):
            yield f"{problem.op_names[op]} cannot run on {problem.device_names[device]}"
        if problem.ops[op].pin not in (None, device):
            yield f"{problem.op_names[op]} is pinned elsewhere"
    for group in problem.groups:
        if len({place[op] for op in group}) > 1:
            yield f"colocated ops are apart: {sorted(group)}"
    for transfer in problem.transfers(place):
        if math.isinf(problem.length(transfer)):
            yield f"no link for {transfer}"


def resident_faults(problem, place):
    for space, memory in enumerate(problem.space_memory):
        needed = problem.resident(op for op, where in enumerate(place) if problem.space(where) == space)
        if not at_most(needed, memory):
            yield f"space {space} holds {needed} bytes"


def demand_faults(problem, holdings, tolerance):
    """Of (start, end, demand): at every moment the demands are within the capacities."""
    busy = [(start, end, demand) for start, end, demand in holdings if end - start > tolerance]
    for moment, _, _ in busy:
        for resource, capacity in enumerate(problem.capacities):
            taken = sum(demand.get(resource, 0) for start, end, demand in busy
                        if start <= moment and end - moment > tolerance)
            if not at_most(taken, capacity):
                yield f"{taken} of {problem.resource_names[resource]} is taken at {moment}"


# Schedules: latency and total-completion.


@dataclasses.dataclass
class Schedule:
    ops: dict  # op -> (start, end)
    transfers: dict  # Transfer -> (start, end)

    def tolerance(self):
        return time_tolerance([end for _, end in (*self.ops.values(), *self.transfers.values())])


def durations(problem, place):
    result = [problem.time(op, device) for op, device in enumerate(place)]
    for number, time in problem.sends(place):
        result[problem.tensors[number].producer] += time
    for number, device, time in problem.receives(place):
        result[next(op for op in problem.readers(number) if place[op] == device)] += time
    return result


def sources(problem, place):
    """For each op and each transfer, what must have ended before it starts (ops by number, transfers themselves)."""
    transfers = list(problem.transfers(place))
    outs = {transfer.tensor: transfer for transfer in transfers if transfer.leg == "out"}
    arrivals = {(transfer.tensor, problem.space(transfer.receiver)): transfer for transfer in transfers
                if transfer.leg != "out"}
    waits = {op: set() for op in range(len(problem.ops))}
    for number, tensor in enumerate(problem.tensors):
        for consumer in tensor.consumers:
            device = place[consumer]
            if problem.space(device) == problem.space(place[tensor.producer]):
                waits[consumer].add(tensor.producer)
            elif problem.through_host and problem.devices[device].host:
                waits[consumer].add(outs.get(number, tensor.producer))
            else:
                waits[consumer].add(arrivals[number, problem.space(device)])
    for transfer in transfers:
        producer = problem.tensors[transfer.tensor].producer
        waits[transfer] = {outs.get(transfer.tensor, producer) if transfer.leg == "in" else producer}
    return waits


def overlap_faults(intervals, capacity, tolerance, what):
    """At most `capacity` of the intervals at any moment; what ends within the tolerance of a start has ended."""
    busy = [(start, end) for start, end in intervals if end - start > tolerance]
    for moment, _ in busy:
        running = sum(1 for start, end in busy if start <= moment and end - moment > tolerance)
        if running > capacity:
            yield f"{what} is used {running} times at {moment}"


def ports(problem, transfer):
    """The ports that a transfer occupies under congestion."""
    if transfer.sender is not None:
        yield "out-port", problem.space(transfer.sender)
    if transfer.receiver is not None:
        yield "in-port", problem.space(transfer.receiver)


def peak_faults(problem, place, schedule):
    tolerance = schedule.tolerance()
    for space, memory in enumerate(problem.space_memory):
        devices = problem.space_devices(space)
        if any(problem.devices[device].host for device in devices):
            continue
        alive = []
        for number, tensor in enumerate(problem.tensors):
            readers = [schedule.ops[op][1] for op in tensor.consumers if place[op] in devices]
            if place[tensor.producer] in devices:
                start, end = schedule.ops[tensor.producer]
                sent = [times[1] for transfer, times in schedule.transfers.items()
                        if transfer.tensor == number and transfer.sender in devices]
                alive.append((start, max([end, *readers, *sent]), tensor.bytes))
            elif readers:
                start = min(times[0] for transfer, times in schedule.transfers.items()
                            if transfer.tensor == number and transfer.receiver in devices)
                alive.append((start, max(readers), tensor.bytes))
        held = problem.resident(op for op, where in enumerate(place) if where in devices)
        for moment, _, _ in alive:
            peak = held + sum(size for start, end, size in alive
                              if start <= moment and end - moment > tolerance)
            if not at_most(peak, memory):
                yield f"space {space} holds {peak} bytes at {moment}"


def schedule_faults(problem, place, schedule):
    lengths = durations(problem, place)
    needed = set(problem.transfers(place))
    if schedule.transfers.keys() != needed:
        yield f"transfers differ: {schedule.transfers.keys() ^ needed}"
        return
    times = {**schedule.ops, **schedule.transfers}
    tolerance = schedule.tolerance()
    for activity, waits in sources(problem, place).items():
        start, end = times[activity]
        if start < 0 or end < 0:
            yield f"{activity} runs from {start} to {end}"
        length = problem.length(activity) if isinstance(activity, Transfer) else lengths[activity]
        if abs(start + length - end) > tolerance:
            yield f"{activity} takes {end - start}, not {length}"
        for before in waits:
            if times[before][1] - start > tolerance:
                yield f"{activity} starts at {start}, before the end of {before}"
        earliest = 0 if isinstance(activity, Transfer) else problem.models[problem.ops[activity].model].get("arrival", 0)
        if earliest - start > tolerance:
            yield f"{activity} starts at {start}, before {earliest}"
    for device, facts in enumerate(problem.devices):
        here = [schedule.ops[op] for op, where in enumerate(place) if where == device]
        yield from overlap_faults(here, facts.lanes, tolerance, facts.name)
    holdings = [(*schedule.ops[op], problem.demand([device], [op])) for op, device in enumerate(place)
                if lengths[op] > 0]
    yield from demand_faults(problem, holdings, tolerance)
    if problem.rules["congestion"]:
        for port in {port for transfer in needed for port in ports(problem, transfer)}:
            using = [schedule.transfers[transfer] for transfer in needed if port in ports(problem, transfer)]
            yield from overlap_faults(using, 1, tolerance, port)
    if problem.rules["memory"] == "peak":
        yield from peak_faults(problem, place, schedule)


def schedule_value(problem, ends):
    if problem.objective == "latency":
        return max(ends, default=0)
    value = 0
    for number, model in enumerate(problem.models):
        arrival = model.get("arrival", 0)
        completion = max((end for end, op in zip(ends, problem.ops) if op.model == number), default=arrival)
        value += model.get("weight", 1) * (completion - arrival)
    return value


# Pipelines: throughput.


@dataclasses.dataclass
class Stage:
    devices: tuple
    ops: frozenset
    offsets: tuple = (None, None)  # forward (or both passes as one) and backward; None where the plan states none

    def spaces(self, problem):
        return {problem.space(device) for device in self.devices}


def pipeline_faults(problem, stages, listed=True):
    first = [stage.devices[0] for stage in stages]
    place = stage_of(problem, stages)
    used = [device for stage in stages for device in stage.devices]
    if len(used) != len(set(used)):
        yield "a device is in two stages"
    for stage in stages:
        if len(stage.devices) > problem.rules["max_replicas"]:
            yield "a stage has too many replicas"
        if len({problem.devices[device].kind for device in stage.devices}) > 1:
            yield "replicas of several kinds"
        if len(stage.devices) > 1 and any(problem.ops[op].pin is not None for op in stage.ops):
            yield "a pinned op runs elsewhere too"
    yield from placement_faults(problem, [first[stage] for stage in place])
    yield from contiguity_faults(problem, place, listed)
    yield from pipeline_memory_faults(problem, stages)


def stage_of(problem, stages):
    return [next(number for number, stage in enumerate(stages) if op in stage.ops) for op in range(len(problem.ops))]


def pipeline_loads(problem, stages):
    """For each stage its load in the forward and in the backward pass, and of both together."""
    first = [stage.devices[0] for stage in stages]
    stage_at = {device: number for number, device in enumerate(first)}
    place = [first[stage] for stage in stage_of(problem, stages)]
    work = [{(part, backward): 0 for part in ("compute", "in", "out") for backward in (False, True)} for _ in stages]
    for op, device in enumerate(place):
        work[stage_at[device]]["compute", problem.ops[op].backward] += problem.time(op, device)
    for transfer in problem.transfers(place):
        tensor = problem.tensors[transfer.tensor]
        backward = problem.ops[tensor.producer].backward
        if transfer.sender is not None:
            work[stage_at[transfer.sender]]["out", backward] += problem.length(transfer)
        if transfer.receiver is not None:
            space = problem.space(transfer.receiver)
            passes = {problem.ops[op].backward for op in tensor.consumers if problem.space(place[op]) == space}
            when = backward if backward in passes else not backward
            work[stage_at[transfer.receiver]]["in", when] += problem.length(transfer)
    for number, time in problem.sends(place):
        producer = problem.tensors[number].producer
        work[stage_at[place[producer]]]["compute", problem.ops[producer].backward] += time
    for number, device, time in problem.receives(place):
        tensor = problem.tensors[number]
        backward = problem.ops[tensor.producer].backward
        passes = {problem.ops[op].backward for op in tensor.consumers if place[op] == device}
        work[stage_at[device]]["compute", backward if backward in passes else not backward] += time
    return [stage_loads(problem, stage, sums) for stage, sums in zip(stages, work)]


def stage_loads(problem, stage, sums):
    def load(passes):
        compute, into, out = (sum(sums[part, backward] for backward in passes) for part in ("compute", "in", "out"))
        formula = {"sequential": compute + into + out, "overlapped": max(compute, into + out),
                   "duplex": max(compute, into, out)}
        return formula[problem.rules["transfers"]] / replicas

    replicas = len(stage.devices)
    bandwidth = problem.rules["replica_bandwidth"]
    synchronisation = 0
    if problem.training and bandwidth > 0:
        copies = len(stage.spaces(problem))
        synchronisation = (copies - 1) / copies * problem.resident(stage.ops) / bandwidth
    if problem.rules["training"] == "phased":
        return load([False]), load([True]) + synchronisation
    return load([False, True]) + synchronisation, 0


def pipeline_value(loads):
    """Where devices list no resources."""
    return max((load[0] for load in loads), default=0) + max((load[1] for load in loads), default=0)


def list_offsets(problem, stages, loads, stated):
    """The stated offsets, else the smallest at which the demands fit beside those of the stages before; or None."""
    tolerance = time_tolerance([sum(loads)])
    offsets, placed = [], []
    for stage, load, offset in zip(stages, loads, stated):
        demand = problem.demand(stage.devices, stage.ops)
        for start in sorted({0, *(end for _, end, _ in placed)}) if offset is None else []:
            end = start + load
            beside = [(max(other[0], start), min(other[1], end), other[2]) for other in placed]
            mine = [(start, end, demand)]
            if load <= tolerance or not any(demand_faults(problem, together(problem, mine, beside), tolerance)):
                offset = start
                break
        if offset is None:
            return None
        offsets.append(offset)
        if load > 0:
            placed.append((offset, offset + load, demand))
    return offsets


def together(problem, mine, beside):
    """Only what the first holding also holds: others may collide elsewhere."""
    return mine + [(start, end, {resource: amount for resource, amount in demand.items() if resource in mine[0][2]})
                   for start, end, demand in beside]


def wrapped(start, load, period, demand):
    """[start, start + load) modulo the period."""
    start = math.fmod(start, period)
    yield start, min(start + load, period), demand
    if start + load > period:
        yield 0, start + load - period, demand


def period_faults(problem, stages, loads, offsets, period):
    if not all(at_most(load, period) for load in loads):
        yield f"the period {period} is shorter than the loads {loads}"
        return
    holdings = [part for stage, load, offset in zip(stages, loads, offsets) if load > 0
                for part in wrapped(offset, load, period, problem.demand(stage.devices, stage.ops))]
    yield from demand_faults(problem, holdings, time_tolerance([period]))


def shared_pipeline(problem, stages, loads, stated_value):
    """Where devices list resources: the value of the stages with their offsets, and the rules that they break."""
    value, faults = 0, []
    for number in [0, 1] if problem.rules["training"] == "phased" else [0]:
        of_pass = [load[number] for load in loads]
        stated = [stage.offsets[number] for stage in stages]
        if any(offset is not None and not 0 <= offset < math.inf for offset in stated):
            return None, [f"offsets {stated}"]
        offsets = list_offsets(problem, stages, of_pass, stated)
        if offsets is None:
            return None, ["the replicas of a stage take more of a resource than there is"]
        period = max(offset + load for offset, load in zip(offsets, of_pass))
        if problem.rules["training"] != "phased" and stated_value is not None:
            period = stated_value
        faults += period_faults(problem, stages, of_pass, offsets, period)
        value += period
    return value, faults


def forward_graph(problem):
    """Nodes (forward ops by number; orphan groups as ("orphan", lowest op)) and edges of what contiguity is asked of."""
    group_of = {op: frozenset(group) for group in problem.groups for op in group}

    def nodes(op):
        if not problem.ops[op].backward:
            return [op]
        group = group_of.get(op, frozenset([op]))
        forward = [other for other in group if not problem.ops[other].backward]
        return forward or [("orphan", min(group))]

    def orphan(op):
        return isinstance(nodes(op)[0], tuple)

    edges = set()
    for tensor in problem.tensors:
        u = tensor.producer
        for v in tensor.consumers:
            if not problem.ops[u].backward and not problem.ops[v].backward:
                edges.add((u, v))
            elif problem.ops[u].backward and problem.ops[v].backward and (orphan(u) or orphan(v)):
                edges |= set(itertools.product(nodes(v), nodes(u)))
    everything = {node for op in range(len(problem.ops)) for node in nodes(op)}
    return everything, {(a, b) for a, b in edges if a != b}


def reachable(edges, start):
    found, open_nodes = set(), [start]
    while open_nodes:
        node = open_nodes.pop()
        for a, b in edges:
            if a == node and b not in found:
                found.add(b)
                open_nodes.append(b)
    return found


def contiguity_faults(problem, place, listed):
    rule = problem.rules["contiguity"]
    if rule == "none":
        return
    nodes, edges = forward_graph(problem)
    home = {node: place[node[1] if isinstance(node, tuple) else node] for node in nodes}
    if rule == "joint":
        between = {(home[a], home[b]) for a, b in edges if home[a] != home[b]}
        for stage in set(home.values()):
            if stage in reachable(between, stage):
                yield f"stage {stage} is on a cycle of stages"
        if listed and any(a > b for a, b in between):
            yield "a stage feeds an earlier one of the list"
        return
    after = {node: reachable(edges, node) for node in nodes}
    for a in nodes:
        for b in after[a]:
            if home[b] != home[a] and any(home[c] == home[a] for c in after[b]):
                yield f"a path leaves stage {home[a]} at {a} and comes back"


def interleaved_actions(stages, turn, ahead, count):
    """What a space of an interleaved pipeline does: pairs of +1 (forward) or -1 (backward) and the stage."""
    forward = [(+1, action // turn % stages) for action in range(count)]
    backward = [(-1, stages - 1 - action // turn % stages) for action in range(count)]
    yield from forward[:ahead]
    for action in range(ahead, count):
        yield forward[action]
        yield backward[action - ahead]


def samples_in_flight(problem, stages):
    """Of each stage."""
    if not problem.training:
        return [1] * len(stages)
    schedule, most = problem.rules["schedule"], problem.rules["micro_batches"] or math.inf
    if schedule == "gpipe":
        return [most] * len(stages)
    if schedule == "1f1b":
        return [min(most, len(stages) - number) for number in range(len(stages))]
    loop = len({problem.space(stage.devices[0]) for stage in stages})
    own = math.ceil(len(stages) / loop)
    turn = loop if most == math.inf else most // max(1, most // loop)
    samples = 4 * turn if most == math.inf else most
    held = []
    for number in range(len(stages)):
        ahead = min((own - 1) * turn + 2 * (loop - 1 - number % loop), samples * own)
        now, peak = 0, 0
        for change, stage in interleaved_actions(own, turn, ahead, samples * own):
            now += change if stage == number // loop else 0
            peak = max(peak, now)
        held.append(min(peak, most))
    return held


def pipeline_memory_faults(problem, stages):
    place = stage_of(problem, stages)
    held = samples_in_flight(problem, stages)
    for space, memory in enumerate(problem.space_memory):
        here = {number for number, stage in enumerate(stages) if space in stage.spaces(problem)}
        needed = problem.resident(op for number in here for op in stages[number].ops)
        if problem.rules["memory"] == "peak" and not any(problem.devices[device].host
                                                         for device in problem.space_devices(space)):
            for tensor in problem.tensors:
                touching = here & {place[op] for op in (tensor.producer, *tensor.consumers)}
                needed += max((held[number] for number in touching), default=0) * tensor.bytes
        if not at_most(needed, memory):
            yield f"space {space} holds {needed} bytes"


def stages_of_placement(problem, place):
    """The pipeline of a plan without stages: each device feeds only later ones, the smallest number first."""
    devices = sorted(set(place))
    feeds = {(place[tensor.producer], place[op]) for tensor in problem.tensors for op in tensor.consumers}
    feeds = {(a, b) for a, b in feeds if a != b}
    order = []
    while len(order) < len(devices):
        free = [b for b in devices if b not in order and all(a in order for a, other in feeds if other == b)]
        if not free:
            order = devices
            break
        order.append(free[0])
    return [Stage((device,), frozenset(op for op, where in enumerate(place) if where == device)) for device in order]


# Device calls: call-latency.


@dataclasses.dataclass
class Call:
    device: int
    ops: frozenset
    start: float = 0
    end: float = 0


def call_length(problem, call):
    length = sum(problem.time(op, call.device) for op in call.ops)
    for number, tensor in enumerate(problem.tensors):
        readers = set(tensor.consumers)
        if tensor.producer not in call.ops and readers & call.ops:
            length += tensor.host_time + problem.receive(number, call.device)
        if tensor.producer in call.ops and readers - call.ops:
            length += tensor.host_time + problem.send(number, call.device)
    return length


def call_ends(problem, place, calls, given_starts):
    """The end of every op, calls in order of their starts (or as listed); None where they wait for each other."""
    call_of = {op: call for call in calls for op in call.ops}
    previous = {}
    tolerance = time_tolerance([call.end for call in calls])
    if given_starts:
        calls = sorted(calls, key=lambda call: call.start)
    last = {}
    for call in calls:
        previous[id(call)] = last.get(call.device)
        last[call.device] = call
    ends, call_end = {}, {}
    while len(ends) < len(problem.ops):
        before = len(ends)
        for call in calls:
            needed = {tensor.producer for tensor in problem.tensors
                      if tensor.producer not in call.ops and call.ops & set(tensor.consumers)}
            waits = previous[id(call)]
            if id(call) in call_end or not needed <= ends.keys() or (waits and id(waits) not in call_end):
                continue
            earliest = max([ends[op] for op in needed] + ([call_end[id(waits)]] if waits else []), default=0)
            if given_starts and earliest - call.start > tolerance:
                raise ValueError(f"a call of {problem.device_names[call.device]} starts before {earliest}")
            call_end[id(call)] = (call.start if given_starts else earliest) + call_length(problem, call)
            ends |= {op: call_end[id(call)] for op in call.ops}
        for op, device in enumerate(place):
            needed = {tensor.producer for tensor in problem.tensors if op in tensor.consumers}
            if op not in call_of and op not in ends and needed <= ends.keys():
                ends[op] = max((ends[producer] for producer in needed), default=0) + problem.time(op, device)
        if len(ends) == before:
            return None
    return ends


def calls_faults(problem, place, calls):
    for device, facts in enumerate(problem.devices):
        here = [call for call in calls if call.device == device]
        if facts.host and here:
            yield f"a call of the host device {facts.name}"
        if len(here) > problem.rules["calls_per_device"]:
            yield f"{facts.name} has {len(here)} calls"
    in_calls = [op for call in calls for op in call.ops]
    outside = {op for op, device in enumerate(place) if not problem.devices[device].host}
    if sorted(in_calls) != sorted(outside):
        yield "calls do not hold each op of an accelerator once"
        return
    tolerance = time_tolerance([call.end for call in calls])
    for call in calls:
        if any(place[op] != call.device for op in call.ops):
            yield "a call holds an op of another device"
    for a, b in itertools.combinations(calls, 2):
        if a.device == b.device:
            early, late = sorted((a, b), key=lambda call: call.start)
            if early.end - late.start > tolerance:
                yield f"calls of {problem.device_names[a.device]} overlap"
    for call in calls:
        if abs(call.start + call_length(problem, call) - call.end) > tolerance:
            yield f"a call takes {call.end - call.start}, not {call_length(problem, call)}"
    holdings = [(call.start, call.end, problem.demand([call.device], call.ops)) for call in calls if call.ops]
    yield from demand_faults(problem, holdings, tolerance)
    try:
        if call_ends(problem, place, calls, given_starts=True) is None:
            yield "calls wait for each other"
    except ValueError as early:
        yield str(early)


# Plan files.


def read_schedule(problem, document):
    names = problem.device_names
    return Schedule(
        ops={problem.op_names.index(entry["op"]): (entry["start"], entry["end"]) for entry in document["ops"]},
        transfers={
            Transfer(
                tensor=position(entry["tensor"], problem.tensor_names),
                leg=entry["leg"],
                sender=None if entry["leg"] == "in" else names.index(entry["from"]),
                receiver=None if entry["leg"] == "out" else names.index(entry["to"]),
            ): (entry["start"], entry["end"])
            for entry in document.get("transfers", [])
        },
    )


def read_ops(problem, names):
    return frozenset(problem.op_names.index(name) for name in names)


def problem_of(plan, document):
    """The problem under the rules and the objective that the plan states; what it does not state is the problem's."""
    return Problem(document, rules=plan.get("rules"), objective=plan.get("objective"))


def check(plan, document):
    """The value of a plan file (None where the rules leave none) and the rules that it breaks."""
    problem = problem_of(plan, document)
    placement = plan["placement"]
    place = [problem.device_names.index(placement[name]) for name in problem.op_names]
    faults = list(placement_faults(problem, place)) if problem.objective != "throughput" else []
    value = None
    if problem.objective == "throughput":
        stages = [Stage(tuple(problem.device_names.index(name) for name in stage["devices"]),
                        read_ops(problem, stage["ops"]), (stage.get("offset"), stage.get("backward_offset")))
                  for stage in plan.get("stages", [])]
        listed = bool(stages)
        stages = stages or stages_of_placement(problem, place)
        faults += pipeline_faults(problem, stages, listed)
        if not faults:
            loads = pipeline_loads(problem, stages)
            value = pipeline_value(loads)
            if problem.sharing:
                value, faults = shared_pipeline(problem, stages, loads, plan.get("value"))
            for stated, load in zip(plan.get("stages", []), loads):
                if stated.get("load") is not None and not same(stated["load"], sum(load)):
                    faults.append(f"a stage states the load {stated['load']}, it is {sum(load)}")
    elif problem.objective == "call-latency":
        calls = [Call(problem.device_names.index(call["device"]), read_ops(problem, call["ops"]), call["start"],
                      call["end"]) for call in plan.get("calls", [])]
        faults += resident_faults(problem, place)
        faults += calls_faults(problem, place, calls)
        if not faults:
            value = max(call_ends(problem, place, calls, given_starts=True).values(), default=0)
    else:
        schedule = read_schedule(problem, plan["schedule"])
        faults += resident_faults(problem, place)
        if not faults:
            faults += schedule_faults(problem, place, schedule)
        if not faults:
            value = schedule_value(problem, [schedule.ops[op][1] for op in range(len(problem.ops))])
    if value is not None:
        faults += statement_faults(plan, value)
    return value, faults


def statement_faults(plan, value):
    """What the plan says of itself: value, lower bound, gap and status."""
    if plan.get("value") is not None and not same(plan["value"], value):
        yield f"the plan states the value {plan['value']}, it is {value}"
    bound = plan.get("lower_bound", 0)
    if bound is None or not at_most(bound, value):
        yield f"the bound {bound} is above the value {value}"
        return
    gap = 0 if value == bound else (value - bound) / value
    if plan.get("gap") is not None and abs(plan["gap"] - gap) > TOLERANCE:
        yield f"the plan states the gap {plan['gap']}, it is {gap}"
    fitting = {"optimal"} if gap <= OPTIMAL_GAP else {"feasible"}
    if "lower_bound" not in plan:
        fitting.add("feasible")
    if plan["status"] not in fitting:
        yield f"the plan states that it is {plan['status']}, and its gap is {gap}"
