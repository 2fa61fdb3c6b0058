"""The same numbers on another processor: OpenBLAS adds up in another order there, and no test may mind."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

TESTS = Path(__file__).parent
#: Rooms of mathematics; their quick tests are run under each kernel.
ROOMS = ("marginal", "calibration", "heads", "adaptation", "diagnostics")
KERNELS = ("Haswell", "SkylakeX")

ASKED = """
import numpy as np, sys
rng = np.random.default_rng(0)
a, b = rng.normal(size=(300, 70)), rng.normal(size=(70, 33))
np.save(sys.argv[1], a @ b)
"""


def under(kernel, *arguments):
    """Run Python with a kernel of OpenBLAS, or, where numpy uses another library, without numpy's own."""
    if any(info["internal_api"] == "openblas" for info in threadpool_info()):
        chosen = {"OPENBLAS_CORETYPE": kernel}
    else:
        core = np._core._multiarray_umath
        fast = [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]
        chosen = {"NPY_DISABLE_CPU_FEATURES": " ".join(fast)} if kernel == KERNELS[0] else {}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, env=os.environ | chosen, cwd=TESTS.parent, capture_output=True, text=True, check=False
    )
    if done.returncode < 0:
        pytest.skip(f"this processor has no {kernel}")
    return done


def test_kernels_differ_in_the_last_bits_alone(tmp_path):
    found = []
    for kernel in KERNELS:
        under(kernel, "-c", ASKED, tmp_path / f"{kernel}.npy").check_returncode()
        found.append(np.load(tmp_path / f"{kernel}.npy"))
    np.testing.assert_allclose(*found, atol=1e-12)
    if np.array_equal(*found):
        pytest.skip("this processor has one of the kernels only")


@pytest.mark.long
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_quick_tests_of_the_mathematics_pass_with_every_kernel(kernel):
    options = ("-q", "-p", "no:cacheprovider", "-m", "not long and not data")
    done = under(kernel, "-m", "pytest", *options, *(TESTS / room for room in ROOMS))
    assert done.returncode == 0, done.stdout[-4000:]
