import numpy as np
import pytest

from sfboost.datasets import colored_digits


def test_eleven_test_domains_from_agreement_one_to_zero():
    digits = colored_digits()
    assert [digits.domain(name).agreement for name in digits.test] == [k / 10 for k in range(10, -1, -1)]
    assert [digits.domain(name).agreement for name in digits.train] == [0.9, 0.8]


def test_the_color_agrees_with_the_noisy_label_as_often_as_asked():
    digits = colored_digits()
    for domain in digits.domains:
        color = domain.X.sum(axis=(2, 3)).argmax(axis=1)
        error = 4 * np.sqrt(domain.agreement * (1 - domain.agreement) / len(domain))
        assert np.mean(color == domain.y) == pytest.approx(domain.agreement, abs=error + 1e-12)


def test_a_quarter_of_the_labels_is_noise():
    clean = colored_digits(label_noise=0.0).pooled("test")[1]
    noisy = colored_digits().pooled("test")[1]
    assert np.mean(clean != noisy) == pytest.approx(0.25, abs=4 * np.sqrt(0.1875 / len(clean)))


def test_exactly_one_channel_holds_the_digit():
    domain = colored_digits().domain("train-0.8")
    assert domain.X.shape == (500, 2, 8, 8)
    assert domain.X.dtype == np.float32
    np.testing.assert_array_equal((domain.X.sum(axis=(2, 3)) > 0).sum(axis=1), 1)


def test_same_seed_same_bytes_and_the_global_state_is_untouched():
    before = repr(np.random.get_state())
    first, second = colored_digits(random_state=3), colored_digits(random_state=3)
    for a, b in zip(first.domains, second.domains, strict=True):
        assert a.X.tobytes() == b.X.tobytes()
        assert a.y.tobytes() == b.y.tobytes()
    assert repr(np.random.get_state()) == before


def test_noise_and_colors_have_their_own_seed():
    one, other = colored_digits(color_state=1), colored_digits(color_state=2)
    first, second = one.domain("test-0.5"), other.domain("test-0.5")
    np.testing.assert_array_equal(first.X.sum(axis=1), second.X.sum(axis=1))
    assert (first.y != second.y).any()


def test_the_table_holds_grey_pixels_then_colors():
    table = colored_digits(view="table")
    X, y, sample_domain = table.pooled("train")
    assert X.shape == (1000, 66)
    assert y.shape == sample_domain.shape == (1000,)
    assert table.stable_features == list(range(64))
    np.testing.assert_array_equal(X[:, table.unstable_features].sum(axis=1), 1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"agreements": (1.2,)}, "agreement=1.2"),
        ({"label_noise": -1}, "label_noise=-1"),
        ({"view": "sound"}, "'images' and 'table'"),
        ({"n_test": 5000}, "Choose smaller ones"),
        ({"random_state": -1}, "whole number"),
    ],
)
def test_a_wrong_option_is_answered_by_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        colored_digits(**options)
