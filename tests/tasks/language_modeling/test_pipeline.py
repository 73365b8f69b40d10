"""A trained language model at work: each prompt gets what it gets alone, and what is told is what is written."""

import copy
import math
from dataclasses import replace

import pytest
import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, processors

import regard
from regard.errors import FolderError, InputError
from regard.generation import Beam, Greedy, Sample, generate
from regard.metrics.self_consistency import self_consistency
from regard.models.gpt import GPT, GPTConfig
from regard.tasks.language_modeling import pipeline as module
from regard.tasks.language_modeling.pipeline import GeneratedText, TextGenerator, TextStream, _ranked
from regard.tokenizers.text import TextTokenizer

PROMPTS = [
    "The old captain",
    "A",
    "My brother opened the door while the",
    "Nobody sang of the sea and laughed. ",
    "Señora",
]
CHANCE = Sample(temperature=0.9, top_p=0.95, seed=4)


@pytest.fixture(scope="module")
def writer(novel):
    return regard.load(novel)


@pytest.fixture(scope="module")
def by_letters(letters):
    return regard.load(letters)


def with_template(writer, template):
    tokenizer = copy.copy(writer.tokenizer)
    tokenizer.chat_template = template
    return TextGenerator(writer.kind, writer.model, tokenizer)


# ------------------------------------------------ batches


@pytest.mark.parametrize("strategy", [Greedy(), Greedy(repetition_penalty=1.2), Beam(3, num_return=2)], ids=str)
def test_ragged_prompts_together_get_what_each_gets_alone(writer, strategy):
    together = writer.run_all(PROMPTS, strategy, max_new_tokens=20)
    assert [one.prompt for one in together] == PROMPTS
    for prompt, found in zip(PROMPTS, together, strict=True):
        alone = writer.run(prompt, strategy, max_new_tokens=20)
        assert [text.tokens for text in found.texts] == [text.tokens for text in alone.texts]
        assert found.text == alone.text
        assert found.score == pytest.approx(alone.score, abs=1e-3)


def test_what_is_drawn_depends_on_the_number_of_a_prompt_alone(writer, monkeypatch):
    strategy = Sample(seed=4, num_samples=2)
    many = writer.run_all(PROMPTS * 8, strategy, max_new_tokens=50)  # three batches; longer than the context
    monkeypatch.setattr(module, "BATCH_SIZE", 7)
    again = writer.run_all((PROMPTS * 8)[:12], strategy, max_new_tokens=50)
    assert [[text.tokens for text in one.texts] for one in again] == [
        [text.tokens for text in one.texts] for one in many[:12]
    ]
    assert len({one.text for one in many}) > 35  # and other numbers draw otherwise
    assert writer.run_all(PROMPTS, Sample(seed=5, num_samples=2), max_new_tokens=50)[0].text != many[0].text


def test_a_model_trained_here_draws_and_does_so_again(writer):
    assert isinstance(writer.strategy, Sample)
    assert writer.run("The old", max_new_tokens=30) == writer.run("The old", max_new_tokens=30)


def test_one_more_draw_changes_none_of_the_others(writer):
    """Also behind the end of the context, where every text goes on by itself."""
    few = {tuple(text.tokens) for text in writer.run("The", Sample(num_samples=2), max_new_tokens=60).texts}
    more = {tuple(text.tokens) for text in writer.run("The", Sample(num_samples=5), max_new_tokens=60).texts}
    assert len(more) == 5
    assert few < more


# ------------------------------------------------ stop strings


@pytest.fixture(scope="module")
def plain(writer):
    """What is written without any stop."""
    return writer.run("The old captain", CHANCE, max_new_tokens=28).text


def test_a_text_ends_before_its_stop_string(writer, plain):
    assert len(plain) > 20
    for start in range(0, len(plain) - 6, 3):
        stop = plain[start : start + 5]  # over the borders of tokens, most of them
        if "\ufffd" in stop:
            continue
        found = writer.run("The old captain", CHANCE, max_new_tokens=28, stop=[stop])
        assert found.text == plain[: plain.find(stop)]
        assert found.texts[0].ended


def test_a_stop_string_may_be_the_very_beginning_and_the_earliest_of_several_counts(writer, plain):
    assert writer.run("The old captain", CHANCE, max_new_tokens=28, stop=[plain[:2]]).text == ""
    found = writer.run("The old captain", CHANCE, max_new_tokens=28, stop=[plain[12:17], "☃", plain[5:9]])
    assert found.text == plain[: min(plain.find(plain[12:17]), plain.find(plain[5:9]))]


def test_a_stop_string_of_which_only_a_part_is_written_stops_nothing(writer, plain):
    found = writer.run("The old captain", CHANCE, max_new_tokens=28, stop=[plain[3:9] + "☃", plain[-3:] + "☃"])
    assert found.text == plain
    assert not found.texts[0].ended


def test_a_stop_string_far_behind_the_context_and_over_its_border_is_found(writer):
    text = writer.run("The", Greedy(repetition_penalty=1.3), max_new_tokens=90).text
    short = writer.run("The", Greedy(repetition_penalty=1.3), max_new_tokens=31).text  # what fills the context
    for place in (len(short) - 3, len(text) - 8):
        stop = text[place : place + 7]
        found = writer.run("The", Greedy(repetition_penalty=1.3), max_new_tokens=90, stop=[stop])
        assert found.text == text[: text.find(stop)]


def test_every_draw_stops_for_itself(writer):
    strategy = Sample(seed=4, num_samples=4)
    plain = {tuple(text.tokens): text.text for text in writer.run("Nobody", strategy, max_new_tokens=25).texts}
    found = writer.run("Nobody", strategy, max_new_tokens=25, stop=["e"])
    assert sorted(text.text for text in found.texts) == sorted(text.split("e")[0] for text in plain.values())


def test_a_long_token_that_holds_a_stop_string_is_seen():
    """Whatever a token spells before or behind it."""
    tokenizer = TextTokenizer.train(["-" * 400 + "\n"] * 50 + ["x" + "=" * 200 + "y\n"] * 50, 300)
    ids = tokenizer.encode("x" + "=" * 200 + "y")
    assert max(len(tokenizer.decode([number])) for number in ids) > 70
    for stop in ("x=", "=" * 40, "=y"):
        told: list[str] = []
        stream = TextStream(tokenizer, [], [stop], told.append)
        written = next(ids[:size] for size in range(1, len(ids) + 1) if stream.on_token(0, ids[:size]))
        whole = tokenizer.decode(written)
        assert stream.finish(written) == whole[: whole.index(stop)] == "".join(told)


# ------------------------------------------------ told while it is written


@pytest.mark.parametrize("tokens", [25, 70])  # in the context, and beyond it
@pytest.mark.parametrize("stop", [[], ["and"], ["e the", " w", "zzz"]], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_told_piece_by_piece_is_the_text(writer, seed, stop, tokens):
    told = []
    found = writer.run("The", Sample(temperature=1.2, seed=seed), max_new_tokens=tokens, stop=stop, on_text=told.append)
    assert "".join(told) == found.text  # so nothing of a stop string was ever told
    assert all(told)
    assert not any(string in found.text for string in stop)
    if len(found.text) > 40:
        assert len(told) > 5
    silent = writer.run("The", Sample(temperature=1.2, seed=seed), max_new_tokens=tokens, stop=stop)
    assert silent == found


def test_letters_are_told_one_by_one(by_letters):
    told = []
    found = by_letters.run("The old", Greedy(repetition_penalty=1.5), max_new_tokens=30, on_text=told.append)
    assert told == list(found.text)


def test_only_one_text_can_be_told_and_a_beam_neither_tells_nor_stops(writer):
    for prompts, strategy in ((["a", "b"], Greedy()), (["a"], Sample(num_samples=2))):
        with pytest.raises(InputError, match="only one text can be streamed at a time"):
            writer.run_all(prompts, strategy, on_text=print)
    for options in ({"on_text": print}, {"stop": ["."]}):
        with pytest.raises(InputError, match="beam search cannot stream or stop at a string"):
            writer.run("a", Beam(2), **options)
    with pytest.raises(InputError, match="a stop string is empty"):
        writer.run("a", stop=[".", ""])


# ------------------------------------------------ words that begin with their space


def with_pieces(decoder, rows=8):
    """A writer whose words are SentencePiece's; its table has `rows` rows, its tokenizer 8 tokens."""
    names = ["<unk>", "<s>", "</s>", "▁", "a", "b", "▁a", "▁b"]
    core = tokenizers.Tokenizer(
        models.BPE(
            vocab={name: number for number, name in enumerate(names)},
            merges=[("▁", "a"), ("▁", "b")],
            unk_token="<unk>",
        )
    )
    core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    core.decoder = decoder
    core.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    core.add_special_tokens(names[:3])
    torch.manual_seed(1)
    model = GPT(GPTConfig(vocab_size=rows, width=16, heads=2, layers=1, context=16)).eval()
    return TextGenerator("gpt", model, TextTokenizer(core, bos_id=1, eos_ids=[2]))


PIECES = {
    "Metaspace": decoders.Metaspace(prepend_scheme="first"),
    "Llama 2": decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
}


@pytest.mark.parametrize("decoder", PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("seed", range(6))
def test_the_prompt_and_what_was_written_are_the_text_of_all_their_tokens(decoder, seed):
    writer = with_pieces(decoder)
    told: list[str] = []
    for prompt in ("a b", ""):  # an empty prompt has no text: the space before its first word is none
        told.clear()
        found = writer.run(prompt, Sample(seed=seed), max_new_tokens=9, on_text=told.append)
        whole = writer.tokenizer.decode([*found.ids, *found.texts[0].tokens])
        assert prompt + found.text == prompt + "".join(told) == whole
        if " " in found.text[:1]:
            assert writer.run(prompt, Sample(seed=seed), max_new_tokens=9, stop=[found.text[:2]]).text == ""


@pytest.mark.parametrize("strategy", [Greedy(), Sample(), Sample(top_k=3), Beam(2)], ids=str)
def test_a_row_of_the_table_without_a_token_is_never_written(strategy):
    """Tables are padded to round numbers; here the likeliest rows are those of nothing."""
    writer = with_pieces(PIECES["Llama 2"], rows=12)
    with torch.no_grad():
        weight = writer.model.embedding.weight
        weight[8:] = 50 * writer.model.hidden_states(torch.tensor([writer.encode("a b")]))[0, -1]
    found = writer.run("a b", strategy, max_new_tokens=40)  # beyond the context too
    assert found.texts[0].tokens
    assert max(found.texts[0].tokens) < writer.tokenizer.vocab_size


# ------------------------------------------------ lengths


def test_as_many_tokens_as_asked_for(writer):
    for tokens in (1, 7, 31, 32, 33, 100):
        (found,) = writer.run("The", Greedy(repetition_penalty=1.3), max_new_tokens=tokens).texts
        assert len(found.tokens) == tokens or found.ended
        seen = len(writer.encode("The")) + len(found.tokens) - 1  # the last token is written, not read
        assert found.forgot == (seen > writer.context)


@pytest.mark.parametrize("strategy", [Greedy(repetition_penalty=1.3), CHANCE, Beam(2)], ids=str)
def test_a_text_that_outgrows_the_context_goes_on(writer, strategy):
    prompt = writer.encode("The old captain")
    room = writer.context - len(prompt) + 1
    inside = writer.run("The old captain", strategy, max_new_tokens=room).texts[0]
    beyond = writer.run("The old captain", strategy, max_new_tokens=room + 40).texts[0]
    assert not inside.forgot
    assert not inside.ended, "the prompt must be one whose text fills the context"
    assert beyond.forgot
    assert beyond.tokens[:room] == inside.tokens
    assert len(beyond.tokens) > room
    assert beyond.log_probability < inside.log_probability
    assert beyond.text.startswith(inside.text.rstrip("\ufffd"))


def test_a_text_goes_on_from_the_second_half_of_what_it_saw(writer):
    """It reads 32 tokens, then the last 16 of all and what it writes behind them until it reads 32 again, and so on."""
    (found,) = writer.run("The", Greedy(), max_new_tokens=80).texts
    assert (len(found.tokens), found.forgot) == (80, True)
    text, seen = writer.encode("The"), 0
    for token in found.tokens:
        if len(text) - seen > writer.context:
            seen = len(text) - writer.context // 2
        with torch.no_grad():
            assert token == writer.model(torch.tensor([text[seen:]]))[0, -1].argmax().item()
        text.append(token)


def test_every_part_of_every_text_has_a_chance_of_its_own(writer, monkeypatch):
    drawn = []

    def recording(model, prompts, strategy, limits):
        drawn.extend((number, draw) for number in limits.row_ids for draw in range(strategy.num_samples))
        return generate(model, prompts, strategy, limits)

    monkeypatch.setattr(module, "generate", recording)
    writer.run_all(["The", "A"], Sample(num_samples=3), max_new_tokens=80)
    assert len(drawn) > 15
    assert len(set(drawn)) == len(drawn)


WAYS = [Greedy(repetition_penalty=1.3), Sample(seed=5, num_samples=2), Beam(3, num_return=2)]


@pytest.mark.parametrize("strategy", WAYS, ids=str)
def test_the_texts_of_a_batch_go_on_side_by_side_each_as_alone(writer, strategy, monkeypatch):
    rounds = []

    def recording(model, prompts, strategy, limits):
        rounds.append(len(prompts))
        return generate(model, prompts, strategy, limits)

    monkeypatch.setattr(module, "generate", recording)
    together = writer.run_all(PROMPTS, strategy, max_new_tokens=70, stop=[] if isinstance(strategy, Beam) else ["sea"])
    assert len(rounds) <= 5  # the whole context, then half of it a round
    assert max(rounds[1:]) > 2
    monkeypatch.setattr(module, "BATCH_SIZE", 1)  # keeps the numbers, by which chance goes
    alone = writer.run_all(PROMPTS, strategy, max_new_tokens=70, stop=[] if isinstance(strategy, Beam) else ["sea"])
    for one, other in zip(together, alone, strict=True):
        assert [replace(text, log_probability=0, score=0) for text in one.texts] == [
            replace(text, log_probability=0, score=0) for text in other.texts
        ]
        assert [text.score for text in one.texts] == pytest.approx([text.score for text in other.texts], abs=1e-3)


def test_the_beams_of_a_long_text_are_ranked_by_one_measure(writer):
    """Some outgrow the context, some end before: score is log probability / length ** penalty for all of them."""
    for text in writer.run("The old captain", Beam(4, 1.0, num_return=4), max_new_tokens=60).texts:
        assert text.score == pytest.approx(text.log_probability / (len(text.tokens) + text.ended), abs=1e-4)


def test_a_prompt_too_long_is_refused_with_both_numbers_or_loses_its_beginning(writer):
    prompt = "The old captain walked home before dawn. " * 4
    ids = writer.tokenizer.encode(prompt)
    with pytest.raises(InputError, match=f"the prompt has {len(ids)} tokens, this model's context is 32"):
        writer.run(prompt)
    found = writer.run(prompt, Greedy(), truncate=True, max_new_tokens=4)
    assert found.ids == ids[-32:]
    with torch.no_grad():
        assert found.texts[0].tokens[0] == writer.model(torch.tensor([ids[-32:]]))[0, -1].argmax()


def test_a_prompt_that_loses_its_beginning_keeps_the_begin_symbol():
    writer = with_pieces(PIECES["Metaspace"])
    ids = writer.encode("ab " * 5)
    assert writer.encode("ab " * 9, truncate=True) == [1, *writer.tokenizer.encode("ab " * 9)[-15:]]
    assert writer.encode("ab " * 5, truncate=True) == ids  # it fits
    assert ids[0] == 1


def test_a_text_that_goes_on_beyond_the_context_keeps_its_begin_symbol(monkeypatch):
    given = []

    def recording(model, prompts, strategy, limits):
        given.extend(prompts)
        return generate(model, prompts, strategy, limits)

    monkeypatch.setattr(module, "generate", recording)
    writer = with_pieces(PIECES["Metaspace"])
    writer.tokenizer.eos_ids = ()
    found = writer.run("a b", Sample(), max_new_tokens=40)
    text = [*found.ids, *found.texts[0].tokens]
    assert len(given) == 4
    for prompt, seen in zip(given[1:], (17, 26, 35), strict=True):  # one more than was read, then 9 a round
        assert prompt == [1, *text[seen - 7 : seen]]


def test_a_prompt_as_long_as_the_context_gets_one_token_and_goes_on(writer):
    prompt = writer.tokenizer.decode(writer.tokenizer.encode("The old captain walked home before dawn. " * 4)[:32])
    assert len(writer.encode(prompt)) == 32
    found = writer.run(prompt, Greedy(), max_new_tokens=3).texts[0]
    assert found.ended or (len(found.tokens), found.forgot) == (3, True)


def test_an_empty_prompt_begins_with_the_end_of_another_text(writer):
    assert writer.encode("") == [writer.tokenizer.eos_id]
    found = writer.run("", Greedy(), max_new_tokens=5)
    assert found.ids == [writer.tokenizer.eos_id]
    with torch.no_grad():
        assert found.texts[0].tokens[0] == writer.model(torch.tensor([found.ids]))[0, -1].argmax()


def test_an_empty_prompt_begins_as_every_text_does_where_a_text_has_a_begin(writer, monkeypatch):
    monkeypatch.setattr(TextTokenizer, "prepended_bos_id", 7)
    assert writer.encode("") == [7]
    assert writer.encode("The") == [7, *writer.tokenizer.encode("The")]


def test_without_any_symbol_to_begin_with_an_empty_prompt_is_refused(writer):
    tokenizer = copy.copy(writer.tokenizer)
    tokenizer.eos_ids, tokenizer.bos_id = (), None
    with pytest.raises(InputError, match="the prompt is empty"):
        TextGenerator("gpt", writer.model, tokenizer).run("")


@pytest.mark.parametrize("prompt", ["<|endoftext|>", "\x00", "👩‍👩‍👧", "  \n ", "ñ"])
def test_hostile_prompts_are_just_text(writer, prompt):
    assert writer.tokenizer.eos_id not in writer.encode(prompt)
    assert isinstance(writer.run(prompt, max_new_tokens=3).text, str)


def test_a_character_that_was_never_seen_is_named(by_letters):
    with pytest.raises(InputError, match="☃"):
        by_letters.run("The ☃")


# ------------------------------------------------ ranking


def text(words, log_probability=0.0, tokens=4, ended=False):
    return GeneratedText(words, list(range(tokens)), log_probability, log_probability, ended)


def test_three_that_agree_come_before_one_that_does_not():
    same, other = "we sailed at dawn", "bread is twelve cents"
    scores = self_consistency([same, other, same, same])
    assert scores[0] == scores[2] == scores[3] == pytest.approx((2 * 100 + self_consistency([same, other])[0]) / 3)
    assert scores[1] == pytest.approx(self_consistency([other, same])[0])
    assert scores[1] < scores[0]
    ranked = _ranked([text(other, -1.0), text(same, -5.0), text(same, -6.0), text(same, -7.0)], "consistency")
    assert [one.text for one in ranked] == [same, same, same, other]
    assert [one.log_probability for one in ranked] == [-5.0, -6.0, -7.0, -1.0]  # of equals the likelier first
    assert self_consistency(["alone"]) == [0]


def test_likelihood_prefers_the_whole_and_mean_the_token():
    long, short = text("long", -8.0, tokens=7, ended=True), text("short", -6.0, tokens=2)
    assert [one.text for one in _ranked([long, short], "likelihood")] == ["short", "long"]
    by_mean = _ranked([short, long], "mean")
    assert [one.text for one in by_mean] == ["long", "short"]
    assert [one.score for one in by_mean] == [-1.0, -3.0]  # the end counts as a token


def test_a_text_of_no_tokens_has_a_mean():
    assert _ranked([text("", 0.0, tokens=0)], "mean")[0].score == 0


@pytest.mark.parametrize("best_by", ["likelihood", "mean", "consistency"])
def test_texts_come_ranked(writer, best_by):
    found = writer.run("The", Sample(num_samples=6), max_new_tokens=12, best_by=best_by)
    scores = [one.score for one in found.texts]
    assert scores == sorted(scores, reverse=True)
    assert found.score == scores[0]
    assert found.text == found.texts[0].text
    if best_by == "mean":
        assert scores == pytest.approx([one.log_probability / (len(one.tokens) + one.ended) for one in found.texts])
    if best_by == "consistency":
        assert scores == pytest.approx(self_consistency([one.text for one in found.texts]))


# ------------------------------------------------ log probabilities


def test_log_probabilities_are_the_models_own(writer):
    found = writer.run("The old", CHANCE, max_new_tokens=15)
    tokens = found.texts[0].tokens
    likely = writer.log_probabilities(found.ids, tokens)
    with torch.no_grad():
        logits = writer.model(torch.tensor([[*found.ids, *tokens]]))[0].log_softmax(-1)
    wanted = [logits[len(found.ids) - 1 + place, token].item() for place, token in enumerate(tokens)]
    assert [token.log_probability for token in likely] == pytest.approx(wanted, abs=1e-5)
    assert [token.text for token in likely] == writer.tokenizer.token_labels(tokens)
    if not found.texts[0].ended:
        assert sum(wanted) == pytest.approx(found.texts[0].log_probability, abs=1e-3)
    assert writer.log_probabilities(found.ids, []) == []


def test_log_probabilities_make_no_logits_of_the_prompt(writer, monkeypatch):
    found = writer.run("The old captain walked", CHANCE, max_new_tokens=3)
    plain, made = writer.model.logits, []
    monkeypatch.setattr(writer.model, "logits", lambda words: made.append(words.shape[:-1].numel()) or plain(words))
    assert len(writer.log_probabilities(found.ids, found.texts[0].tokens)) == 3
    assert made == [3]


def test_of_a_text_beyond_the_context_those_in_sight_have_one(writer):
    found = writer.run("The", Greedy(repetition_penalty=1.3), max_new_tokens=50)
    tokens = found.texts[0].tokens
    likely = writer.log_probabilities(found.ids, tokens)
    assert len(likely) == len(tokens) == 50
    assert [math.isnan(token.log_probability) for token in likely] == [True] * 18 + [False] * 32
    window = [*found.ids, *tokens][-33:]
    with torch.no_grad():
        logits = writer.model(torch.tensor([window[:-1]]))[0].log_softmax(-1)
    assert likely[-1].log_probability == pytest.approx(logits[-1, tokens[-1]].item(), abs=1e-5)


# ------------------------------------------------ chat


def test_a_model_without_a_template_does_not_chat(writer):
    with pytest.raises(InputError, match="has no chat template") as caught:
        writer.chat([{"role": "user", "content": "hello"}])
    assert "\n" not in str(caught.value)


def test_a_template_makes_the_prompt_and_its_symbols_are_symbols(writer):
    template = "{% for m in messages %}{{ m.role[:1] }}:{{ m.content }}{{ eos_token }}{% endfor %}a:"
    talking = with_template(writer, template)
    found = talking.chat([{"role": "user", "content": "The sea"}], Greedy(), max_new_tokens=6)
    encode, end = writer.tokenizer.encode, writer.tokenizer.eos_id
    assert found.ids == [*encode("u:The sea"), end, *encode("a:")]
    assert found.prompt == "u:The sea<|endoftext|>a:"
    with torch.no_grad():
        assert found.texts[0].tokens[0] == writer.model(torch.tensor([found.ids]))[0, -1].argmax()


# ------------------------------------------------ folders


def test_a_tokenizer_of_another_model_is_refused(novel, letters, tmp_path):
    from regard.checkpoint import ModelFolder, load

    found = load(letters)
    (tmp_path / "tokenizer.json").write_bytes((novel / "tokenizer.json").read_bytes())
    with pytest.raises(FolderError, match="300 tokens, its model .*: not a pair"):
        TextGenerator.open(ModelFolder(tmp_path, found.kind, found.task, found.model))
