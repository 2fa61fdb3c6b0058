import pytest

from sfboost.frames.roles import Roles, assign, require_columns

COLUMNS = ["id", "sick", "town", "age", "sex", "ca", "note"]


def make(**changes):
    options = {"target": "sick", "domain": "town", "stable": "age, sex", "unstable": None, "id": "id"}
    return assign(COLUMNS, **(options | changes))


def test_columns_that_are_not_named_are_of_the_other_kind():
    assert make(drop="note").unstable == ("ca",)
    assert make(stable=None, unstable="ca,note").stable == ("age", "sex")


def test_a_pattern_names_every_column_that_matches():
    assert make(stable="a*,s?x", unstable="*o*").unstable == ("note",)
    with pytest.raises(ValueError, match=r"no column 'z\*'"):
        make(stable="z*")


def test_auto_makes_every_other_column_a_candidate():
    roles = make(stable="auto", unstable="ca")
    assert roles.search
    assert roles.stable == ("age", "sex", "note")


def test_a_column_named_auto_is_a_column():
    roles = assign(["sick", "town", "auto", "x"], target="sick", domain="town", stable="auto", unstable=None)
    assert not roles.search
    assert roles.stable == ("auto",)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"stable": "age,ca", "unstable": "ca"}, "'ca' is named by --stable and by --unstable"),
        ({"stable": "sick"}, "'sick' is named by --target and by --stable"),
        ({"stable": None}, "Which features can be trusted"),
        ({"stable": "Age"}, "no column 'Age' .did you mean 'age'"),
        ({"stable": "age,sex,ca,note"}, "nothing to adapt"),
        ({"target": "disease"}, "no column 'disease'.* It has: id, sick"),
    ],
)
def test_a_contradiction_is_refused_with_a_sentence(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**changes)


def test_roles_survive_a_round_trip():
    roles = make()
    assert Roles.from_dict(roles.to_dict()) == roles


def test_a_blank_around_a_name_is_found():
    with pytest.raises(ValueError, match="did you mean ' age '"):
        require_columns([" age ", "x"], ["age"])
