import pytest

from sfboost_lab.datasets import find, load, names


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(KeyError, match="Did you mean 'colored_digits'"):
        load("coloured_digits")


def test_every_name_in_the_list_has_a_loader():
    assert len(set(names())) == len(names())
    for name in names():
        assert callable(find(name).loading_function())


def test_options_are_checked_before_anything_is_loaded():
    with pytest.raises(ValueError, match=r"no option \['n_row'\]; it has train, validate, test"):
        load("ac", n_row=3)
    with pytest.raises(ValueError, match="needs the option source, target, domain"):
        load("table")


def test_the_options_of_a_family_are_those_of_its_function():
    assert set(find("gaussian").options()) >= {"n_rows", "leak", "violation", "informativeness", "prior"}
