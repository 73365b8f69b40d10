"""What "it" refers to: a model that knows is found out, one that knows nothing is at chance."""

import pytest
import torch
from torch import nn

from regard.layers.tap import Tap
from regard.synthetic.stories.story import Stories
from regard.tasks.masked_lm.coreference import probe_coreference

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
    assert (found.layer, found.probe) == (2, 1.0)
    assert max(found.by_layer[:2]) < 0.75  # there "it" is the same in all sentences
    assert (found.attention, found.attention_head) == (1.0, "blocks.1.attention, head 3")


def test_one_that_knows_nothing_is_at_chance(make_reader):
    filler = make_reader("bert-masked-lm")
    found = probe_coreference(filler.model, filler.tokenizer, num_training=300, num_test=300)
    assert found.sentences == 300
    assert 0.35 < found.probe < 0.65
    assert 0.35 < found.attention < 0.65
    assert found.probe == pytest.approx(found.by_layer[found.layer])
