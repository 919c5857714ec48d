"""The trained model does what it was trained for: it knows this project's own files for what they are."""

import pathlib
import sys

import openvino

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "zoo"))
import trained  # noqa: E402

FILES = {
    "zoo/trained.py": "python",
    "zoo/make_architectures.py": "python",
    "src/zoo/zoo.cpp": "cpp",
    "src/planners/registry.cpp": "cpp",
    "CMakeLists.txt": "cmake",
    "README.md": "markdown",
    "scripts/setup": "shell",
    "examples/moirai/GoogLeNet.json": "json",
    "viewer/dist/page.html": "html",
    "zoo/architectures/gpt2.json.xz": "xz",
}


def main():
    compiled = openvino.compile_model(trained.static_model(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    wrong = 0
    for name, expected in FILES.items():
        label, score = trained.label_of(compiled([trained.model_input((ROOT / name).read_bytes())])[0])
        print(f"{name}: {label} ({score:.3f}), expected {expected}")
        wrong += label != expected
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
