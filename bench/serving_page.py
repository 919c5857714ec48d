"""The tables of docs/results/serving.md, from what serving.py kept."""

import statistics

from pages import table

OUR_SERVER = "serve"


def number(value, pattern="{:.1f}"):
    return "-" if value is None else pattern.format(value)


class Page:
    def __init__(self, kept, titles):
        self.cells, self.errors, self.own, self.mixes = kept["cells"], kept["errors"], kept["own"], kept.get("mixes", [])
        self.titles = titles

    def row(self, row):
        """What the servers did in it, by name in the order of the registry."""
        return {name: self.cells[f"{row}/{name}"] for name in self.titles if f"{row}/{name}" in self.cells}

    def answered_all(self, row):
        """Of the peers, those whose latencies can be compared: they answered every request."""
        return {name: cell for name, cell in self.row(row).items()
                if name in ("together", "openvino", "triton", "mlserver", "ray") and not cell["all"]["failed"] + cell["all"]["refused"]}

    def models(self, cell):
        return [name for name in cell if name != "all"]

    def load_table(self, row):
        cells = self.row(row)
        if not cells:
            return "Not measured yet.\n"
        names = self.models(next(iter(cells.values())))
        titles = ["server", "mean of all ms", *(f"{name} mean / p99 ms" for name in names), "latency / own time", "without an answer"]
        lines = []
        for name, cell in cells.items():
            if name in ("serve-objectives", "serve-late", "deadline"):
                continue
            each = [f"{number(cell[model]['mean'])} / {number(cell[model]['p99'])}" for model in names]
            lost = cell["all"]["failed"] + cell["all"]["refused"]
            lines.append([self.titles[name], number(cell["all"]["mean"]), *each, number(cell["all"]["times_own"], "{:.2f}"), lost])
        return table(titles, lines) + self.against_peers(row, names) + self.missing(row)

    def against_peers(self, row, names):
        ours, peers = self.row(row).get(OUR_SERVER), self.answered_all(row)
        if not ours or not peers:
            return ""
        short, long = min(names, key=self.own.get), max(names, key=self.own.get)
        best = min(peers, key=lambda name: peers[name][short]["p99"])
        mean = min(peers, key=lambda name: peers[name]["all"]["mean"])
        return (f"\n`serve` takes {ours[short]['p99'] / peers[best][short]['p99']:.2f} times the p99 of {short} at the best peer there "
                f"({self.titles[best]}). Its mean of all requests is {ours['all']['mean'] / peers[mean]['all']['mean']:.2f} times the lowest of "
                f"the peers ({self.titles[mean]}), and the p99 of {long} is {ours[long]['p99'] / peers[mean][long]['p99']:.2f} times as long "
                "as there.\n")

    def missing(self, row):
        lines = [f"* {self.titles[name]}: {self.errors[f'{row}/{name}']}.\n" for name in self.titles if f"{row}/{name}" in self.errors]
        return "\nWithout a figure:\n\n" + "".join(lines) if lines else ""

    def objectives(self, row):
        cells = self.row(row)
        if not cells:
            return "Not measured yet.\n"
        names = self.models(next(iter(cells.values())))
        titles = ["server", "in time", *(f"{name} in time" for name in names), "refused", "in time, of those answered"]
        lines = []
        for name, cell in cells.items():
            answered = cell["all"]["requests"] - cell["all"]["refused"] - cell["all"]["failed"]
            share = [f"{cell[each]['in_time'] / cell[each]['requests']:.1%}" for each in ("all", *names)]
            lines.append([self.titles[name], *share, cell["all"]["refused"], f"{cell['all']['in_time'] / max(answered, 1):.1%}"])
        return table(titles, lines) + self.missing(row)

    def closed(self, rows):
        titles = ["server"]
        lines = {}
        for row, clients in rows:
            titles += [f"{clients} p50 ms", f"{clients} p99 ms", f"{clients}, requests/s"]
        for name, title in self.titles.items():
            found = [self.cells.get(f"{row}/{name}") for row, _ in rows]
            if any(found):
                values = [[number(cell["p50"], "{:.3f}"), number(cell["p99"], "{:.3f}"), number(cell["a_second"], "{:,.0f}")] if cell else ["-"] * 3
                          for cell in found]
                lines[name] = [title, *(value for three in values for value in three)]
        text = table(titles, list(lines.values())) if lines else "Not measured yet.\n"
        return text + self.missing(rows[0][0])

    def mix_table(self):
        lines, ratios = [], []
        for number_of_mix, mix in enumerate(self.mixes):
            row = f"mix-{number_of_mix}"
            ours, peers = self.row(row).get(OUR_SERVER), self.answered_all(row)
            if not ours or not peers:
                continue
            best = min(peers, key=lambda name: peers[name]["all"]["times_own"])
            ratios.append(ours["all"]["times_own"] / peers[best]["all"]["times_own"])
            lines.append([", ".join(mix["models"]), mix["load"], ours["all"]["requests"], number(ours["all"]["times_own"], "{:.2f}"),
                          number(peers[best]["all"]["times_own"], "{:.2f}"), self.titles[best], f"{ratios[-1]:.2f}"])
        if not lines:
            return "Not measured yet.\n"
        titles = ["models", "load", "requests", "`serve`", "best peer", "which", "`serve` / best peer"]
        return table(titles, lines) + f"\nThe median over the mixes is {statistics.median(ratios):.2f}, the largest {max(ratios):.2f}.\n"

    def predicted(self, rows):
        lines, errors = [], []
        for row in rows:
            promised, met = self.cells.get(f"{row}/predicted"), self.row(row).get(OUR_SERVER)
            if not promised or not met:
                continue
            for model in self.models(met):
                for key in ("mean", "p99"):
                    errors.append(abs(promised[model][key] / met[model][key] - 1))
                lines.append([model, row.removeprefix("three-"), number(promised[model]["mean"]), number(met[model]["mean"]),
                              number(promised[model]["p99"]), number(met[model]["p99"])])
        if not lines:
            return "Not measured yet.\n"
        titles = ["model", "load", "mean predicted ms", "measured ms", "p99 predicted ms", "measured ms"]
        return table(titles, lines) + f"\nPredictions are off by {statistics.median(errors):.1%} in the median, {max(errors):.1%} at most.\n"


def page_parts(kept, titles):
    """By marker of the page."""
    page = Page(kept, titles)
    models = [[name, number(own, "{:.2f}")] for name, own in sorted(kept["own"].items(), key=lambda each: each[1])]
    return {
        "machine": kept.get("machine", "Not measured yet") + ".\n",
        "high load": page.load_table("three-0.85"),
        "low load": page.load_table("three-0.6"),
        "objectives": page.objectives("three-0.8"),
        "mixes": page.mix_table(),
        "alone": page.closed([("alone-1", "one client"), ("alone-4", "four clients")]),
        "empty": page.closed([("empty-1", "one client"), ("empty-8", "eight clients")]),
        "predicted": page.predicted(["three-0.85", "three-0.8", "three-0.6"]),
        "own times": table(["model", "own time ms"], models) if models else "Not measured yet.\n",
    }
