"""T5 folders of both versions: the same numbers, tokens and texts as `transformers`, both ways; faults in one line."""

import json
import shutil

import pytest
import sentencepiece
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.testing import assert_close
from transformers import T5Config, T5ForConditionalGeneration

import regard
from regard import huggingface
from regard.errors import ConfigError, FolderError
from regard.files import write_folder
from regard.generation import Beam, Greedy, generate
from regard.generation.decode import Limits
from regard.huggingface import t5
from regard.models.base import SpecialIds
from regard.models.t5 import T5
from regard.models.t5 import T5Config as OurConfig
from regard.synthetic.translation.sentences import sentences
from regard.tokenizers.bpe import BPETokenizer

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

VOCAB_SIZE, PAD, EOS = 300, 0, 1
V1_1 = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
SHAPES = {
    "v1.0": {},
    "v1.1": V1_1 | {"num_decoder_layers": 1},
    "v1.0-wide-heads": {"d_kv": 20, "num_layers": 3, "relative_attention_num_buckets": 8},
    "v1.1-narrow-heads": V1_1 | {"d_kv": 4, "relative_attention_max_distance": 20},
    "gated-silu-tied": {"feed_forward_proj": "gated-silu", "num_decoder_layers": 1},
}


@pytest.fixture(scope="module")
def spiece(tmp_path_factory):
    """A SentencePiece model with T5's special ids."""
    folder = tmp_path_factory.mktemp("spiece")
    text = folder / "text"
    text.write_text("\n".join(f"{pair.source}\n{pair.target}" for pair in sentences(2000)))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(folder / "spiece"),
        vocab_size=180,
        minloglevel=2,
        hard_vocab_limit=False,
        pad_id=PAD,
        eos_id=EOS,
        unk_id=2,
        bos_id=-1,
    )
    return folder / "spiece.model"


def make_folder(folder, spiece, **changes):
    """A random T5 as `transformers` saves it, with its tokenizer as spiece.model."""
    torch.manual_seed(5)
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 40, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": PAD}
    model = T5ForConditionalGeneration(T5Config(**{"vocab_size": VOCAB_SIZE, **sizes, **changes}))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                query = 0.2 * model.config.d_kv**-0.5  # scores are not scaled: larger ones would make softmax an argmax
                deviations = {"relative": 1.0, "shared": 0.3, ".q.": query}
                weight.normal_(std=next((std for part, std in deviations.items() if part in name), 0.2))
            else:
                weight.normal_(mean=1.0, std=0.2)
        if changes.get("tie_word_embeddings") is False:
            model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCAB_SIZE, 32) * 0.3)
        model.lm_head.weight[EOS] *= 2.0  # so that some texts end
    model.generation_config.bad_words_ids = [[PAD]]
    model.generation_config.max_length = 24
    model.generation_config.num_beams = 4
    model.save_pretrained(folder)
    shutil.copy(spiece, folder)
    edit_json(folder / "tokenizer_config.json", tokenizer_class="T5Tokenizer", extra_ids=100)
    return folder


def edit_json(path, **changes):
    path.write_text(json.dumps((json.loads(path.read_text()) if path.is_file() else {}) | changes))


def edit_config(folder, *without, **changes):
    edit_json(folder / "config.json", **changes)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({key: config[key] for key in config if key not in without}))


def edit(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def as_tokenizer_json(folder):
    """Replace spiece.model by the tokenizer.json that `transformers` converts it to."""
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    (folder / "spiece.model").unlink()


@pytest.fixture(scope="module", params=SHAPES)
def folder(request, spiece, tmp_path_factory):
    folder = make_folder(tmp_path_factory.mktemp("t5") / request.param, spiece, **SHAPES[request.param])
    if request.param.startswith("v1.1"):
        as_tokenizer_json(folder)
    return folder


@pytest.fixture
def first(spiece, tmp_path):
    """A folder of version 1.0 to spoil."""
    return make_folder(tmp_path / "v1.0", spiece)


@pytest.fixture
def second(spiece, tmp_path):
    """A folder of version 1.1 to spoil."""
    return make_folder(tmp_path / "v1.1", spiece, **SHAPES["v1.1"])


@pytest.fixture(scope="module")
def theirs(folder):
    return T5ForConditionalGeneration.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def ours(folder):
    return regard.load(folder)


@pytest.fixture(scope="module")
def inputs():
    """Fifty random sources of 1 to 40 tokens, padded."""
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(1, 40, (50,), generator=generator)
    rows = torch.randint(2, VOCAB_SIZE, (50, 41), generator=generator)
    for row, length in zip(rows, lengths.tolist(), strict=True):
        row[length], row[length + 1 :] = EOS, PAD
    return rows


@pytest.fixture(scope="module")
def targets():
    rows = torch.randint(2, VOCAB_SIZE, (50, 30), generator=torch.Generator().manual_seed(4))
    return torch.cat([torch.full((50, 1), PAD), rows], dim=1)


@torch.no_grad()
def logits_of(theirs, inputs, targets):
    return theirs(input_ids=inputs, attention_mask=inputs != PAD, decoder_input_ids=targets).logits


def without_end(row):
    """The tokens of a row that `generate` returned, without start and end."""
    return row[1 : row.index(EOS)] if EOS in row else row[1:]


# ------------------------------------------------ the same as transformers


@torch.no_grad()
def test_the_logits_are_those_of_transformers(ours, theirs, inputs, targets):
    wanted = logits_of(theirs, inputs, targets)
    assert wanted.std() > 0.2
    assert (ours.model(inputs, targets) - wanted).abs().max() <= 1e-4


@torch.no_grad()
def test_a_decoder_may_have_more_layers_than_the_encoder(spiece, inputs, targets, tmp_path):
    folder = make_folder(tmp_path / "deep", spiece, num_layers=1, num_decoder_layers=3)
    wanted = logits_of(T5ForConditionalGeneration.from_pretrained(folder).eval(), inputs, targets)
    assert (regard.load(folder).model(inputs, targets) - wanted).abs().max() <= 1e-4


@torch.no_grad()
@pytest.mark.parametrize("num_beams", [1, 4])
def test_greedy_and_beam_write_the_same_tokens(ours, theirs, inputs, num_beams):
    wanted = theirs.generate(inputs, attention_mask=inputs != PAD, num_beams=num_beams, max_length=24)
    found = generate(ours.model, inputs, Beam(4) if num_beams > 1 else Greedy(), Limits([23] * 50))
    wanted_tokens = [without_end(row) for row in wanted.tolist()]
    assert [hypotheses[0].tokens for hypotheses in found] == wanted_tokens
    assert len(set(map(tuple, wanted_tokens))) > 20, "answers that are all alike would show nothing"


def test_some_texts_end_by_themselves(ours, inputs):
    found = generate(ours.model, inputs, Greedy(), Limits([23] * 50))
    assert any(hypotheses[0].ended for hypotheses in found)


TEXTS = [
    "translate English to Spanish: the boy eats bread",
    "  the   girl, sees 3 dogs ",
    "the <extra_id_0> walks in <extra_id_1> park",
    "a 猫 sleeps",
]


def test_text_in_text_out_as_transformers(folder, ours, theirs):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = TEXTS + [pair.source for pair in sentences(8, start=7)]
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    assert ours.task.encode(texts).tolist() == batch.input_ids.tolist()
    written = [without_end(row) for row in theirs.generate(**batch).tolist()]
    answers = [answer.text for answer in ours.run_all(texts)]  # with the folder's own beams and limit
    assert answers == [ours.tokenizer.decode(row) for row in written]
    known = [[number for number in row if number > 2] for row in written]  # unknown tokens are shown as "⁇"
    for row in known:
        tokens = tokenizer.convert_ids_to_tokens(row)
        wanted = "".join("⁇" if token is None else token.replace("▁", " ") for token in tokens).removeprefix(" ")
        assert ours.tokenizer.decode(row) == wanted


def test_spiece_model_and_tokenizer_json_are_one_tokenizer(first, tmp_path):
    shutil.copytree(first, tmp_path / "json")
    as_tokenizer_json(tmp_path / "json")
    one, other = regard.load(first).tokenizer, regard.load(tmp_path / "json").tokenizer
    assert type(one) is not type(other)
    assert one.vocab == other.vocab
    assert one.encode_batch(TEXTS) == other.encode_batch(TEXTS)
    assert one.vocab["<extra_id_0>"] == one.vocab_size - 1 == one.vocab["<extra_id_99>"] + 99


# ------------------------------------------------ the layouts of a folder


def test_a_folder_of_version_1_0_as_published(first, inputs, targets):
    """Copies of the embedding matrix, a bias that nothing uses, and keys of older versions."""
    wanted = regard.load(first).model(inputs, targets)

    def add_copies(tensors):
        for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"):
            tensors[name] = tensors["shared.weight"].clone()
        tensors[t5.UNUSED] = torch.randn(32, 4)

    edit(first, add_copies)
    tasks = {"summarization": {"prefix": "summarize: ", "num_beams": 4}}
    edit_config(
        first,
        *("scale_decoder_outputs", "is_gated_act", "dense_act_fn", "tie_word_embeddings", "num_decoder_layers"),
        n_positions=512,
        output_past=True,
        task_specific_params=tasks,
    )
    assert torch.equal(regard.load(first).model(inputs, targets), wanted)


def test_a_folder_of_version_1_1_as_published(second, inputs, targets):
    """Older folders say by tie_word_embeddings that the head is their own and that nothing is scaled."""
    wanted = regard.load(second).model(inputs, targets)
    edit_config(second, "scale_decoder_outputs", tie_word_embeddings=False, output_past=True)
    model = regard.load(second).model
    assert (model.config.tie_embeddings, model.config.scale_output) == (False, False)
    assert torch.equal(model(inputs, targets), wanted)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("tied", [True, False])
def test_newer_folders_say_apart_whether_they_scale_and_whether_they_tie(
    spiece, inputs, targets, tmp_path, tied, scaled
):
    folder = make_folder(tmp_path / "in", spiece)
    edit_config(folder, tie_word_embeddings=True, scale_decoder_outputs=scaled)
    if not tied:
        edit(folder, lambda tensors: tensors.update({"lm_head.weight": torch.randn(VOCAB_SIZE, 32)}))
    theirs, ours = T5ForConditionalGeneration.from_pretrained(folder).eval(), regard.load(folder)
    assert (ours.model.config.tie_embeddings, ours.model.config.scale_output) == (tied, scaled)
    wanted = logits_of(theirs, inputs, targets)
    assert (ours.model(inputs, targets) - wanted).abs().max() <= 1e-4 * wanted.std()
    write_folder(tmp_path / "out", t5.files(ours.model, ours.tokenizer))
    again = T5ForConditionalGeneration.from_pretrained(tmp_path / "out").eval()
    assert torch.equal(logits_of(again, inputs, targets), wanted)


def test_half_precision_is_read_as_single(first):
    edit(first, lambda tensors: tensors.update({name: tensor.half() for name, tensor in tensors.items()}))
    assert {weight.dtype for weight in regard.load(first).model.parameters()} == {torch.float32}


# ------------------------------------------------ back again


def test_reading_and_writing_gives_the_same_bits(folder, theirs, inputs, targets, here, tmp_path):
    done = here("export", folder, tmp_path / "out", "--to", "huggingface")
    assert done.returncode == 0, done.stderr
    wanted, found = load_file(folder / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert wanted.keys() == found.keys()
    assert all(torch.equal(weight, found[name]) for name, weight in wanted.items())
    again, report = T5ForConditionalGeneration.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values()), report
    assert torch.equal(logits_of(again.eval(), inputs, targets), logits_of(theirs, inputs, targets))
    assert torch.equal(again.generate(inputs[:9]), theirs.generate(inputs[:9]))
    before, after = (transformers.AutoTokenizer.from_pretrained(one) for one in (folder, tmp_path / "out"))
    for text in TEXTS:
        assert before(text) == after(text)


def test_what_is_exported_is_read_the_same(folder, ours, here, tmp_path):
    assert here("export", folder, tmp_path / "out").returncode == 0
    again = regard.load(tmp_path / "out")
    assert again.model.config == ours.model.config
    assert again.tokenizer.vocab == ours.tokenizer.vocab
    assert again.strategy == ours.strategy
    texts = [pair.source for pair in sentences(4)]
    assert [one.text for one in again.run_all(texts)] == [one.text for one in ours.run_all(texts)]


@torch.no_grad()
def test_a_model_of_ours_opens_in_transformers(tmp_path):
    """With the tokenizer that `regard train` makes, whose eos comes first and whose padding last."""
    tokenizer = BPETokenizer.train([pair.source for pair in sentences(500)], 300)
    special_ids = SpecialIds(pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)
    config = OurConfig(
        vocab_size=tokenizer.vocab_size,
        width=16,
        heads=2,
        head_width=12,
        layers=1,
        feed_forward=16,
        special_ids=special_ids,
    )
    torch.manual_seed(0)
    model = T5(config).eval()
    write_folder(tmp_path / "out", huggingface.files("t5", model, tokenizer))
    theirs, report = T5ForConditionalGeneration.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values()), report
    names, ours = transformers.AutoTokenizer.from_pretrained(tmp_path / "out"), regard.load(tmp_path / "out")
    texts = [pair.source for pair in sentences(5)]
    batch = names(texts, return_tensors="pt", padding=True)
    assert batch.input_ids.tolist() == ours.task.encode(texts).tolist()
    target = torch.randint(2, 250, (5, 7))
    wanted = theirs.eval()(**batch, decoder_input_ids=target).logits
    assert_close(model(batch.input_ids, target), wanted, atol=1e-5, rtol=0)


def test_what_a_t5_folder_cannot_say_is_refused():
    with pytest.raises(ConfigError, match="model.gated=true and model.activation=gelu"):
        t5.to_theirs(OurConfig(gated=True, activation="gelu"))


# ------------------------------------------------ the commands


def test_the_commands_take_a_t5_folder_as_it_is(folder, here, tmp_path):
    text = "translate English to Spanish: the boy eats bread"
    done = here("run", folder, text, "--alignment")
    assert done.returncode == 0, done.stderr
    done = here("run", folder, text, "--precision", "int8")
    assert done.returncode == 0, done.stderr
    facts = json.loads(here("info", folder, "--json").stdout)
    assert (facts["kind"], facts["task"], facts["verified"]) == ("t5", "translation", False)
    pairs = tmp_path / "test.tsv"
    pairs.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in sentences(4)))
    assert "bleu" in json.loads(here("evaluate", folder, pairs, "--json").stdout)
    done = here("check", folder)
    assert done.returncode == 0, done.stdout
    assert "left out: it names no" not in done.stdout
    done = here("cost", folder)
    assert done.returncode == 0, done.stderr


@torch.no_grad()
def test_int8_is_near(folder, ours, inputs, targets):
    exact, near = ours.model(inputs, targets), regard.load(folder, precision="int8").model(inputs, targets)
    assert 0 < (near - exact).std() / exact.std() < 0.1


# ------------------------------------------------ faults

FAULTS = {
    "missing weight": (
        lambda f: edit(f, lambda t: t.pop("decoder.block.1.layer.1.EncDecAttention.q.weight")),
        r"no weight decoder.block.1.layer.1.EncDecAttention.q.weight",
    ),
    "no bias": (
        lambda f: edit(f, lambda t: t.pop("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight")),
        "no weight encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    ),
    "extra weight": (lambda f: edit(f, lambda t: t.update(extra=torch.zeros(2))), "a weight extra"),
    "wrong shape": (
        lambda f: edit_config(f, d_kv=9),
        r"SelfAttention.q.weight has shape \(32, 32\), wanted \(36, 32\)",
    ),
    "an embedding of its own": (
        lambda f: edit(f, lambda t: t.update({"encoder.embed_tokens.weight": torch.ones(VOCAB_SIZE, 32)})),
        "encoder.embed_tokens.weight differs",
    ),
    "a head that should be tied": (
        lambda f: (
            edit_config(f, "scale_decoder_outputs"),
            edit(f, lambda t: t.update({"lm_head.weight": torch.ones(VOCAB_SIZE, 32)})),
        ),
        "lm_head.weight differs",
    ),
    "no head": (lambda f: edit_config(f, tie_word_embeddings=False), "no weight lm_head.weight"),
    "unknown key": (lambda f: edit_config(f, rotary=True), "'rotary'"),
    "unknown activation": (
        lambda f: edit_config(f, feed_forward_proj="gated-tanh"),
        "feed_forward_proj is 'gated-tanh'",
    ),
    "activations that differ": (lambda f: edit_config(f, is_gated_act=True), "wanted the same in all three"),
    "unknown second activation": (lambda f: edit_config(f, dense_act_fn="tanh"), "dense_act_fn is 'tanh'"),
    "another start": (lambda f: edit_config(f, decoder_start_token_id=7), "a T5 decoder starts with padding"),
    "an encoder alone": (lambda f: edit_config(f, is_encoder_decoder=False), "is_encoder_decoder"),
    "ranges that do not grow": (lambda f: edit_config(f, relative_attention_max_distance=16), "max_distance=16"),
    "another vocabulary": (
        lambda f: (edit_config(f, vocab_size=200), edit(f, lambda t: t.update({"shared.weight": torch.ones(200, 32)}))),
        "not a pair",
    ),
    "no tokenizer": (lambda f: (f / "spiece.model").unlink(), "spiece.model cannot be read"),
    "a truncated tokenizer": (
        lambda f: (f / "spiece.model").write_bytes((f / "spiece.model").read_bytes()[:900]),
        "spiece.model",
    ),
    "a tokenizer of another kind": (
        lambda f: (f / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}'),
        "tokenizer.json: cannot be read as a tokenizer.json",
    ),
    "no tokenizer at all": (lambda f: (f / "tokenizer.json").write_text("[]"), "tokenizer.json"),
    "no number of sentinels": (lambda f: edit_json(f / "tokenizer_config.json", extra_ids="many"), "extra_ids"),
    "too many sentinels": (lambda f: edit_json(f / "tokenizer_config.json", extra_ids=10**15), "extra_ids"),
    "truncated weights": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:2000]),
        "model.safetensors",
    ),
    "a pickle": (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "a pickle.*save_pretrained"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_that_names_it(first, here, tmp_path, fault):
    spoil, named = FAULTS[fault]
    spoil(first)
    with pytest.raises(FolderError, match=named):
        regard.load(first)
    done = here("export", first, tmp_path / "out")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
