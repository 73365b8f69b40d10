"""The coreference probe in the model folder: fitted when training ends, kept, and said beside attention."""

import pytest
import torch

import regard
from regard.errors import FolderError
from regard.files import verify
from regard.inspection.drawing.scene import Text
from regard.inspection.trace import Trace
from regard.inspection.views.base import Choices
from regard.synthetic.stories.story import Stories
from regard.tasks import find_task
from regard.tasks.base import TraceRequest
from regard.tasks.masked_lm import data
from regard.tasks.masked_lm.coreference import activations, probe_coreference
from regard.tasks.masked_lm.kept_probe import NOUNS, PROBE, KeptProbe, fit_and_keep
from regard.tasks.show import show_trace, trace

SENTENCE = "the animal did not cross the street because it was too tired ."


def kept(filler, layer=1):
    width = filler.model.config.width
    direction = torch.randn(2 * width, generator=torch.Generator().manual_seed(3))
    return KeptProbe(layer, direction, 0.986, 1000)


def said(filler, text=SENTENCE, token="it"):
    scene = filler.show(text, token=token).scene
    return [item.text for item in scene.items if isinstance(item, Text) and item.text.startswith("probe:")]


def test_every_noun_of_the_stories_is_known():
    for story in Stories().stories(0, 200):
        (one,) = story.coreferences
        words = story.sentences[one.sentence].split()
        assert {words[number] for number in one.candidates} <= NOUNS


def test_the_file_comes_back_the_same_and_another_is_refused(make_reader, tmp_path):
    probe, path = kept(make_reader("bert-masked-lm")), tmp_path / PROBE
    path.write_bytes(probe.to_bytes())
    again = KeptProbe.open(path)
    assert (again.layer, again.accuracy, again.sentences) == (1, 0.986, 1000)
    assert torch.equal(again.direction, probe.direction)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FolderError, match="is not a coreference probe"):
        KeptProbe.open(path)


@pytest.mark.parametrize("kind", ["bert-pretraining", "bert-masked-lm"])
def test_the_shares_are_those_of_the_formula_on_the_models_hidden_states(make_reader, kind):
    filler = make_reader(kind)
    filler.probe = kept(filler)
    filler.task_name = "masked-lm"
    made = trace(find_task("masked-lm"), filler, TraceRequest([SENTENCE]), ["encoder.blocks.0.hidden"])
    (found,) = made.info.references
    tokens, hidden = made.info.axes["text"].tokens, torch.from_numpy(made.value("encoder.blocks.0.hidden"))
    assert tokens[found.token] == "it"
    assert found.nouns == ("animal", "street")
    assert all(noun.startswith(tokens[at]) for noun, at in zip(found.nouns, found.positions, strict=True))
    across, own = filler.probe.direction.chunk(2)
    it, nouns = hidden[found.token], hidden[list(found.positions)]
    wanted = ((it * nouns) @ across + nouns @ own).softmax(0)
    torch.testing.assert_close(torch.tensor(found.shares), wanted, atol=1e-5, rtol=0)
    best = int(wanted.argmax())
    (line,) = said(filler)
    assert line.startswith(f"probe: {('animal', 'street')[best]} {wanted[best]:.2f}, ")
    assert line.endswith("(99% right in held-out stories)")


def test_a_trace_file_keeps_what_the_probe_says(make_reader, tmp_path):
    filler = make_reader("bert-masked-lm")
    filler.probe = kept(filler)
    path = tmp_path / "t.safetensors"
    trace(find_task("masked-lm"), filler, TraceRequest([SENTENCE]), ["*.weights"]).save(path)
    scene = show_trace(Trace.open(path), "token", Choices(token="it")).scene
    assert any(isinstance(item, Text) and item.text.startswith("probe: ") for item in scene.items)


def test_nothing_is_said_without_a_probe_of_other_tokens_or_of_one_noun(make_reader):
    filler = make_reader("bert-masked-lm")
    filler.task_name = "masked-lm"
    assert said(filler) == []
    filler.probe = kept(filler)
    assert said(filler, token="cross") == []
    assert said(filler, "the animal slept because it was too tired .") == []


def test_the_kept_direction_answers_as_the_probe_does(make_reader):
    filler = make_reader("bert-masked-lm")
    found = probe_coreference(filler.model, filler.tokenizer, num_training=80, num_test=40)
    files = fit_and_keep(filler.model, filler.tokenizer, stories=80)
    assert bool(files) == (found.best.layer > 0)
    seen = activations(filler.model, filler.tokenizer, Stories(seed=1, part="validation").stories(0, 40))
    it, first, second = seen.hidden[found.best.layer].unbind(1)
    across, own = torch.from_numpy(found.best.classifier.coef_[0]).float().chunk(2)
    score = [(it * noun) @ across + noun @ own for noun in (first, second)]
    right = ((score[1] > score[0]).numpy() == seen.answers).mean()
    assert right == pytest.approx(found.probe)


def test_training_on_stories_keeps_the_probe_in_the_folder(train_here, make_reader, monkeypatch):
    probe = kept(make_reader("bert-masked-lm"))  # of the same width; a model of one step has none
    monkeypatch.setattr(data, "fit_and_keep", lambda model, tokenizer, stories: {PROBE: probe.to_bytes()})
    settings = ("model.width=32", "model.heads=2", "model.layers=1", "model.context=48", "model.vocab_size=300")
    folder = train_here("bert", *settings, "data.stories=100", "training.max_tokens=512", "training.steps=1")
    assert PROBE in verify(folder)
    (line,) = said(regard.load(folder))
    assert line.startswith("probe: ")


def test_a_folder_without_a_probe_says_nothing(reader):
    filler = regard.load(reader)
    assert (filler.probe is None) == (PROBE not in verify(reader))
