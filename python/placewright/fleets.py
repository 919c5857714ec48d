"""A fleet's plan carried out on Ray: a session of ours for each replica, in an actor of Ray Serve on its node.

    placewright fleet squeezenet.json resnet50.json --nodes nodes.json --rate 60 -o fleet.json

    with placewright.serving.deploy("fleet.json") as fleet:
        logits = fleet.infer("squeezenet", {"image": pixels})["logits"]

Ray knows a node by a resource of its name: `ray start --address=… --resources='{"node1": 1}'`. Where a node does not
answer any more, the fleet is planned again for the others (`placewright fleet fleet.json --without node1`), and the
requests that were there are computed elsewhere. A node that comes back is used again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from placewright.libraries import program_path

_SHARE = 0.0001  # of a node's resource that a replica takes: as many fit as are planned
_LOOK = 0.5  # seconds between looks at the nodes
_START = 300  # seconds that a replica may take to be ready

Place = tuple[str, str]  # model, node


class _Worker:
    """In the actor: one model on the cores of its node."""

    def __init__(self, path: str, cores: int) -> None:
        import placewright

        allowed = sorted(os.sched_getaffinity(0))
        device = "cpu:" + ",".join(map(str, allowed[: cores or len(allowed)]))
        problem = placewright.measure(path, devices=[device], repeat=2)
        self._session = placewright.Session(problem.plan_for([0] * len(problem.op_names)))
        self._turn = asyncio.Lock()

    async def ping(self) -> bool:
        return True

    async def infer(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        async with self._turn:  # a session takes one call at a time
            return await asyncio.to_thread(self._session.run, inputs)


@dataclasses.dataclass
class _Replica:
    handle: Any
    app: str
    ray_node: str  # Ray's own name of the node, which changes when it comes back
    rate: float
    given: float = 0.0  # requests so far, over the rate
    seen: float = dataclasses.field(default_factory=time.monotonic)  # when it last answered


class Fleet:
    """A plan on the nodes of the Ray cluster that this process is connected to. `infer` may be called by any thread.

    `events` says what happened to nodes and plans, with the seconds since the start."""

    def __init__(self, plan: str | os.PathLike[str], *, program: str | None = None, patience: float = 4) -> None:
        self._program, self._patience = program_path(program), patience
        self._original = Path(plan)
        self._document: dict[str, Any] = json.loads(self._original.read_text())
        if self._document.get("placewright") != "fleet":
            raise ValueError(f"{plan}: is no plan of a fleet (placewright fleet … -o FILE)")
        for model in self._document["models"]:
            if not model.get("path"):
                raise ValueError(
                    f"{plan}: the file of the model '{model['name']}' is unknown: plan with a measured problem"
                )
        self._begin = time.monotonic()
        self.events: list[tuple[float, str]] = []
        self._replicas: dict[Place, _Replica] = {}
        self._changed = threading.Condition()
        self._suspects: set[str] = set()  # by Ray's own name
        self._planned_for: set[str] = {node["name"] for node in self._document["nodes"]}
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(16)

    @property
    def replicas(self) -> list[Place]:
        """Model and node of each replica that takes requests."""
        with self._changed:
            return sorted(self._replicas)

    def start(self) -> Fleet:
        """Returns when all replicas are ready. A RuntimeError says which node is not there."""
        import ray
        from ray import serve

        if not ray.is_initialized():
            ray.init(address="auto")
        serve.start(proxy_location="Disabled")
        if missing := self._planned_for - set(self._alive()):
            raise RuntimeError(f"no node of the Ray cluster has the resource '{min(missing)}'")
        self._carry_out(self._document)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def infer(self, model: str, inputs: Mapping[str, Any], *, timeout: float = 60) -> dict[str, Any]:
        """The outputs by name. If the replica's node is lost, another one computes the request. A TimeoutError says
        that there was no answer, a ValueError that the model or its inputs are wrong."""
        if model not in (each["name"] for each in self._document["models"]):
            raise ValueError(f"the fleet has no model '{model}'")
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            found = self._next_replica(model, until)
            if found is None:
                break
            place, replica = found
            answer = self._answer(place, replica, inputs, until)
            if answer is not None:
                return answer
        raise TimeoutError(f"'{model}': no answer within {timeout:g} s")

    def close(self) -> None:
        """Ends the replicas."""
        from ray import serve

        self._over.set()
        self._watcher.join()
        with self._changed:
            apps = [replica.app for replica in self._replicas.values()]
            self._replicas.clear()
        for app in apps:
            serve.delete(app)
        self._pool.shutdown(wait=False)

    def __enter__(self) -> Fleet:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next_replica(self, model: str, until: float) -> tuple[Place, _Replica] | None:
        """The one that has least of what the plan gives it; waits while there is none."""
        with self._changed:
            while True:
                there = [(place, replica) for place, replica in self._replicas.items() if place[0] == model]
                if there:
                    place, replica = min(there, key=lambda each: each[1].given)
                    replica.given += 1 / max(replica.rate, 1e-9)
                    return place, replica
                if not self._changed.wait(max(0.0, until - time.monotonic())):
                    return None

    def _answer(
        self, place: Place, replica: _Replica, inputs: Mapping[str, Any], until: float
    ) -> dict[str, Any] | None:
        """None where the replica is lost."""
        from ray.exceptions import RayActorError, RayTaskError

        response = replica.handle.infer.remote(dict(inputs))
        while True:
            try:
                outputs: dict[str, Any] = response.result(timeout_s=0.5)
                return outputs
            except TimeoutError:
                if time.monotonic() >= until:
                    response.cancel()
                    raise TimeoutError(f"'{place[0]}': no answer in time") from None
                if not self._serves(place, replica):
                    response.cancel()
                    return None
            except RayActorError:
                self._lose(place, replica)
                return None
            except RayTaskError as error:
                raise ValueError(f"'{place[0]}': {error.cause}") from error

    def _serves(self, place: Place, replica: _Replica) -> bool:
        with self._changed:
            return self._replicas.get(place) is replica

    def _lose(self, place: Place, replica: _Replica) -> None:
        """It takes no more requests until the watcher knows what became of its node."""
        with self._changed:
            if self._replicas.get(place) is replica:
                del self._replicas[place]
                self._suspects.add(replica.ray_node)
                self._end(replica)

    def _watch(self) -> None:
        while not self._over.wait(_LOOK):
            try:
                self._ping_all()
                there = set(self._alive()) & {node["name"] for node in self._document["nodes"]}
                if there != self._planned_for:
                    self._plan_again(there)
            except Exception as error:  # the next look tries again
                self._say(f"the fleet could not be looked after: {error}")

    def _ping_all(self) -> None:
        with self._changed:
            asked = list(self._replicas.items())
        for place, replica in asked:
            self._pool.submit(self._ping, replica)
            if time.monotonic() - replica.seen > self._patience:
                self._say(f"'{place[0]}' on '{place[1]}' does not answer")
                self._lose(place, replica)

    def _ping(self, replica: _Replica) -> None:
        try:
            replica.handle.ping.remote().result(timeout_s=self._patience)
            replica.seen = time.monotonic()
        except Exception:  # its silence is noticed
            return

    def _alive(self) -> dict[str, str]:
        """Ray's own names of the nodes that answer, by the names of the plan."""
        import ray

        found = {}
        for node in ray.nodes():
            if node["Alive"] and node["NodeID"] not in self._suspects:
                found.update(dict.fromkeys(node["Resources"], node["NodeID"]))
        return found

    def _plan_again(self, there: set[str]) -> None:
        nodes = [node["name"] for node in self._document["nodes"]]
        gone = [name for name in nodes if name not in there]
        self._say(f"the nodes are {', '.join(sorted(there)) or 'all gone'}")
        self._planned_for = there
        with self._changed:
            for place in [place for place in self._replicas if place[1] in gone]:
                self._end(self._replicas.pop(place))
        if not there:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fleet.json"
            without = [word for name in gone for word in ("--without", name)]
            command = [self._program, "fleet", self._original, *without, "--time-limit", "1s", "-o", path, "--quiet"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            if not path.exists():
                self._say(f"there is no plan for these nodes; those that are left go on: {done.stderr.strip()}")
                return
            planned = json.loads(path.read_text())
        self._carry_out(planned)
        self._say(f"planned again for {', '.join(sorted(there))}")

    def _carry_out(self, planned: Mapping[str, Any]) -> None:
        """Replicas that stay get their new rates at once; then new ones start, and the others end."""
        rates = {(each["model"], each["node"]): each["rate"] for each in planned["replicas"]}
        with self._changed:
            for place in rates.keys() & self._replicas.keys():
                self._replicas[place].rate = rates[place]
            for replica in self._replicas.values():
                replica.given = 0.0
            new = sorted(rates.keys() - self._replicas.keys())
        from ray import serve

        if new:
            targets = [self._target(place) for place in new]
            handles = serve.run_many(targets, wait_for_applications_running=False)
            waits = [
                self._pool.submit(self._take_in, place, target.name, handle, rates[place])
                for place, target, handle in zip(new, targets, handles, strict=True)
            ]
            for wait in waits:
                wait.result()
        with self._changed:
            for place in self._replicas.keys() - rates.keys():
                self._end(self._replicas.pop(place))

    def _end(self, replica: _Replica) -> None:
        """Ray may take long, as where the node is gone, and nobody waits for it."""
        from ray import serve

        threading.Thread(target=serve.delete, args=(replica.app,), daemon=True).start()

    def _target(self, place: Place) -> Any:
        from ray import serve

        model, node = place
        path = next(each["path"] for each in self._document["models"] if each["name"] == model)
        cores = next(each.get("cores", 0) for each in self._document["nodes"] if each["name"] == node)
        worker = serve.deployment(
            _Worker,
            name=f"{model} on {node}",
            max_ongoing_requests=1000,
            ray_actor_options={"num_cpus": 0, "resources": {node: _SHARE}},
        )
        return serve.RunTarget(
            worker.bind(path, cores), name=f"{model}-{node}-{time.monotonic_ns()}", route_prefix=None
        )

    def _take_in(self, place: Place, app: str, handle: Any, rate: float) -> None:
        ray_node = self._alive()[place[1]]
        handle.ping.remote().result(timeout_s=_START)
        with self._changed:
            self._replicas[place] = _Replica(handle, app, ray_node, rate)
            self._changed.notify_all()

    def _say(self, what: str) -> None:
        self.events.append((time.monotonic() - self._begin, what))


def deploy(plan: str | os.PathLike[str], *, program: str | None = None, patience: float = 4) -> Fleet:
    """A fleet for the plan of `placewright fleet`, to start with `with`. A replica that has not answered for `patience`
    seconds is lost, and its node with it. `program` is the one that plans again, as for `Server`."""
    return Fleet(plan, program=program, patience=patience)
