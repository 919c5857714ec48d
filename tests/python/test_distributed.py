"""Pipelines over processes, run by torchrun itself with gloo on the loopback; the ranks are distributed_worker.py."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import needs
import placewright

needs.extension()

from torch.distributed.pipelining import ScheduleInterleaved1F1B

from distributed_worker import TiedWithSkips, equal_stages, transformer
from placewright.torch.chain import Chain, chain_document, chain_of
from placewright.torch.distributed import CannotPipeline, StagePlan, predicted_step, refuse_schedule, stage_plans

WORKER = Path(__file__).with_name("distributed_worker.py")


def torchrun(
    *arguments: str, scenario: str, folder: Path, before: Sequence[str] = (), script: Path = WORKER
) -> subprocess.Popen[str]:
    """Starts a job, with a command `before` it. Its ranks are told to use one thread each: there are more of them than
    cores. A restarted job is to have a store of its own, else its ranks find the addresses of those that died."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    command = [*before, sys.executable, "-W", "ignore", "-m", "torch.distributed.run", *arguments]
    return subprocess.Popen(
        [*command, str(script), scenario, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def outcome(job: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = job.communicate(timeout=600)
    return job.returncode, output


def run(ranks: int, scenario: str, folder: Path, *more: str) -> tuple[int, str]:
    arguments = ("--standalone", "--nproc-per-node", str(ranks), *more)
    return outcome(torchrun(*arguments, scenario=scenario, folder=folder))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_planned_stages_compute_what_the_model_computes(tmp_path: Path) -> None:
    code, output = run(2, "planned", tmp_path)
    assert code == 0, output


def test_a_transformer_may_be_cut_behind_every_atom(tmp_path: Path) -> None:
    code, output = run(2, "every_cut", tmp_path)
    assert code == 0, output


def test_replicas_loops_tied_weights_and_skips_on_four_ranks(tmp_path: Path) -> None:
    code, output = run(4, "by_hand_on_four", tmp_path)
    assert code == 0, output


def test_a_rank_that_the_plan_leaves_out_trains_along(tmp_path: Path) -> None:
    code, output = run(2, "left_out", tmp_path)
    assert code == 0, output


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU on this machine")
def test_stages_on_a_gpu_hand_over_through_the_host(tmp_path: Path) -> None:
    code, output = run(2, "on_one_gpu", tmp_path)
    assert code == 0, output


def test_a_rank_that_dies_on_another_host_ends_the_job_and_is_named(tmp_path: Path) -> None:
    port = free_port()
    jobs = [
        torchrun(
            "--nnodes=2", f"--node-rank={host}", "--nproc-per-node=1", "--master-addr=127.0.0.1",
            f"--master-port={port}", f"--local-addr=127.0.0.{host + 1}", scenario="dying", folder=tmp_path,
        )
        for host in range(2)
    ]  # fmt: skip
    outcomes = [outcome(job) for job in jobs]  # the time-out of the engine is longer than that of this test
    assert all(code != 0 for code, _ in outcomes), outcomes
    said = re.findall(r"placewright: (.*) has died", outcomes[0][1])
    assert said == [f"stage 1 (rank 1, device 'core 1', host '{socket.gethostname()}')"], outcomes


@pytest.fixture
def two_hosts() -> Iterator[list[list[str]]]:
    """Two network namespaces joined by a cable, each with a host name of its own: the commands that run others there.
    They need the right to make networks."""
    names = [f"placewright-{os.getpid()}-{host}" for host in range(2)]
    ends = [f"pw{os.getpid() % 10**7}-{host}" for host in range(2)]  # names of interfaces are short
    cable = ["link", "add", ends[0], "netns", names[0], "type", "veth", "peer", ends[1], "netns", names[1]]
    steps = [["netns", "add", name] for name in names] + [cable]
    for host, (name, end) in enumerate(zip(names, ends, strict=True)):
        steps += [
            ["-n", name, "addr", "add", f"10.111.0.{host + 1}/24", "dev", end],
            ["-n", name, "link", "set", end, "up"],
            ["-n", name, "link", "set", "lo", "up"],
        ]
    try:
        for step in steps:
            made = subprocess.run(["ip", *step], capture_output=True, text=True, check=False)
            if made.returncode != 0:
                pytest.skip(f"no network namespaces here: ip {' '.join(step)}: {made.stderr.strip()}")
        yield [
            ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", f'hostname host{host}; exec "$@"', "sh",
             "env", f"GLOO_SOCKET_IFNAME={end}"]
            for host, (name, end) in enumerate(zip(names, ends, strict=True))
        ]  # fmt: skip
    except FileNotFoundError as missing:
        pytest.skip(f"no network namespaces here: {missing}")
    finally:
        for name in names if shutil.which("ip") else []:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def test_hosts_with_networks_of_their_own_run_one_plan(two_hosts: list[list[str]], tmp_path: Path) -> None:
    jobs = [
        torchrun(
            "--nnodes=2", f"--node-rank={host}", "--nproc-per-node=1", "--master-addr=10.111.0.1",
            "--master-port=29500", f"--local-addr=10.111.0.{host + 1}", scenario="planned", folder=tmp_path,
            before=before,
        )
        for host, before in enumerate(two_hosts)
    ]  # fmt: skip
    outcomes = [outcome(job) for job in jobs]
    assert all(code == 0 for code, _ in outcomes), outcomes


# Makes the package of the source tree importable in a script, as distributed_worker.py does, and
# goes to its folder.
IMPORTABLE = f"""import os, sys
sys.path.insert(0, {str(WORKER.parents[2] / "python")!r})
import placewright
placewright.__path__.append(os.path.abspath(os.environ.get("PLACEWRIGHT_NATIVE", "")))
os.chdir(os.path.dirname(__file__))
"""


def test_the_example_of_the_page_trains_and_keeps_checkpoints(tmp_path: Path) -> None:
    page = (WORKER.parents[2] / "docs" / "guides" / "torchrun.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    script = tmp_path / "train.py"
    script.write_text(IMPORTABLE + block, encoding="utf-8")
    job = torchrun("--standalone", "--nproc-per-node=2", scenario="", folder=tmp_path, script=script)
    code, output = outcome(job)
    assert code == 0, output
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-10"]


def weights_after(folder: Path, *arguments: str) -> dict[str, torch.Tensor]:
    code, output = run(2, "training", folder, *arguments)
    assert code == 0, output
    found: dict[str, torch.Tensor] = {}
    for rank in range(2):
        found.update(torch.load(folder / f"weights-{rank}.pt"))
    return found


def test_training_goes_on_from_the_last_checkpoint_when_a_rank_was_killed(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    (killed / "die").touch()
    code, output = run(2, "training", killed)
    assert code != 0, output
    said = re.findall(r"placewright: (.*) has died", output)
    assert said == [f"stage 0 (rank 0, device 'core 0', host '{socket.gethostname()}')"], output
    (killed / "die").rename(killed / "died")
    wanted, found = weights_after(whole), weights_after(killed)
    assert wanted.keys() == found.keys() == dict(transformer().named_parameters()).keys()
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0)


def test_torchrun_restarts_a_job_by_itself_and_it_goes_on(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    (killed / "die").touch()
    wanted, found = weights_after(whole), weights_after(killed, "--max-restarts=1")
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0)


# --- what needs no job
# ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chain() -> Chain:
    torch.manual_seed(0)
    return chain_of(TiedWithSkips(), (torch.zeros(1, 3, dtype=torch.long),))


def plan_of(chain: Chain, placement: list[int], **rules: object) -> placewright.Plan:
    """Two devices, the second takes twice as long; a byte takes a microsecond to the other."""
    count = len(chain.atoms.atoms)
    devices = [{"name": name, "kind": name} for name in ("a", "b")]
    links = {"kind": "links", "all": {"latency": 1.0, "bandwidth": 1.0}}
    times = [[1.0] * count, [2.0] * count]
    document = chain_document("tied", chain, devices, links, times, rules={"contiguity": "none", **rules})
    return placewright.Problem.from_document(document).plan_for(placement)


def test_a_cut_is_priced_with_what_it_relays(chain: Chain) -> None:
    values = chain.crossing(range(3)).values
    assert len(values) == 2  # what the next layer reads, and the embedding for all later ones
    count = len(chain.atoms.atoms)
    plan = plan_of(chain, [0] * 3 + [1] * (count - 3))
    one = 3 * 8 * 4
    assert plan.value == max(3, 2 * (count - 3)) + 1 + 2 * one


def test_plans_that_the_engine_cannot_run_are_refused(chain: Chain) -> None:
    count = len(chain.atoms.atoms)
    halves = [0] * 3 + [1] * (count - 3)
    assert [stage.ranks for stage in stage_plans(chain, plan_of(chain, halves), [0, 1])] == [(0,), (1,)]
    with pytest.raises(CannotPipeline, match="of a later stage"):
        stage_plans(chain, plan_of(chain, [0, 1] + [0] * (count - 2)), [0, 1])
    other = chain_of(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)), (torch.zeros(1, 2),))
    with pytest.raises(CannotPipeline, match="which is no atom of the model"):
        stage_plans(other, plan_of(chain, halves), [0, 1])

    def refused(ranks: list[tuple[int, ...]], schedule: str, micro_batches: int = 4, world: int = 4) -> str:
        with pytest.raises(CannotPipeline) as caught:
            refuse_schedule(chain, equal_stages(chain, ranks), schedule, micro_batches, world)
        return str(caught.value)

    assert "there are gpipe, 1f1b" in refused([(0,), (1,)], "fastest")
    assert "rank 7" in refused([(0,), (7,)], "1f1b")
    assert "need 'interleaved'" in refused([(0,), (0,)], "1f1b")
    assert "in order" in refused([(1,), (0,)], "interleaved")
    assert "equally many" in refused([(0,), (1,), (0,)], "interleaved")
    assert "at least as many micro-batches" in refused([(0,), (1,)], "1f1b", micro_batches=1)
    assert "'embedding.weight'" in refused([(0,), (1,)], "zero-bubble")


def test_unequal_numbers_of_replicas_are_refused(chain: Chain) -> None:
    class Uneven:
        def __init__(self, plan: placewright.Plan) -> None:
            self.problem = plan.problem
            (first, second) = plan.stages
            self.stages = [first, ([1, 2], second[1], 0.0)]

    plan = plan_of(chain, [0] * 3 + [1] * (len(chain.atoms.atoms) - 3))
    with pytest.raises(CannotPipeline, match="stages on 1 and on 2 devices"):
        stage_plans(chain, Uneven(plan), [0, 1, 2])  # type: ignore[arg-type]


def test_a_step_fills_the_pipeline_and_runs_it_empty(chain: Chain) -> None:
    count = len(chain.atoms.atoms)
    plan = plan_of(chain, [0] * 3 + [1] * (count - 3))
    stages = [StagePlan(tuple(range(3)), (0,)), StagePlan(tuple(range(3, count)), (1,))]
    cost = 1 + 2 * 3 * 8 * 4
    order = [[(stage, "F", sample) for sample in range(5)] for stage in range(2)]
    first, second = 3 + cost, 2 * (count - 3) + cost
    assert predicted_step(plan, stages, order) == pytest.approx(first + 5 * second)


def stages_over(ranks: int, stages: int, rules: dict[str, object]) -> list[float]:
    """What each rank holds of a training pipeline whose stages go round the ranks; stage c of a rank keeps 100^c bytes
    of a micro-batch, so that two digits each are what the stages hold."""
    devices = [{"name": f"d{n}", "kind": "k", "space": f"rank{n % ranks}"} for n in range(stages)]
    ops, tensors = [], []
    for n in range(stages):
        ops += [{"name": f"f{n}", "time": [1]}, {"name": f"b{n}", "time": [1], "backward": True}]
        tensors.append({"from": f"f{n}", "to": [f"b{n}"], "bytes": 100 ** (n // ranks)})
    for n in range(stages - 1):
        tensors += [{"from": f"f{n}", "to": [f"f{n + 1}"]}, {"from": f"b{n + 1}", "to": [f"b{n}"]}]
    document = {
        "placewright": "problem",
        "version": 3,
        "objective": "throughput",
        "rules": {"memory": "peak", **rules},
        "kinds": [{"name": "k"}],
        "spaces": [{"name": f"rank{n}"} for n in range(ranks)],
        "devices": devices,
        "interconnect": {"kind": "links", "all": {"latency": 0}},
        "ops": ops,
        "tensors": tensors,
        "colocate": [[f"f{n}", f"b{n}"] for n in range(stages)],
    }
    plan = placewright.Problem.from_document(document).plan_for([n for n in range(stages) for _ in range(2)])
    return [float(row["peak"]) for row in plan.simulate()[:ranks]]


def held_by(actions: list[tuple[int, str]], ranks: int) -> float:
    """The same of a list of actions: the most that each stage has begun and not returned."""
    now: dict[int, int] = {}
    most: dict[int, int] = {}
    for stage, kind in actions:
        now[stage] = now.get(stage, 0) + (1 if kind == "F" else -1)
        most[stage] = max(most.get(stage, 0), now[stage])
    return float(sum(count * 100 ** (stage // ranks) for stage, count in most.items()))


@pytest.mark.parametrize(("ranks", "own", "micro_batches"), [(1, 2, 3), (2, 2, 2), (2, 3, 8), (3, 2, 5), (4, 2, 16)])
def test_interleaved_stages_hold_what_the_engine_holds(ranks: int, own: int, micro_batches: int) -> None:
    engine = object.__new__(ScheduleInterleaved1F1B)  # its order of actions needs no process group
    engine.pp_group_size, engine.n_local_stages, engine._n_microbatches = ranks, own, micro_batches
    engine.number_of_rounds = max(1, micro_batches // ranks)
    engine.microbatches_per_round = micro_batches // engine.number_of_rounds
    orders = [engine._calculate_single_rank_operations(rank) for rank in range(ranks)]
    expected = [
        held_by([(a.stage_index, a.computation_type.value) for a in order if a is not None], ranks) for order in orders
    ]
    assert stages_over(ranks, ranks * own, {"schedule": "interleaved", "micro_batches": micro_batches}) == expected


def test_gpipe_holds_all_micro_batches_and_1f1b_as_many_as_stages_follow() -> None:
    assert stages_over(3, 3, {"schedule": "gpipe", "micro_batches": 8}) == [8, 8, 8]
    assert stages_over(3, 3, {"schedule": "1f1b", "micro_batches": 8}) == [3, 2, 1]
    assert stages_over(3, 3, {"schedule": "1f1b", "micro_batches": 2}) == [2, 2, 1]
    assert stages_over(3, 3, {}) == [3, 2, 1]
