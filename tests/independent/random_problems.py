"""Small random problem files that mix everything the rules speak of, far more often than real problems do."""

import random

OBJECTIVES = ["throughput", "call-latency", "latency", "total-completion"]


def random_problem(seed, most_ops):
    """The same seed gives the same document."""
    return Draft(random.Random(seed), most_ops).document


class Draft:
    def __init__(self, dice, most_ops):
        self.dice = dice
        self.objective = dice.choice(OBJECTIVES)
        self.through_host = self.objective == "call-latency" or dice.random() < 0.4
        # Whole numbers make ties, fractions make sums that round, and units far apart make both
        # lose digits.
        self.unit = dice.choice([1, 1, 1, 0.1, 1e-6, 1e6])
        self.whole = dice.random() < 0.6
        kinds = dice.randint(1, 3)
        ops = dice.randint(1, most_ops)
        devices = self.devices(kinds, ops)
        names = [device["name"] for device in devices]
        self.document = {
            "placewright": "problem",
            "version": 1,
            "objective": self.objective,
            "kinds": [{"name": f"k{kind}"} for kind in range(kinds)],
            "devices": devices,
            "interconnect": {"kind": "host"} if self.through_host else self.links(names),
            "models": self.models(),
        }
        if self.through_host and (self.objective == "call-latency" or self.chance(0.7)):
            self.document["kinds"].append({"name": "host", "host": True})
            cores = 1 if self.objective == "call-latency" else dice.randint(1, 2)
            for core in range(cores):
                devices.insert(dice.randint(0, len(devices)), {"name": f"core{core}", "kind": "host"})
        self.document["ops"] = self.ops(ops)
        self.document["tensors"] = self.tensors(ops)
        self.document["colocate"] = self.groups(ops)
        self.document["weights"] = self.weights(ops)
        self.document["rules"] = self.rules()
        if self.chance(0.5):
            self.share()

    def chance(self, probability):
        return self.dice.random() < probability

    def duration(self, highest=9):
        if self.chance(0.1):
            return 0
        amount = self.dice.randint(0, highest) if self.whole else self.dice.uniform(0, highest)
        return amount * self.unit

    def devices(self, kinds, ops):
        devices = []
        for number in range(self.dice.randint(1, 3)):
            device = {"name": f"d{number}", "kind": f"k{self.dice.randrange(kinds)}"}
            if self.chance(0.35):
                device["memory"] = self.dice.randint(1, 2 * ops + 3)
            if self.chance(0.3):
                device["lanes"] = self.dice.randint(1, 3)
            for overhead in ("send_overhead", "receive_overhead"):
                if self.chance(0.35):
                    device[overhead] = self.duration(2)
            devices.append(device)
        return devices

    def link(self):
        cost = {"latency": self.duration(2)}
        if self.chance(0.6):
            cost["bandwidth"] = self.dice.choice([0.5, 1, 3, 4]) / self.unit
        return cost

    def links(self, names):
        interconnect = {"kind": "links"}
        if self.chance(0.85):
            interconnect["all"] = self.link()
        if self.chance(0.4):
            interconnect["links"] = [{"from": a, "to": b, **self.link()}
                                     for a in names for b in names if a != b and self.chance(0.5)]
        return interconnect

    def models(self):
        count = self.dice.randint(1, 3) if self.chance(0.5) else 1
        models = []
        for number in range(count):
            model = {"name": f"m{number}"}
            if self.chance(0.4):
                model["arrival"] = self.duration(5)
            if self.chance(0.4):
                model["weight"] = self.dice.choice([0, 0.5, 2, 3])
            models.append(model)
        return models

    def ops(self, count):
        kinds = [kind["name"] for kind in self.document["kinds"]]
        self.order = list(range(count))
        self.dice.shuffle(self.order)
        training = self.objective == "throughput" and self.chance(0.4)
        used = sorted({device["kind"] for device in self.document["devices"]})
        ops = []
        for number in range(count):
            times = {kind: self.duration() for kind in kinds}
            spare = [kind for kind in kinds if used != [kind]]
            if spare and self.chance(0.25):
                times[self.dice.choice(spare)] = None
            op = {"name": f"o{number}", "time": times, "memory": self.dice.randint(0, 3),
                  "model": self.dice.randrange(len(self.document["models"]))}
            if training and self.order.index(number) >= count / 2 and self.chance(0.8):
                op["backward"] = True
            if self.chance(0.08):
                able = [device["name"] for device in self.document["devices"] if times[device["kind"]] is not None]
                op["pin"] = self.dice.choice(able)
            ops.append(op)
        return ops

    def tensors(self, ops):
        tensors = []
        density = self.dice.choice([0.2, 0.5, 0.9])
        for place, producer in enumerate(self.order):
            for _ in range(self.dice.choice([0, 1, 1, 1, 2])):
                later = [op for op in self.order[place + 1:] if self.model(op) == self.model(producer)]
                tensor = {"from": producer, "to": [op for op in later if self.chance(density)],
                          "bytes": self.dice.randint(0, 4)}
                if self.through_host:
                    tensor["time"] = self.duration(3)
                elif self.chance(0.15):
                    tensor["table"] = self.table()
                tensors.append(tensor)
        return tensors

    def model(self, op):
        return self.document["ops"][op]["model"]

    def table(self):
        devices = range(len(self.document["devices"]))
        return [[0 if a == b else None if self.chance(0.1) else self.duration(3) for b in devices] for a in devices]

    def groups(self, ops):
        groups = []
        while ops >= 2 and self.chance(0.3):
            groups.append(self.dice.sample(range(ops), self.dice.randint(2, min(ops, 3))))
        return groups

    def weights(self, ops):
        weights = []
        while self.chance(0.2):
            weights.append({"bytes": self.dice.randint(0, 3),
                            "ops": self.dice.sample(range(ops), self.dice.randint(1, ops))})
        return weights

    def rules(self):
        rules = {"memory": self.dice.choice(["resident", "resident", "peak"])}
        if self.objective == "throughput":
            rules["contiguity"] = self.dice.choice(["none", "joint", "per-device"])
            rules["transfers"] = self.dice.choice(["sequential", "overlapped", "duplex"])
            rules["training"] = self.dice.choice(["interleaved", "phased"])
            if self.chance(0.3):
                rules["max_replicas"] = self.dice.randint(2, 3)
                rules["replica_bandwidth"] = self.dice.choice([0, 1, 2]) / self.unit
            if self.chance(0.5):
                self.document["version"] = 3
                rules["schedule"] = self.dice.choice(["1f1b", "gpipe", "interleaved"])
                rules["micro_batches"] = self.dice.randint(1 if rules["schedule"] == "gpipe" else 0, 6)
        elif self.objective == "call-latency":
            rules["calls_per_device"] = self.dice.randint(1, 3)
        else:
            rules["congestion"] = self.chance(0.7)
        return rules

    def share(self):
        """What version 2 of the format has: resources, memory spaces, overheads by tensor."""
        self.document["version"] = max(2, self.document["version"])
        if self.chance(0.6):
            self.join_spaces()
        if self.chance(0.7):
            self.add_resources()
        if self.chance(0.5):
            self.add_cuts()

    def join_spaces(self):
        hosts = {kind["name"] for kind in self.document["kinds"] if kind.get("host")}
        spaces = []
        for is_host in (False, True):
            alike = [device for device in self.document["devices"] if (device["kind"] in hosts) == is_host]
            joined = [device for device in alike if self.chance(0.7)]
            if not joined:
                continue
            space = {"name": f"space{len(spaces)}"}
            if self.chance(0.4):
                space["memory"] = self.dice.randint(1, 2 * len(self.document["ops"]) + 6)
            spaces.append(space)
            for device in joined:
                device["space"] = space["name"]
                device.pop("memory", None)
        if self.chance(0.2):
            spaces.append({"name": "spare"})  # in which no device is
        self.document["spaces"] = spaces
        if not self.through_host:
            self.join_links()

    def join_links(self):
        """All pairs of devices of two spaces have the same link: that of the first of each."""
        devices = self.document["devices"]
        first = {}
        for number, device in enumerate(devices):
            first.setdefault(device.get("space", device["name"]), number)
        leaders = [first[device.get("space", device["name"])] for device in devices]
        names = [device["name"] for device in devices]
        interconnect = self.document["interconnect"]
        stated = {(names.index(link["from"]), names.index(link["to"])): link for link in interconnect.get("links", [])}
        pairs = [(a, b) for a in range(len(devices)) for b in range(len(devices)) if leaders[a] != leaders[b]]
        interconnect["links"] = [{**stated[leaders[a], leaders[b]], "from": names[a], "to": names[b]}
                                 for a, b in pairs if (leaders[a], leaders[b]) in stated]
        for tensor in self.document["tensors"]:
            if "table" in tensor:
                table = tensor["table"]
                tensor["table"] = [[table[leaders[a]][leaders[b]] for b in range(len(devices))]
                                   for a in range(len(devices))]

    def add_resources(self):
        resources = [{"name": f"r{number}", "capacity": self.dice.choice([1, 1, 2, 0.3])}
                     for number in range(self.dice.randint(1, 3))]
        self.document["resources"] = resources
        for device in self.document["devices"]:
            uses = [{"resource": resource["name"],
                     "amount": self.dice.choice([1, 1, 0.5, 1 / 3]) * resource["capacity"]}
                    for resource in resources if self.chance(0.6)]
            if uses:
                device["uses"] = uses
                device.pop("lanes", None)
        for part in resources + [use for device in self.document["devices"] for use in device.get("uses", [])]:
            for key in ("capacity", "amount"):
                if part.get(key) == 1 and self.chance(0.5):
                    del part[key]
        for op in self.document["ops"]:
            if self.chance(0.4):
                shares = [self.dice.choice([1, 0.5, 1 / 3, 0.1]) for _ in self.document["kinds"]]
                op["share"] = shares if self.chance(0.3) else {
                    kind["name"]: share for kind, share in zip(self.document["kinds"], shares) if self.chance(0.7)}

    def add_cuts(self):
        for tensor in self.document["tensors"]:
            cuts = [{"kind": kind["name"]} | {side: self.duration(2) for side in ("send", "receive") if self.chance(0.9)}
                    for kind in self.document["kinds"] if self.chance(0.5)]
            if cuts and self.chance(0.6):
                tensor["cuts"] = cuts
