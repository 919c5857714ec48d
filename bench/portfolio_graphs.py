"""Graphs of public shapes for bench/portfolio.py: each is a number of ops and edges (from, to), from < to not promised.

The shapes are those of the usual sets for scheduling: forks, joins, trees, series-parallel graphs, stencils, pipelines,
Gaussian elimination and FFT (Topcuoglu, Hariri, Wu: TPDS 13(3), 2002), workflows like Montage and LIGO (Juve et al.:
FGCS 29(3), 2013), an irregular one as narrow as Fpppp, and random ones by density.
"""

import math


def fork(n, _):
    return n, [(0, i) for i in range(1, n)]


def join(n, _):
    return n, [(i, n - 1) for i in range(n - 1)]


def fork_join(n, _):
    return n, [(0, i) for i in range(1, n - 1)] + [(i, n - 1) for i in range(1, n - 1)]


def out_tree(n, random):
    return n, [(random.randrange(max(0, (i - 1) // 4), i), i) for i in range(1, n)]


def in_tree(n, random):
    return n, [(n - 1 - child, n - 1 - parent) for parent, child in out_tree(n, random)[1]]


def series_parallel(n, random):
    """An edge is replaced by a path or by two ways side by side, until there are enough ops."""
    edges, count = [(0, 1)], 2
    while count < n:
        a, b = edges.pop(random.randrange(len(edges)))
        edges += [(a, count), (count, b)]
        if random.random() < 0.6:
            edges.append((a, b))
        count += 1
    return count, sorted(set(edges))


def stencil(n, _):
    width = max(2, round(math.sqrt(n)))
    edges = [(i - width + shift, i) for i in range(width, n) for shift in (-1, 0, 1) if 0 <= i % width + shift < width]
    return n, edges


def pipeline(n, _):
    """Items that pass through stages one after the other: a grid."""
    stages = max(2, round(math.sqrt(n) / 1.5))
    edges = [(i - 1, i) for i in range(n) if i % stages] + [(i - stages, i) for i in range(stages, n)]
    return n, edges


def gauss(n, _):
    size = max(2, round((math.sqrt(8 * n + 17) - 1) / 2))
    number, edges = {}, []
    for k in range(size - 1):
        number[k, k] = len(number)
        for j in range(k + 1, size):
            number[k, j] = len(number)
    for k in range(size - 1):
        for j in range(k + 1, size):
            edges.append((number[k, k], number[k, j]))
            if k + 1 < size - 1:
                edges.append((number[k, j], number[k + 1, j]))
    return len(number), edges


def fft(n, _):
    points = 2
    while 4 * points - 1 + 2 * points * math.log2(2 * points) <= 1.2 * n:
        points *= 2
    edges = [((i - 1) // 2, i) for i in range(1, 2 * points - 1)]
    layer, count = list(range(points - 1, 2 * points - 1)), 2 * points - 1
    for step in range(int(math.log2(points))):
        following = list(range(count, count + points))
        edges += [(layer[i ^ flip], following[i]) for i in range(points) for flip in (0, 1 << step)]
        layer, count = following, count + points
    return count, edges


def montage(n, random):
    images = max(3, (n - 6) // 5)
    differences = max(2, n - 6 - 2 * images)
    project, fit = list(range(images)), list(range(images, images + differences))
    concat, model = images + differences, images + differences + 1
    correct = list(range(model + 1, model + 1 + images))
    table, add, shrink, picture = range(correct[-1] + 1, correct[-1] + 5)
    edges = [(a, f) for f in fit for a in random.sample(project, 2)] + [(f, concat) for f in fit]
    edges += [(concat, model), *((model, c) for c in correct), *zip(project, correct), *((c, table) for c in correct)]
    edges += [(table, add), *((c, add) for c in correct), (add, shrink), (shrink, picture)]
    return picture + 1, edges


def ligo(n, _):
    groups = max(1, round(n / 24))
    edges, count = [], 0
    for _ in range(groups):
        wide = max(2, round((n / groups - 2) / 4))
        bank, first = list(range(count, count + wide)), list(range(count + wide, count + 2 * wide))
        gather = count + 2 * wide
        trigger, second = (
            list(range(gather + 1, gather + 1 + wide)),
            list(range(gather + 1 + wide, gather + 1 + 2 * wide)),
        )
        count = gather + 2 + 2 * wide
        edges += [
            *zip(bank, first),
            *((f, gather) for f in first),
            *((gather, t) for t in trigger),
            *zip(trigger, second),
        ]
        edges += [(s, count - 1) for s in second]
    return count, edges


def fpppp(n, random):
    """Narrow and irregular: mostly chains with inputs from a little before, and a few from far away."""
    edges = set()
    for i in range(1, n):
        for _ in range(random.choice((1, 1, 2, 2, 3))):
            back = random.randint(1, 12) if random.random() < 0.85 else random.randint(1, i)
            edges.add((max(0, i - back), i))
    return n, sorted(edges)


def by_density(density):
    def random_graph(n, random):
        edges = [(a, b) for b in range(n) for a in range(b) if random.random() < density / max(1, n - 1) * 2]
        return n, edges

    return random_graph


SHAPES = {
    "fork": fork,
    "join": join,
    "fork-join": fork_join,
    "out-tree": out_tree,
    "in-tree": in_tree,
    "series-parallel": series_parallel,
    "stencil": stencil,
    "pipeline": pipeline,
    "gauss": gauss,
    "fft": fft,
    "montage": montage,
    "ligo": ligo,
    "fpppp": fpppp,
    "random-sparse": by_density(1.5),
    "random-dense": by_density(4),
}


def problem(shape, ops, machines, devices, ratio, random):
    """A problem file: whole times, transfers that depend on the tensor alone and never wait for each other."""
    count, edges = SHAPES[shape](ops, random)
    works = [random.randint(10, 100) for _ in range(count)]
    speeds = [random.choice((1, 1.5, 2, 3, 4)) for _ in range(devices)]

    def time(work, device):
        if machines == "equal":
            return work
        if machines == "uniform":
            return max(1, round(2 * work / speeds[device]))
        return max(1, round(work * random.uniform(0.4, 1.6)))

    times = [[time(work, device) for device in range(devices)] for work in works]
    mean = sum(map(sum, times)) / (count * devices)
    costs = [max(1, round(ratio * mean * random.uniform(0.5, 1.5))) for _ in edges]
    kinds = ["all"] if machines == "equal" else [f"k{device}" for device in range(devices)]
    return {
        "placewright": "problem",
        "version": 1,
        "name": f"{shape}-{count}",
        "objective": "latency",
        "rules": {"congestion": False},
        "kinds": [{"name": kind} for kind in kinds],
        "devices": [{"name": f"d{device}", "kind": kinds[device % len(kinds)]} for device in range(devices)],
        "interconnect": {"kind": "links", "all": {"latency": 0, "bandwidth": 1}},
        "ops": [{"name": f"o{op}", "time": row[: len(kinds)]} for op, row in enumerate(times)],
        "tensors": [{"from": a, "to": [b], "bytes": cost} for (a, b), cost in zip(edges, costs)],
    }
