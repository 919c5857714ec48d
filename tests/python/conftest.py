"""Makes the package importable from the source tree, with the extension module from the build folder that
PLACEWRIGHT_NATIVE names. An installed package is tested instead where PLACEWRIGHT_INSTALLED is set."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if "PLACEWRIGHT_INSTALLED" not in os.environ:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
    if "PLACEWRIGHT_NATIVE" in os.environ:
        import placewright

        placewright.__path__.append(os.environ["PLACEWRIGHT_NATIVE"])


@pytest.fixture(autouse=True)
def without_gradients(request: pytest.FixtureRequest) -> Iterator[None]:
    """Models run as they do for inference, unless a test asks for gradients itself."""
    try:
        import torch
    except ImportError:
        yield
        return
    with torch.set_grad_enabled(request.node.get_closest_marker("gradients") is not None):
        yield


@pytest.fixture(autouse=True)
def profiles_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test measures for itself."""
    monkeypatch.setenv("PLACEWRIGHT_CACHE", str(tmp_path_factory.mktemp("profiles")))
