import numpy as np
import pytest

from sfboost.datasets import Dataset, Domain


def domain(name, n=3):
    return Domain(name, np.zeros((n, 2)), np.arange(n) % 2)


def test_pooled_rows_remember_their_domain():
    made = Dataset("made", (domain("a", 2), domain("b", 3)), train=("a", "b"), test=())
    X, y, sample_domain = made.pooled("train")
    assert X.shape == (5, 2)
    assert sample_domain.tolist() == ["a", "a", "b", "b", "b"]
    assert y.tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("domains", "test", "sentence"),
    [
        (["a"], ["a"], "both training and test"),
        (["a"], ["b"], r"names \['b'\] as test"),
        (["a", "a"], [], "two domains of one name"),
    ],
)
def test_what_no_data_set_can_be_is_refused(domains, test, sentence):
    with pytest.raises(ValueError, match=sentence):
        Dataset("made", tuple(map(domain, domains)), train=("a",), test=tuple(test))


def test_rows_and_labels_must_match():
    with pytest.raises(ValueError, match="3 rows of X and 2 labels"):
        Domain("a", np.zeros((3, 1)), np.zeros(2))


def test_an_unknown_domain_is_answered_with_the_known_ones():
    with pytest.raises(KeyError, match="it has a, b"):
        Dataset("made", (domain("a"), domain("b")), train=("a",), test=("b",)).domain("c")


def test_an_empty_role_and_an_unknown_one_are_explained():
    made = Dataset("made", (domain("a"),), train=("a",), test=())
    with pytest.raises(ValueError, match="no domain in this role"):
        made.pooled("test")
    with pytest.raises(ValueError, match="the roles are train"):
        made.pooled("tset")


def test_other_roles_leave_the_first_data_set_alone():
    made = Dataset("made", (domain("a"), domain("b")), train=("a",), test=("b",))
    turned = made.with_roles(train=["b"], test=["a"])
    assert (made.train, turned.train) == (("a",), ("b",))
    assert turned.domain("a") is made.domain("a")
