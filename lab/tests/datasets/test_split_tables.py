"""GUSTO, IMPACT, TV16 and eICU, on tiny files in their real formats."""

import pytest

from sfboost.frames import Encoder, EncodingWarning
from sfboost_lab.datasets import load
from sfboost_lab.datasets.eicu import SPLIT as EICU

pytest.importorskip("pandas", reason="tables need pandas: pip install 'sfboost[app]'")
pytestmark = pytest.mark.usefixtures("no_data")


def write(folder, name, text):
    path = folder / "tables" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return folder


@pytest.fixture
def impact(tmp_path):
    return write(
        tmp_path,
        "impact/impact.csv",
        "name,type,age,motor_score,pupil,ct,hypox,hypots,tsah,edh,mort\n"
        "TINT,RCT,53,5/6,Both,I/II,0,1,0,0,1\n"
        "TINT,RCT,14,4,None,I/II,0,0,1,0,0\n"
        "UK4,OBS,30,1/2,One,III,1,0,0,0,1\n"
        "UK4,OBS,60,3,,IV/V,0,0,0,1,0\n",
    )


def test_studies_are_domains_and_other_columns_are_left_out(impact):
    made = load("impact", data_dir=impact, test="UK4")
    assert (made.train, made.test) == (("TINT",), ("UK4",))
    assert made.stable_features == ["age", "motor_score", "pupil"]
    assert "type" not in made.feature_names
    assert made.domain("TINT").y.tolist() == [1, 0]


def test_a_pupil_none_is_a_category_and_an_empty_cell_is_missing(impact):
    made = load("impact", data_dir=impact, test="UK4")
    assert made.domain("TINT").X["pupil"].tolist() == ["Both", "None"]
    assert made.domain("UK4").X["pupil"].isna().tolist() == [False, True]
    with pytest.warns(EncodingWarning):
        encoded = load("impact", data_dir=impact, test="UK4", encoded=True)
    assert "pupil=None" in encoded.feature_names


def test_codes_that_look_like_numbers_in_training_are_codes_elsewhere(tmp_path):
    """In some draws of few studies half of the motor scores are numbers, and the new study has '1/2'."""
    head = "name,age,motor_score,pupil,ct,hypox,hypots,tsah,edh,mort\n"
    rows = {"TINT": ("3", "4", "4"), "UK4": ("1/2", "3", "5/6")}
    text = "".join(
        f"{name},5{i},{score},Both,III,0,0,0,0,{i % 2}\n"
        for name, scores in rows.items()
        for i, score in enumerate(scores)
    )
    made = load("impact", data_dir=write(tmp_path, "impact/impact.csv", head + text), test="UK4")
    encoder = Encoder.fit(made.pooled("train")[0], ["motor_score"])
    assert encoder.names == ("motor_score=3",)
    # What training never saw is as often a 3 as there.
    assert encoder.encode(made.domain("UK4").X).ravel().tolist() == [1 / 3, 1.0, 1 / 3]


def test_a_file_that_lacks_a_column_is_named(tmp_path):
    write(tmp_path, "gusto/gusto.csv", "day30,regl\n0,1\n")
    with pytest.raises(ValueError, match=r"gusto\.csv has no column \['age', 'sex'"):
        load("gusto", data_dir=tmp_path)


def test_the_largest_states_come_first_and_the_others_not_at_all(tmp_path):
    head = (
        "rownames,uid,state,votetrump,age,female,collegeed,racef,famincr,ideo,pid7na,bornagain,religimp,"
        "churchatd,prayerfreq,angryracism,whiteadv,fearraces,racerare\n"
    )
    states = ["Ohio", "Texas", "Iowa", "Texas", "Ohio", "Texas"]
    rows = [f"{i},{i},{s},{i % 2}.0,40,1,0,White,,3,4,0,3,1,3,2,3,1,3" for i, s in enumerate(states)]
    made = load(
        "tv16", data_dir=write(tmp_path, "tv16/tv16.csv", head + "\n".join(rows)), states=2, test="Ohio"
    )
    assert {d.name: d.y.tolist() for d in made.domains} == {"Texas": [1, 1, 1], "Ohio": [0, 0]}
    assert made.domain("Ohio").X["famincr"].isna().all()


@pytest.fixture
def stays(tmp_path):
    """Three stays with a score, two versions of it each; hospital 60 has no region."""
    scores = [(1, "ALIVE"), (2, "EXPIRED"), (3, "ALIVE")]
    lines = [f"{stay},{version},{end}" for stay, end in scores for version in ("IV", "IVa")]
    write(
        tmp_path,
        "eicu_demo/apachePatientResult.csv",
        "\n".join(["patientunitstayid,apacheversion,actualhospitalmortality", *lines]),
    )
    write(
        tmp_path,
        "eicu_demo/patient.csv",
        "patientunitstayid,hospitalid,gender,age,unittype,unitadmitsource\n"
        "1,56,Female,87,MICU,Floor\n2,58,Male,> 89,MICU,Floor\n"
        "3,60,Male,40,SICU,Floor\n4,56,Male,41,SICU,Floor\n",
    )
    write(tmp_path, "eicu_demo/hospital.csv", "hospitalid,region\n56,Midwest\n58,South\n60,\n")
    for name in ("apacheApsVar", "apachePredVar"):
        columns = [c for c in (*EICU.stable, *EICU.unstable) if c not in ("age", "gender", "region")]
        columns = [c for c in columns if not c.startswith("unit")]
        rows = [",".join([str(stay), *(["-1"] * len(columns))]) for stay in (1, 2, 3, 4)]
        write(
            tmp_path, f"eicu_demo/{name}.csv", "\n".join([",".join(["patientunitstayid", *columns]), *rows])
        )
    return tmp_path


def test_each_stay_with_a_score_is_one_row_of_its_region(stays):
    made = load("eicu", data_dir=stays, test="South")
    assert {d.name: [made.classes[k] for k in d.y] for d in made.domains} == {
        "Midwest": ["no"],
        "South": ["yes"],
    }
    assert made.domain("South").X["age"].tolist() == [90.0]
    assert made.domain("South").X["sodium"].isna().all()  # -1: nobody measured it
    assert made.domain("South").X["diabetes"].tolist() == [-1.0]


def test_by_hospital_no_stay_is_left_out(stays):
    assert load("eicu", data_dir=stays, by="hospital").domain_names == ("56", "58", "60")
    with pytest.raises(ValueError, match="by region or by hospital"):
        load("eicu", data_dir=stays, by="ward")
