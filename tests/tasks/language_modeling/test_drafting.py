"""`regard run --draft`: the same text; what cannot be a draft is refused in one line."""

import pytest

import regard
from regard.errors import RegardError
from regard.generation import Beam, Greedy
from regard.tasks.language_modeling.drafting import with_draft
from tests.ops.forms import needs_kernels

TEXT = "The old captain. The old captain"


@needs_kernels
@pytest.mark.parametrize("options", [["--greedy"], ["--seed", "3"]], ids=" ".join)
def test_the_command_prints_the_same_text(novel, here, options):
    def printed(*more):
        done = here("run", novel, TEXT, "--max-new-tokens", "20", *options, *more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    wanted = printed()
    assert printed("--draft", "prompt") == wanted
    assert printed("--draft", str(novel)) == wanted


@needs_kernels
def test_what_cannot_be_a_draft(novel, letters, trained):
    pipeline = regard.load(novel)
    for name, message in ((letters, "other tokens"), (trained, "no language model"), ("nowhere", "no folder or file")):
        with pytest.raises(RegardError, match=message):
            with_draft(Greedy(), str(name), pipeline)
    with pytest.raises(RegardError, match="leave out --num-beams"):
        with_draft(Beam(2), "prompt", pipeline)
