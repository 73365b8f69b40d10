"""GLUE: every published folder is read as it comes, with its labels, its parts and the score it demands."""

from collections import Counter
from pathlib import Path

import pytest

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.glue import GLUE, Unlabeled, find_glue_task, read_glue
from regard.data.readers.labeled import LabeledText
from regard.errors import DataError
from tests.data.glue_folders import write_glue


def read(folder: Path, part="training", task=None, on_error="stop", report=None) -> list[LabeledText]:
    found = find_glue_task(folder, task)
    return list(read_glue(folder, found, part, on_error=on_error, report=report or BadRows()))


def failure(folder: Path, part="training", task=None, on_error="stop") -> str:
    with pytest.raises(DataError) as caught:
        read(folder, part, task, on_error)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("key", GLUE)
def test_every_task_is_read_from_its_published_layout(tmp_path, key):
    task = GLUE[key]
    folder = write_glue(tmp_path / task.name, key, rows=12)
    assert find_glue_task(folder) is task
    for part in task.parts:
        rows = read(folder, part)
        assert len(rows) == (12 if part == "training" else 6)
        assert {row.second is None for row in rows} == {task.second is None}
        labels = {row.label for row in rows}
        if part in task.unlabeled:
            assert labels == {None}
        elif task.labels is None:
            assert labels == {f"{score}.000" for score in range(6)}
        else:
            assert labels == set(task.labels)


def test_the_rows_are_those_of_the_published_files(tmp_path):
    """Lines as they stand in the published files, written out here by hand."""
    cola = tmp_path / "CoLA"
    cola.mkdir()
    (cola / "train.tsv").write_text('gj04\t1\t\tThey said "go.\ngj04\t0\t*\tThey drank the pub.\n')
    assert read(cola) == [LabeledText('They said "go.', None, "1"), LabeledText("They drank the pub.", None, "0")]
    sts = tmp_path / "sts-b"
    sts.mkdir()
    (sts / "train.tsv").write_text(
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tmain-captions\tMSRvid\t2012test\t0001\tnone\tnone\tA plane takes off.\tAn air plane takes off.\t5.000\n"
    )
    assert read(sts) == [LabeledText("A plane takes off.", "An air plane takes off.", "5.000")]
    qnli = tmp_path / "QNLI"
    qnli.mkdir()
    (qnli / "train.tsv").write_text("index\tquestion\tsentence\tlabel\n0\tWho?\tHe.\tnot_entailment\n")
    assert read(qnli) == [LabeledText("Who?", "He.", "not_entailment")]
    ax = tmp_path / "diagnostics"
    ax.mkdir()
    (ax / "diagnostic-full.tsv").write_text(
        "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel\n"
        "\t\tNegation\t\tArtificial\tThe cat sat.\tThe cat did not sit.\tcontradiction\n"
    )
    assert read(ax, "dev") == [LabeledText("The cat sat.", "The cat did not sit.", "contradiction")]


def test_the_scores_a_task_demands():
    wanted = {
        "cola": ("matthews",),
        "sst2": ("accuracy",),
        "mrpc": ("f1", "accuracy"),
        "stsb": ("pearson", "spearman"),
        "qqp": ("f1", "accuracy"),
        "mnli": ("accuracy",),
        "qnli": ("accuracy",),
        "rte": ("accuracy",),
        "wnli": ("accuracy",),
        "ax": ("matthews",),
    }
    assert {key: task.metrics for key, task in GLUE.items()} == wanted
    assert list(GLUE["mnli"].validation) == ["matched", "mismatched"]
    assert all(GLUE[key].labels[1] == "1" for key in ("mrpc", "qqp", "cola"))


def test_every_task_can_be_learned_and_both_sides_differ(tmp_path):
    for key, task in GLUE.items():
        folder = write_glue(tmp_path / task.name, key, rows=40)
        part = "training" if task.training else "dev"
        rows = read(folder, part)
        counts = Counter(row.label for row in rows)
        assert max(counts.values()) - min(counts.values()) <= 1
        assert len({(row.text, row.second) for row in rows}) > 5


def test_a_folder_is_the_same_each_time_and_another_seed_is_another(tmp_path):
    one, same, other = (write_glue(tmp_path / str(i) / "RTE", "rte", seed=seed) for i, seed in enumerate((0, 0, 1)))
    assert (one / "train.tsv").read_bytes() == (same / "train.tsv").read_bytes() != (other / "train.tsv").read_bytes()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *[("sst-2", "sst2"), ("SST2", "sst2"), ("SST", "sst2"), ("MRPC", "mrpc"), ("STS-B", "stsb"), ("sts_b", "stsb")],
        *[("CoLA", "cola"), ("diagnostic", "ax"), ("ax", "ax"), ("MNLI", "mnli")],
    ],
)
def test_folders_are_known_by_their_names(name, key):
    assert find_glue_task(Path("glue_data") / name) is GLUE[key]
    assert find_glue_task(Path("elsewhere"), name) is GLUE[key]


def test_an_unknown_name_lists_the_tasks():
    with pytest.raises(DataError, match="my-data: .*not a GLUE task, wanted CoLA, SST-2, MRPC.*data.task=…"):
        find_glue_task(Path("my-data"))
    with pytest.raises(DataError, match="data.task=sst3 is not a GLUE task"):
        find_glue_task(Path("sst2"), "sst3")


def test_rows_nobody_agreed_on_are_left_out_and_counted_without_being_bad(tmp_path):
    folder = write_glue(tmp_path / "MNLI", "mnli", rows=12)
    assert "\t-\n" in (folder / "dev_matched.tsv").read_text()
    report = BadRows()
    assert len(read(folder, "matched", report=report)) == 6
    assert report.count == 0
    marked = (folder / "dev_matched.tsv").read_text().count("\t-\n")
    assert report.summary() == [f"left out: {marked} with the label '-', without agreement between annotators"]


def test_the_label_of_no_agreement_is_bad_where_the_task_has_none(tmp_path):
    folder = write_glue(tmp_path / "SST-2", "sst2", rows=12)
    (folder / "dev.tsv").write_text("sentence\tlabel\nfine\t1\nso so\t-\n")
    with pytest.raises(DataError, match=r"dev.tsv:3: wrong label: got '-', wanted 0 or 1"):
        read(folder, "dev")


def test_mrpc_as_microsoft_published_it(tmp_path):
    made = write_glue(tmp_path / "made", "mrpc", rows=10)
    folder = tmp_path / "MRPC"
    folder.mkdir()
    (made / "train.tsv").rename(folder / "msr_paraphrase_train.txt")
    (made / "dev.tsv").rename(folder / "msr_paraphrase_test.txt")
    assert [len(read(folder, part)) for part in ("training", "dev")] == [10, 5]


def test_layouts_of_mrpc_are_never_mixed(tmp_path):
    """dev.tsv is a part of msr_paraphrase_train.txt: training on that would see what is held out."""
    folder = write_glue(tmp_path / "MRPC", "mrpc", rows=10)
    (folder / "train.tsv").rename(folder / "msr_paraphrase_train.txt")
    assert "has no train.tsv or msr_paraphrase_train.txt" in failure(folder)
    assert len(read(folder, "dev")) == 5


def test_missing_things_are_named(tmp_path):
    assert "no such folder" in failure(tmp_path / "RTE")
    (tmp_path / "WNLI").write_text("")
    assert "is a file" in failure(tmp_path / "WNLI")
    (tmp_path / "RTE").mkdir()
    assert "has no train.tsv, the training part of RTE" in failure(tmp_path / "RTE")
    assert "has no test.tsv, the part of RTE without labels" in failure(tmp_path / "RTE", "test")
    assert "RTE has no part 'matched', only training, dev, test" in failure(tmp_path / "RTE", "matched")
    assert "AX has no part 'training', only dev, test" in failure(tmp_path, task="ax")
    write_glue(tmp_path / "RTE", "sst2")
    assert "train.tsv: has no column sentence1, sentence2, only sentence, label" in failure(tmp_path / "RTE")


@pytest.mark.parametrize(
    ("key", "line", "reason"),
    [
        ("rte", "9\ta\tb\tneutral", "wrong label: got 'neutral', wanted entailment or not_entailment"),
        ("rte", "9\ta\tb\t", "empty label"),
        ("rte", "9\ta\t\tentailment", "empty text: the second text is empty"),
        ("qqp", "9\t1\t2\ta", "wrong columns: got 4, wanted 6"),
        ("cola", "gj04\t2\t\tA.", "wrong label: got '2', wanted 0 or 1"),
        ("stsb", "\t\t\t\t\t\t\ta\tb\t5.1", "wrong label: got '5.1', wanted a score from 0 to 5"),
        ("stsb", "\t\t\t\t\t\t\ta\tb\tnan", "wrong label: got 'nan'"),
        ("stsb", "\t\t\t\t\t\t\ta\tb\thigh", "wrong label: got 'high'"),
    ],
)
def test_bad_rows_stop_or_are_counted(tmp_path, key, line, reason):
    folder = write_glue(tmp_path / key, key, rows=6)
    path = folder / "train.tsv"
    number = path.read_text().count("\n") + 1
    path.write_text(path.read_text() + line + "\n")
    assert f"train.tsv:{number}: {reason}" in failure(folder)
    report = BadRows()
    assert len(read(folder, on_error="skip", report=report)) == 6
    assert report.count == 1
    assert reason in str(report.first[0])


def test_the_diagnostics_without_labels_have_other_columns():
    assert GLUE["ax"].unlabeled["test"] == Unlabeled(("diagnostic.tsv", "AX.tsv"), "sentence1", "sentence2")
