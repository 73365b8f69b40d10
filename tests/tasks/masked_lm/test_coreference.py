"""What "it" refers to: a model that knows is found out, one that knows nothing is at chance."""

import pytest
import torch
from torch import nn

from regard.inspection.interventions import num_heads
from regard.inspection.trace import attentions_of
from regard.layers.tap import Tap
from regard.synthetic.stories.story import Stories
from regard.tasks.masked_lm.coreference import activations, probe_coreference
from regard.tasks.masked_lm.head_ablation import ablate_heads

WIDTH, LEARNED, ASKED = 64, 150, 80


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.Module()
        self.attention.weights = Tap()
        self.hidden = Tap()


class Knowing(nn.Module):
    """Knows the answer of each story by its pieces: in its second block "it" is the right noun, or looks at it."""

    def __init__(self, tokenizer):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.table = torch.randn(tokenizer.vocab_size, WIDTH, generator=torch.Generator().manual_seed(1))
        self.known = {}
        for part, count in (("training", LEARNED), ("validation", ASKED)):
            for story in Stories(seed=1, part=part).stories(0, count):
                for one in story.coreferences:
                    row = tokenizer.encode_words(story.sentences[one.sentence].split())
                    it, *nouns = (row.word_ids.index(word) for word in (one.it, *one.candidates))
                    self.known[tuple(row.ids)] = it, nouns[one.answer], nouns[1 - one.answer]

    @property
    def encoder(self):
        return self

    def embedding(self, ids, segment_ids):
        return self.table[ids]

    def forward(self, ids):
        words = self.embedding(ids, None)
        for number, block in enumerate(self.blocks):
            weights = torch.full((len(ids), 3, ids.shape[1], ids.shape[1]), 0.01)
            words = words.clone()
            for row, text in enumerate(ids.tolist() if number == 1 else []):
                it, right, wrong = self.known[tuple(text)]
                words[row, it] = words[row, right]
                weights[row, :, it, wrong] = 0.3
                weights[row, 2, it, right] = 0.6
            block.attention.weights(weights)
            words = block.hidden(words)
        return words


def test_one_that_knows_is_right_every_time(story_pieces):
    found = probe_coreference(Knowing(story_pieces), story_pieces, num_training=LEARNED, num_test=ASKED)
    assert found.sentences == sum(
        len(story.coreferences) for story in Stories(seed=1, part="validation").stories(0, ASKED)
    )
    assert len(found.by_layer) == 3
    assert (found.best.layer, found.probe) == (2, 1.0)
    assert max(found.by_layer[:2]) < 0.75  # there "it" is the same in all sentences
    assert (found.attention, found.attention_head) == (1.0, "encoder.blocks.1.attention:2")


def test_one_that_knows_nothing_is_at_chance(make_reader):
    filler = make_reader("bert-masked-lm")
    found = probe_coreference(filler.model, filler.tokenizer, num_training=300, num_test=300)
    assert found.sentences == 300
    assert 0.35 < found.probe < 0.65
    assert 0.35 < found.attention < 0.65
    assert found.probe == pytest.approx(found.by_layer[found.best.layer])


class Similarity:
    """In place of a probe: how much the last hidden states are those of the whole model."""

    def __init__(self, model, tokenizer, layer=-1):
        self.layer = layer
        self.whole = {
            count: activations(model, tokenizer, Stories(seed=1, part=part).stories(0, count)).hidden[layer]
            for part, count in (("training", 25), ("validation", 30))
        }

    def accuracy(self, seen):
        hidden = seen.hidden[self.layer]
        whole = next(one for one in self.whole.values() if one.shape == hidden.shape)
        return 1 / (1 + float((hidden - whole).norm()))


def test_the_heads_that_matter_are_switched_off(make_reader):
    """One head of the last layer is made a hundred times as strong: the search must name it."""
    filler = make_reader("bert-masked-lm")
    attention = filler.model.encoder.blocks[-1].attention
    path = attentions_of(filler.model)[-1].path
    width = attention.output.weight.shape[1] // attention.heads
    with torch.no_grad():
        attention.output.weight[:, width : 2 * width] *= 100
    probe = Similarity(filler.model, filler.tokenizer)
    found = ablate_heads(filler.model, filler.tokenizer, probe, most=2, num_training=25, num_test=30)
    assert found.heads[0] == f"{path}:1"
    assert len(set(found.heads)) == 2
    assert (found.accuracy[0], found.control[0]) == (1, 1)  # the whole model
    assert [without < other for without, other in zip(found.accuracy, found.control, strict=True)][1:] == [True, True]
    assert probe.accuracy(activations(filler.model, filler.tokenizer, Stories(seed=1).stories(0, 25))) == 1  # on again


def test_heads_after_the_layer_of_the_probe_are_not_tried(make_reader):
    """They change nothing that it reads; as a control they would flatter the heads that were found."""
    filler = make_reader("bert-masked-lm")
    probe = Similarity(filler.model, filler.tokenizer, layer=1)
    first = attentions_of(filler.model)[0]
    found = ablate_heads(filler.model, filler.tokenizer, probe, most=9, num_training=25, num_test=30)
    assert len(found.heads) == num_heads(filler.model, first.path) // 2  # half are left for the control
    assert {head.rpartition(":")[0] for head in found.heads} == {first.path}
    assert found.control[-1] < 1
