"""What the ranks of test_distributed.py do: `torchrun distributed_worker.py SCENARIO FOLDER`. A rank that finds
something wrong ends with an exception, and so does the job."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import placewright

if "PLACEWRIGHT_NATIVE" in os.environ:
    placewright.__path__.append(os.environ["PLACEWRIGHT_NATIVE"])

from models import branches
from placewright.torch.chain import Chain, chain_of
from placewright.torch.distributed import RankPipeline, StagePlan, pipeline, plan_together
from placewright.torch.rank_costs import measure_ranks

MICRO_BATCHES = 4


class TiedWithSkips(nn.Module):
    """The embedding is also the last layer, and its output is read again by every later layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(6))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        first = x = self.embedding(tokens)
        for layer in self.layers:
            x = torch.tanh(layer(x)) + first
        return x @ self.embedding.weight.t()


def transformer() -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    return nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)


def equal_stages(chain: Chain, ranks: Sequence[tuple[int, ...]]) -> list[StagePlan]:
    """As many atoms in each stage, more or less; every stage with its ranks."""
    count, parts = len(chain.atoms.atoms), len(ranks)
    cuts = [round(k * count / parts) for k in range(parts + 1)]
    return [StagePlan(tuple(range(cuts[k], cuts[k + 1])), ranks[k]) for k in range(parts)]


def expect_equal(pipe: RankPipeline, model: nn.Module, batch: torch.Tensor, target: torch.Tensor) -> None:
    """Outputs and gradients of the pipeline are those of the model, which the other stages' weights are still in."""
    loss = nn.MSELoss()
    wanted = model(batch)
    loss(wanted, target).backward()
    gradients = {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
    model.zero_grad()
    size = batch.shape[0] // pipe.replicas
    part = wanted.detach()[pipe.replica * size : (pipe.replica + 1) * size]
    for outputs in (pipe.run(batch), pipe.step(batch, target=target)[0]):
        assert (outputs is not None) == pipe.is_last
        if outputs is not None:
            torch.testing.assert_close(outputs, part)
    for name, value in pipe.named_parameters().items():
        torch.testing.assert_close(value.grad, gradients[name], msg=lambda text, name=name: f"{name}: {text}")
    assert bool(pipe.named_parameters()) == bool(pipe.mine)
    model.zero_grad()


def by_hand(model: nn.Module, example: torch.Tensor, ranks: Sequence[tuple[int, ...]], schedule: str) -> RankPipeline:
    chain = chain_of(model, (example,))
    stages = equal_stages(chain, ranks)
    return RankPipeline(model, chain, stages, schedule, MICRO_BATCHES, nn.MSELoss(), f"core {dist.get_rank()}")


def planned(folder: Path) -> None:
    """Measured, planned and run on the ranks that there are."""
    model, example = transformer(), torch.randn(2, 5, 16)
    for schedule in ("gpipe", "1f1b"):
        problem = measure_ranks(
            model, (example,), micro_batches=MICRO_BATCHES, training=True, schedule=schedule, memory=1e9, seconds=0.1
        )
        assert len(problem.device_names) == dist.get_world_size()
        plan = plan_together(problem, time_limit=2)
        assert plan.check() == []
        torch.manual_seed(1)
        batch, target = torch.randn(8, 5, 16), torch.randn(8, 5, 16)
        with pipeline(
            model, (example,), plan, micro_batches=MICRO_BATCHES, schedule=schedule, loss=nn.MSELoss()
        ) as pipe:
            expect_equal(pipe, model, batch, target)
            if pipe.mine:
                assert pipe.predicted is not None and pipe.predicted >= MICRO_BATCHES * plan.value * (1 - 1e-9)


def every_cut(folder: Path) -> None:
    """Two stages, cut behind each atom: gradients come in the layout that the next stage's ops give them."""
    model, example = transformer(), torch.randn(1, 5, 16)
    batch, target = torch.randn(4, 5, 16), torch.randn(4, 5, 16)
    chain = chain_of(model, (example,))
    count = len(chain.atoms.atoms)
    for cut in range(1, count):
        stages = [StagePlan(tuple(range(cut)), (0,)), StagePlan(tuple(range(cut, count)), (1,))]
        with RankPipeline(model, chain, stages, "1f1b", MICRO_BATCHES, nn.MSELoss(), f"cut {cut}") as pipe:
            expect_equal(pipe, model, batch, target)


def by_hand_on_four(folder: Path) -> None:
    """Stages on ranks in any order, replicas, several stages on a rank; tied weights, skips, branches."""
    torch.manual_seed(0)
    tied = TiedWithSkips()
    tokens, target = torch.randint(0, 10, (8, 3)), torch.randn(8, 3, 10)
    for ranks, schedule in (
        ([(2,), (0,), (3,), (1,)], "1f1b"),
        ([(0, 1), (2, 3)], "gpipe"),
        ([(1,), (3,), (1,), (3,)], "interleaved"),
    ):
        with by_hand(tied, tokens[: 8 // MICRO_BATCHES // len(ranks[0])], ranks, schedule) as pipe:
            expect_equal(pipe, tied, tokens, target)
    cnn = branches()[0]
    images = torch.randn(4, 3, 16, 16)
    with by_hand(cnn, images[:1], [(0,), (1,), (2,), (3,)], "1f1b") as pipe:
        expect_equal(pipe, cnn, images, torch.randn(4, 10, generator=torch.Generator().manual_seed(2)))
    with by_hand(cnn, images[:1], [(0,), (2,), (0,), (2,)], "zero-bubble") as pipe:
        expect_equal(pipe, cnn, images, torch.randn(4, 10, generator=torch.Generator().manual_seed(2)))


def on_one_gpu(folder: Path) -> None:
    """Both ranks use the first GPU. gloo, which sends tensors of the host only, hands over."""
    model, example = transformer().cuda(), torch.randn(1, 5, 16, device="cuda")
    problem = measure_ranks(model, (example,), micro_batches=MICRO_BATCHES, training=True, seconds=0.1)
    plan_together(problem, time_limit=2)  # one rank is enough for so small a model
    batch, target = torch.randn(4, 5, 16).cuda(), torch.randn(4, 5, 16).cuda()
    for ranks in ([(0,), (1,)], [(1,), (0,)]):
        with by_hand(model, example, ranks, "1f1b") as pipe:
            expect_equal(pipe, model, batch, target)


def dying(folder: Path) -> None:
    """Rank 1 dies in the third step; the others would wait for it for minutes."""
    model = transformer()
    with by_hand(model, torch.randn(1, 5, 16), [(0,), (1,)], "1f1b") as pipe:
        for step in range(100):
            if step == 3 and dist.get_rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            pipe.step(torch.randn(4, 5, 16), target=torch.randn(4, 5, 16))


def left_out(folder: Path) -> None:
    """A plan that leaves rank 1 out: all ranks do the same, and go on from the checkpoint."""
    for done in (0, 2):
        with by_hand(transformer(), torch.randn(1, 5, 16), [(0,)], "1f1b") as pipe:
            optimizer = torch.optim.Adam(pipe.parameters(), 1e-2)
            assert pipe.resume(folder / "checkpoint", optimizer) == done
            for step in range(done, done + 2):
                optimizer.zero_grad()
                pipe.step(torch.randn(4, 5, 16), target=torch.randn(4, 5, 16))
                optimizer.step()
                pipe.save(folder / "checkpoint", optimizer, step + 1)


def training(folder: Path) -> None:
    """Six steps with a checkpoint after each. Rank 0 dies before the fourth step where the folder asks for it, once for
    each job; the weights at the end are written."""
    restarted = os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"
    model = transformer()
    with by_hand(model, torch.randn(1, 5, 16), [(0,), (1,)], "1f1b") as pipe:
        optimizer = torch.optim.Adam(pipe.parameters(), 1e-2)
        done = pipe.resume(folder / "checkpoint", optimizer)
        for step in range(done, 6):
            if step == 3 and dist.get_rank() == 0 and not restarted and (folder / "die").exists():
                os.kill(os.getpid(), signal.SIGKILL)
            generator = torch.Generator().manual_seed(step)
            batch = torch.randn(4, 5, 16, generator=generator)
            optimizer.zero_grad()
            pipe.step(batch, target=batch.flip(0))
            optimizer.step()
            pipe.save(folder / "checkpoint", optimizer, step + 1)
        assert done == (3 if restarted or (folder / "died").exists() else 0)
        weights = {name: value.detach() for name, value in pipe.named_parameters().items()}
        torch.save(weights, folder / f"weights-{dist.get_rank()}.pt")


SCENARIOS: dict[str, Callable[[Path], None]] = {
    scenario.__name__: scenario
    for scenario in (planned, every_cut, by_hand_on_four, on_one_gpu, dying, left_out, training)
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    SCENARIOS[sys.argv[1]](Path(sys.argv[2]))
    dist.destroy_process_group()
