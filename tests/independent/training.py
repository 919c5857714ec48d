"""What a training step costs, from docs/semantics.md ("Training steps on clusters") alone, and the best plan of a small
problem by going through all of them. Plain and slow on purpose; see rules.py.
"""

import functools
import itertools
import math

TOLERANCE = 1e-9


def pool_name(pool):
    return f"{pool['kind']}@{pool['zone']}" if pool.get("zone") else pool["kind"]


class TrainingProblem:
    def __init__(self, document):
        self.document = document
        self.batch = document["batch"]
        self.sizes = {entry["degree"]: entry for entry in document["sizes"]}
        self.layers = len(document["sizes"][0]["parameters"])
        self.kinds = {kind["name"]: kind for kind in document["kinds"]}
        self.pools = {pool_name(pool): pool for pool in document["pools"]}
        self.constants = {"hidden_launches": 0, "all_reduce_efficiency": 1, "bytes_per_parameter": 20,
                          "activation_factor": 1, "framework": 0, "framework_per_gpu": 0,
                          **document.get("constants", {})}
        self.objective = document.get("objective", "step-time")

    def table(self, kind, degree, micro_batch):
        for entry in self.kinds[kind]["times"]:
            if entry["degree"] == degree and entry["micro_batch"] == micro_batch:
                return entry
        return None

    def passes(self, kind, degree, micro_batch, layer):
        entry = self.table(kind, degree, micro_batch)
        total = 0
        for name in ("forward", "backward"):
            work = micro_batch * min(other[name][layer] / other["micro_batch"]
                                     for other in self.kinds[kind]["times"] if other["degree"] == degree)
            total += entry[name][layer] - self.constants["hidden_launches"] * (entry[name][layer] - work)
        return total

    @functools.cache
    def compute(self, kind, degree, micro_batch, layers):
        return sum(self.passes(kind, degree, micro_batch, layer) for layer in range(*layers))

    def speed(self, one, other, gpus, size):
        x = min(max(math.log2(size / 1e6), 0), 10)
        speeds = [0]
        for link in self.document["links"]:
            if (link["from"], link["to"]) in ((one, other), (other, one)):
                a, b, c = link["curve"]
                full = min(1e9 * (a * x * x + b * x + c), link["best"])
                speeds.append(full * min(1, gpus / link["gpus"]))
        return max(speeds)

    def send(self, plan, stage, number):
        replica = plan["stages"][stage]["replicas"][number]
        total = 0
        for neighbour in (stage - 1, stage + 1):
            if not 0 <= neighbour < len(plan["stages"]):
                continue
            others = plan["stages"][neighbour]["replicas"]
            lanes = min(len(others), len(plan["stages"][stage]["replicas"]))
            last = plan["stages"][min(stage, neighbour)]["layers"][1] - 1
            size = self.sizes[replica["degree"]]["outputs"][last] * plan["micro_batch"]
            if size > 0:
                total += max(2 * size / self.speed(replica["pool"], other["pool"], 1, size)
                             for i, other in enumerate(others) if i % lanes == number % lanes)
        return total

    def all_reduce(self, stage):
        replicas = stage["replicas"]
        n = len(replicas)
        if n == 1:
            return 0
        first, last = stage["layers"]
        size = max(4 * r["degree"] * sum(self.sizes[r["degree"]]["parameters"][first:last]) for r in replicas)
        streams = min(r["degree"] for r in replicas)
        slowest = min(self.speed(replicas[i - 1]["pool"], replicas[i]["pool"], streams, size / streams)
                      for i in range(n))
        return 2 * (n - 1) / n * size / slowest / self.constants["all_reduce_efficiency"]

    def memory(self, plan, stage, replica):
        first, last = plan["stages"][stage]["layers"]
        sizes = self.sizes[replica["degree"]]
        c = self.constants
        in_flight = min(len(plan["stages"]) - stage, replica["micro_batches"])
        return (c["bytes_per_parameter"] * sum(sizes["parameters"][first:last])
                + c["activation_factor"] * sum(sizes["activations"][first:last]) * plan["micro_batch"] * in_flight
                + c["framework"] + c["framework_per_gpu"] * replica["degree"])

    def cost(self, plan):
        """The seconds, the price and the bytes of a plan that has the right form, and whether it fits."""
        fill = steady = update = reduction = hourly = fullest = 0
        fits = True
        for s, stage in enumerate(plan["stages"]):
            slots = []
            for number, replica in enumerate(stage["replicas"]):
                kind = self.pools[replica["pool"]]["kind"]
                slot = self.compute(kind, replica["degree"], plan["micro_batch"], tuple(stage["layers"]))
                slot += self.send(plan, s, number)
                slots.append(slot)
                steady = max(steady, (replica["micro_batches"] - 1) * slot)
                table = self.table(kind, replica["degree"], plan["micro_batch"])
                update = max(update, sum(table["update"][slice(*stage["layers"])]))
                hourly += replica["degree"] * self.kinds[kind].get("price", 0)
                used = self.memory(plan, s, replica)
                fullest = max(fullest, used)
                fits = fits and used <= self.kinds[kind]["memory"] * (1 + TOLERANCE)
            fill += max(slots)
            reduction = max(reduction, self.all_reduce(stage))
        seconds = fill + steady + update + reduction
        return seconds, seconds * hourly / 3600, fullest, fits

    def value(self, plan):
        seconds, price, _, fits = self.cost(plan)
        if not fits or not self.packs(plan):
            return math.inf
        return seconds if self.objective == "step-time" else price

    def packs(self, plan):
        for name, pool in self.pools.items():
            degrees = sorted((r["degree"] for stage in plan["stages"] for r in stage["replicas"] if r["pool"] == name),
                             reverse=True)
            if not fits_into(degrees, [pool["gpus"]] * pool["count"]):
                return False
        return True


def fits_into(degrees, free):
    if not degrees:
        return True
    for node in range(len(free)):
        if free[node] >= degrees[0]:
            left = free[:node] + [free[node] - degrees[0]] + free[node + 1:]
            if fits_into(degrees[1:], left):
                return True
    return False


def shares(total, parts):
    """All ways to write `total` as an ordered sum of `parts` numbers from 1."""
    if parts == 1:
        yield (total,)
        return
    for first in range(1, total - parts + 2):
        for rest in shares(total - first, parts - 1):
            yield (first, *rest)


def cuts(layers, stages):
    for inner in itertools.combinations(range(1, layers), stages - 1):
        yield list(itertools.pairwise((0, *inner, layers)))


def groups_of(problem, micro_batch):
    return [(name, entry["degree"]) for name, pool in problem.pools.items()
            for entry in problem.kinds[pool["kind"]]["times"]
            if entry["micro_batch"] == micro_batch and entry["degree"] <= pool["gpus"]]


def optimum(problem):
    """The least value of all plans; infinite if there is none. Every order of the replicas of a stage counts."""
    best = math.inf
    gpus = sum(pool["gpus"] * pool["count"] for pool in problem.pools.values())
    sizes = {entry["micro_batch"] for kind in problem.kinds.values() for entry in kind["times"]}
    for micro_batch in sizes:
        if problem.batch % micro_batch:
            continue
        micro_batches = problem.batch // micro_batch
        groups = groups_of(problem, micro_batch)
        for count in range(1, min(problem.layers, gpus) + 1):
            for replicas in stage_choices(groups, count, gpus, micro_batches):
                options = [[list(zip(stage, share, strict=True)) for share in shares(micro_batches, len(stage))]
                           for stage in replicas]
                for cut in cuts(problem.layers, count):
                    for chosen in itertools.product(*options):
                        plan = {"micro_batch": micro_batch,
                                "stages": [{"layers": list(layers),
                                            "replicas": [{"pool": pool, "degree": degree, "micro_batches": share}
                                                         for (pool, degree), share in stage]}
                                           for layers, stage in zip(cut, chosen, strict=True)]}
                        best = min(best, problem.value(plan))
    return best


def stage_choices(groups, count, gpus, micro_batches):
    """The groups of every stage: at least one for each, all GPUs together at most `gpus`."""
    if count == 0:
        yield ()
        return
    for size in range(1, min(gpus - count + 1, micro_batches) + 1):
        for stage in itertools.product(groups, repeat=size):
            used = sum(degree for _, degree in stage)
            if used + count - 1 <= gpus:
                for rest in stage_choices(groups, count - 1, gpus - used, micro_batches):
                    yield (stage, *rest)
