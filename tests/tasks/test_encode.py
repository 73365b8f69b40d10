"""`encode` of every pipeline takes one text or a list of texts; advice names what Python has, beside the options."""

import pytest

import regard
from regard.errors import InputError
from regard.generation import Beam


@pytest.mark.parametrize("name", ["novel", "reader", "sentiment", "names", "trained"])
def test_one_text_or_a_list(name, request):
    pipeline = regard.load(request.getfixturevalue(name))
    texts = ["the old man", "we are eating bread"]
    rows = pipeline.encode(texts)
    assert [pipeline.encode(text) for text in texts] == rows
    assert all(isinstance(number, int) for row in rows for number in row)


def test_advice_names_parameters(novel, duplicates):
    writer = regard.load(novel)
    with pytest.raises(InputError, match=r"use strategy=Greedy\(\) or Sample\(\), on the command line --greedy"):
        writer.run("the", Beam(2), stop=["."])
    with pytest.raises(InputError, match=r"drop its beginning with truncate=True, on the command line --truncate left"):
        writer.encode("the " * 1000)
    with pytest.raises(InputError, match=r"seconds=\[…\], on the command line --second"):
        regard.load(duplicates).run_all(["a text"])
