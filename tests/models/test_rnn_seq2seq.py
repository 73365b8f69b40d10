"""The three bridges, held against the lecture's formulas."""

import pytest
import torch
from torch.testing import assert_close

from regard.errors import ConfigError
from regard.inspection.capture import capture
from regard.layers.recurrent import output_of
from regard.models.rnn_seq2seq import RNNConfig, RNNTranslator

SOURCE = torch.tensor([[5, 9, 7, 2, 0], [8, 4, 6, 3, 2]])
TARGET = torch.tensor([[1, 6, 8, 9], [1, 3, 4, 5]])


def build(bridge, **facts):
    torch.manual_seed(0)
    return RNNTranslator(RNNConfig(vocab_size=12, width=8, bridge=bridge, **facts)).eval()


def test_the_first_state_of_the_decoder_is_the_last_of_the_encoder():
    model = build("last_state", bidirectional=False)
    with capture(model, "encoder.0.hidden") as seen:
        state = model.start(SOURCE)
    hidden = seen["encoder.0.hidden"][0]
    assert_close(output_of(state.states[0]), torch.stack([hidden[0, 3], hidden[1, 4]]))  # of each row's last word
    assert state.kept == ()


def test_a_fixed_context_is_the_last_state_at_every_step():
    model = build("fixed_context", bidirectional=False)
    with capture(model, "encoder.0.hidden") as seen:
        state = model.start(SOURCE)
    last = torch.stack([seen["encoder.0.hidden"][0][0, 3], seen["encoder.0.hidden"][0][1, 4]])
    assert_close(state.kept[0], last)
    assert_close(output_of(state.states[0]), model.bridge.starts[0](last).tanh())
    cell, step = model.decoder[0], state.states[0]
    for tokens in TARGET.T:
        step = cell.step(cell.input(model.embedding(tokens)) + model.bridge.gates(last), step)
        wanted = model.embedding.logits(model.readout(torch.cat([output_of(step), last], dim=-1)))
        logits, state = model.step(tokens, state)
        assert_close(logits, wanted)


def test_attention_is_bahdanaus_formula_at_every_step():
    """e_ti = v · tanh(W s_{t-1} + U h_i), a_t = softmax(e_t), c_t = Σ a_ti h_i, s_t = g(y_{t-1}, s_{t-1}, c_t)."""
    model = build("attention")
    bridge, cell = model.bridge, model.decoder[0]
    with capture(model, "encoder.0.hidden", "bridge.weights", "states") as seen, torch.no_grad():
        model(SOURCE, TARGET)
        memory = seen["encoder.0.hidden"][0]
        real = SOURCE != 0
        _, last = model.encoder[0](model.embedding(SOURCE), real.sum(1))
        state = bridge.starts[0](last).tanh()
        for place in range(TARGET.shape[1]):
            query = bridge.query(output_of(state))
            scores = bridge.similarity.score(torch.tanh(query[:, None] + bridge.key(memory))).squeeze(-1)
            weights = scores.masked_fill(~real, -torch.inf).softmax(-1)
            assert_close(seen["bridge.weights"][place][:, 0, 0], weights)
            assert_close(weights.sum(-1), torch.ones(2))
            context = (weights[..., None] * memory).sum(1)
            given = cell.input(model.embedding(TARGET[:, place])) + bridge.gates(context)
            state = cell.step(given, state)
            assert_close(seen["states"][0][:, place], output_of(state))


def test_through_one_vector_only_its_width_comes_whatever_the_length():
    """The bottleneck: what the decoder has of a source does not grow with it; with attention it does."""

    def numbers(bridge, length):
        state = build(bridge).start(torch.full((1, length), 5))
        return sum(part.numel() for part in (*state.states, *state.kept) if part.is_floating_point())

    assert numbers("last_state", 50) == numbers("last_state", 5)
    assert numbers("fixed_context", 50) == numbers("fixed_context", 5)
    assert numbers("attention", 50) - numbers("attention", 5) == 45 * 2 * 8  # a key and a value a word


@pytest.mark.parametrize("similarity", ["additive", "dot", "scaled_dot"])
def test_each_similarity_scores_as_it_says(similarity):
    model = build("attention", similarity=similarity)
    with capture(model, "bridge.weights") as seen, torch.no_grad():
        state = model.start(SOURCE)
        model.step(TARGET[:, 0], state)
    query, key = model.bridge.query(output_of(state.states[0]))[:, None], state.kept[0][:, 0]
    scores = {
        "additive": lambda: torch.tanh(query + key) @ model.bridge.similarity.score.weight[0],
        "dot": lambda: (query * key).sum(-1),
        "scaled_dot": lambda: (query * key).sum(-1) / 8**0.5,
    }[similarity]()
    assert_close(seen["bridge.weights"][0][:, 0, 0], scores.masked_fill(SOURCE == 0, -torch.inf).softmax(-1))


def test_an_odd_width_has_no_halves():
    with pytest.raises(ConfigError, match="no half"):
        RNNConfig(width=7)
    RNNConfig(width=7, bidirectional=False)
