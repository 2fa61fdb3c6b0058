"""The optional comparison with skada: it keeps the contract; settings of scikit-learn stay as they were."""

import subprocess
import sys
from importlib.util import find_spec

import pytest
import sklearn

from sfboost_lab.baselines.harness import domain_rows, fit
from sfboost_lab.baselines.skada_methods import METHODS, Skada
from sfboost_lab.testing import check_trainer, example


def test_an_unknown_method_is_answered_with_the_list():
    with pytest.raises(ValueError, match=r"Got method='Coral'; there are CORAL"):
        fit(Skada("Coral"), example(), domain_rows(example().domain("test"), "unlabelled", 0))


def test_without_skada_the_extra_is_named():
    code = (
        "import sys; sys.modules['skada'] = None\n"
        "from sfboost_lab.baselines.skada_methods import Skada\n"
        "from sfboost_lab.baselines.harness import domain_rows, fit\n"
        "from sfboost_lab.testing import example\n"
        "try: fit(Skada(), example(), domain_rows(example().domain('test'), 'unlabelled', 0))\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "This comparison needs skada: pip install skada."


if find_spec("skada"):  # an extra of its own, outside "all": no test is skipped for it

    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_keeps_the_contract(method):
        before = sklearn.get_config()
        check_trainer(Skada(method))
        assert sklearn.get_config() == before
