"""Every input that the fuzzer kept, and every one it starts from, through its reader: only RegardError comes out."""

import pytest

from tests.attack.fuzz import CORPUS, corpus, file_name
from tests.attack.targets import TARGETS


@pytest.mark.filterwarnings("default")  # a library's warning about hostile bytes is no finding
@pytest.mark.parametrize("name", TARGETS)
def test_the_kept_inputs_are_survived(name):
    target = TARGETS[name]
    inputs = [*target.seeds(), *corpus(name)]
    assert len(inputs) > 3
    for data in inputs:
        target.survives(data)


def test_every_file_of_the_corpus_belongs_to_a_target():
    assert {path.name for path in CORPUS.iterdir()} == {file_name(name) for name in TARGETS}
