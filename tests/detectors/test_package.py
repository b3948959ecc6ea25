import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import detectors

ROOT = Path(detectors.__file__).parents[1]
MODULES = sorted(f"detectors.{module.name}" for module in pkgutil.iter_modules(detectors.__path__))

# Without site-packages: a third-party import would fail, a foreign module of ours would show.
LOADED = """
import sys
sys.path.insert(0, sys.argv[1])
import detectors
print(*sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)))
"""


def test_importing_the_package_loads_nothing_beside_the_standard_library():
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOADED, str(ROOT)],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    assert run.stdout.split() == ["__main__", "detectors"]


def test_all_public_names_exist():
    assert sorted(set(detectors.__all__)) == sorted(detectors.__all__)
    assert all(hasattr(detectors, name) for name in detectors.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_docstrings_are_true(module):
    results = doctest.testmod(importlib.import_module(module))

    assert results.failed == 0


@pytest.mark.parametrize(
    "name",
    ["grounding_failure", "validator_failures", "crashes", "hitl_timeout", "hitl_rejection_spike"],
)
def test_every_detector_shows_a_detection(name):
    examples = doctest.DocTestFinder().find(importlib.import_module(f"detectors.{name}").detect)

    assert any("detect(" in example.source for found in examples for example in found.examples)
