import numpy as np
import pytest

from sfboost.marginal import as_probability_matrix


def test_a_vector_is_the_probability_of_the_second_class():
    np.testing.assert_allclose(as_probability_matrix(np.array([0.2, 0.5])), [[0.8, 0.2], [0.5, 0.5]])
    np.testing.assert_allclose(as_probability_matrix([[0.2], [0.5]]), [[0.8, 0.2], [0.5, 0.5]])


def test_float32_rounding_is_forgiven_and_removed():
    rows = np.random.default_rng(0).dirichlet(np.ones(7), size=50).astype(np.float32)
    assert abs(as_probability_matrix(rows).sum(axis=1) - 1).max() < 1e-15


def test_the_input_is_not_written_to():
    rows = np.array([[0.3, 0.7]])
    rows.setflags(write=False)
    as_probability_matrix(rows)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ([[0.2, np.nan]], "NaN or infinity in row 0"),
        ([0.5, 1.5], "outside"),
        ([[0.5, 0.4]], "sum to 1 in every row; row 0 sums to 0.9"),
        (np.empty((0, 2)), "no rows"),
        (np.zeros((2, 2, 2)), "shape"),
        (["a", "b"], "must be numbers"),
        ([[-2.0, 3.0]], "probabilities, not logits"),
    ],
)
def test_bad_probabilities_get_a_sentence(bad, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_probability_matrix(bad)


def test_the_number_of_classes_is_checked():
    with pytest.raises(ValueError, match="3 columns but 2 classes"):
        as_probability_matrix([[0.2, 0.3, 0.5]], n_classes=2)
