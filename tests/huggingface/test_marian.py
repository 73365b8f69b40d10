"""Marian folders: the same numbers and tokens as `transformers`, both ways, and every fault named."""

import json
import shutil

import pytest
import sentencepiece
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.testing import assert_close
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

import regard
from regard import huggingface, ops
from regard.errors import FolderError
from regard.files import write_folder
from regard.generation import Beam, Greedy, generate
from regard.generation.decode import Limits
from regard.huggingface import marian
from regard.layers.positions import sinusoidal_halves
from regard.models.transformer import Transformer, TransformerConfig
from regard.synthetic.translation.sentences import sentences
from regard.tokenizers.bpe import BPETokenizer

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

SHAPES = {
    "shared-swish": {"activation_function": "swish", "scale_embedding": True},
    "separate-relu": {
        "activation_function": "relu",
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": False,
        "decoder_vocab_size": 330,
        "decoder_layers": 1,
    },
    "untied-gelu": {
        "activation_function": "gelu",
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        "decoder_vocab_size": 320,
        "encoder_layers": 3,
    },
}


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """A SentencePiece pair with its vocabularies, as OPUS-MT has them."""
    folder = tmp_path_factory.mktemp("pieces")
    pairs = list(sentences(3000))
    models = {}
    for side in ("source", "target"):
        text = folder / f"{side}.txt"
        text.write_text("\n".join(getattr(pair, side) for pair in pairs))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(folder / side), vocab_size=180, minloglevel=2, hard_vocab_limit=False
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        models[side] = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
    names = {
        side: [model.id_to_piece(number) for number in range(3, model.get_piece_size())]
        for side, model in models.items()
    }
    shared = dict.fromkeys(["</s>", "<unk>", *names["source"], *names["target"]])
    _write_vocabulary(folder / "vocab.json", [*shared][:299])
    return folder, names


def _write_vocabulary(path, names, size=300):
    """Numbered from 0, filled up, padding last."""
    filled = [*names, *(f"<filler{number}>" for number in range(size - 1 - len(names))), "<pad>"]
    path.write_text(json.dumps({name: number for number, name in enumerate(filled)}))


@pytest.fixture(scope="module", params=SHAPES)
def folder(request, pieces, tmp_path_factory):
    """A random Marian model as `transformers` saves it, with its tokenizer."""
    return make_folder(tmp_path_factory.mktemp("marian") / request.param, pieces, **SHAPES[request.param])


@pytest.fixture
def shared(pieces, tmp_path):
    return make_folder(tmp_path / "shared", pieces, **SHAPES["shared-swish"])


def make_folder(folder, pieces, **changes):
    torch.manual_seed(5)
    config = MarianConfig(
        **{
            "vocab_size": 300,
            "d_model": 48,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "max_position_embeddings": 128,
            "pad_token_id": 299,
            "decoder_start_token_id": 299,
            "init_std": 0.3,
            **changes,
        }
    )
    model = MarianMTModel(config)
    model.final_logits_bias.normal_()
    model.final_logits_bias[0, 0] = 7.0 if config.activation_function == "swish" else 4.0  # so that some texts end
    model.generation_config.max_length = 24
    model.generation_config.num_beams = 4
    model.generation_config.bad_words_ids = [[299]]
    model.save_pretrained(folder)
    parts, names = pieces
    for name in ("source.spm", "target.spm", "vocab.json"):
        shutil.copy(parts / name, folder)
    separate = not config.share_encoder_decoder_embeddings
    if separate:
        _write_vocabulary(folder / "vocab.json", ["</s>", "<unk>", *names["source"]])
        own = ["</s>", "<unk>", *names["target"]]
        names = [*own, *(f"<f{n}>" for n in range(299 - len(own))), "<pad>"]
        names += [f"<g{n}>" for n in range(config.decoder_vocab_size - 300)]
        (folder / "target_vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate})
    )
    return folder


@pytest.fixture(scope="module")
def theirs(folder):
    return MarianMTModel.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def ours(folder):
    return regard.load(folder)


@pytest.fixture(scope="module")
def inputs():
    """Fifty random sources, padded, ragged."""
    chance = torch.Generator().manual_seed(3)
    lengths = torch.randint(1, 20, (50,), generator=chance)
    rows = torch.randint(2, 299, (50, 21), generator=chance)
    for row, length in zip(rows, lengths.tolist(), strict=True):
        row[length], row[length + 1 :] = 0, 299
    return rows


@torch.no_grad()
def test_the_logits_are_those_of_transformers(ours, theirs, inputs):
    target = torch.cat([torch.full((50, 1), 299), inputs[:, :7].clamp(max=298)], dim=1)
    wanted = theirs(input_ids=inputs, attention_mask=inputs != 299, decoder_input_ids=target).logits
    with ops.disabled():  # operation by operation as theirs
        assert (ours.model(inputs, target) - wanted).abs().max() <= 1e-5
    assert (ours.model(inputs, target) - wanted).abs().max() <= 5e-5  # other orders of sums


@torch.no_grad()
def test_a_decoder_may_have_other_widths_than_the_encoder(pieces, inputs, here, tmp_path):
    widths = {"decoder_attention_heads": 2, "decoder_ffn_dim": 48}
    folder = make_folder(tmp_path / "r", pieces, **SHAPES["shared-swish"], **widths)
    target = torch.cat([torch.full((50, 1), 299), inputs[:, :7].clamp(max=298)], dim=1)
    theirs = MarianMTModel.from_pretrained(folder).eval()
    wanted = theirs(input_ids=inputs, attention_mask=inputs != 299, decoder_input_ids=target).logits
    ours = regard.load(folder)
    with ops.disabled():
        assert (ours.model(inputs, target) - wanted).abs().max() <= 1e-5
    assert here("export", folder, tmp_path / "out").returncode == 0
    written = json.loads((tmp_path / "out/config.json").read_text())
    assert {name: written[name] for name in widths} == widths


@torch.no_grad()
def test_renormalized_beams_are_those_of_transformers(pieces, inputs, tmp_path):
    folder = make_folder(tmp_path / "r", pieces, **SHAPES["separate-relu"])
    edit(folder, lambda tensors: tensors["final_logits_bias"][0].__setitem__(299, 9.0))  # padding takes a large share
    edit_json(folder / "generation_config.json", renormalize_logits=True)
    ours, theirs = regard.load(folder), MarianMTModel.from_pretrained(folder).eval()
    wanted = theirs.generate(inputs, attention_mask=inputs != 299)
    limits = ours.limits(inputs, list(range(50)))
    assert limits.renormalize
    found = generate(ours.model, inputs, ours.strategy, limits)
    for row, hypotheses in zip(wanted.tolist(), found, strict=True):
        assert hypotheses[0].tokens == row[1 : row.index(0)]


@torch.no_grad()
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("penalty", [1.0, 0.4])
def test_greedy_and_beam_write_the_same_tokens(ours, theirs, inputs, width, penalty):
    wanted = theirs.generate(
        inputs,
        attention_mask=inputs != 299,
        num_beams=width,
        length_penalty=penalty if width > 1 else None,
        max_length=24,
    )
    strategy = Beam(width, penalty) if width > 1 else Greedy()
    found = generate(ours.model, inputs, strategy, Limits([22] * 50, force_eos=True))
    ended = 0
    for row, hypotheses in zip(wanted.tolist(), found, strict=True):
        tokens = row[1 : row.index(0)]
        ended += len(tokens) < 22
        assert hypotheses[0].tokens == tokens
    assert 5 < ended < 50, "some must end by themselves, and some must reach the limit"


@pytest.mark.filterwarnings("ignore:Recommended")  # sacremoses, which it does not use
def test_text_in_text_out_as_transformers(folder, ours, theirs):
    names = MarianTokenizer.from_pretrained(folder)
    texts = [pair.source for pair in sentences(12, start=7)]
    batch = names(texts, return_tensors="pt", padding=True)
    assert ours.task.encode(texts).tolist() == batch.input_ids.tolist()
    wanted = names.batch_decode(theirs.generate(**batch), skip_special_tokens=True)
    found = [answer.text for answer in ours.run_all(texts)]  # with the folder's own beams and limit
    assert [" ".join(text.replace("⁇", " ").split()) for text in found] == [" ".join(text.split()) for text in wanted]


def test_the_commands_take_a_foreign_folder_as_it_is(folder, here, tmp_path):
    done = here("run", folder, "the boy eats bread", "--alignment", "--num-beams", 1)
    assert done.returncode == 0, done.stderr
    done = here("info", folder, "--json")
    facts = json.loads(done.stdout)
    assert (facts["kind"], facts["task"], facts["verified"]) == ("transformer", "translation", False)
    pairs = tmp_path / "test.tsv"
    pairs.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in sentences(4)))
    assert "bleu" in json.loads(here("evaluate", folder, pairs, "--json").stdout)
    assert "name the test data" in here("evaluate", folder).stderr
    assert here("check", folder).returncode == 0


def test_a_beam_is_scored_as_it_is_run(pieces, here, tmp_path):
    folder = make_folder(tmp_path / "marian", pieces, **SHAPES["separate-relu"])
    texts, written = [pair.source for pair in sentences(40)], {}
    for penalty in (0.0, 3.0):
        edit_json(folder / "generation_config.json", length_penalty=penalty)
        written[penalty] = here("run", folder, "--num-beams", 3, stdin="\n".join(texts)).stdout.splitlines()
        pairs = zip(texts, written[penalty], strict=True)
        (tmp_path / "test.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
        done = here("evaluate", folder, tmp_path / "test.tsv", "--num-beams", 3, "--json")
        assert json.loads(done.stdout)["exact_match"] == 1
    assert written[0.0] != written[3.0]


def test_a_target_of_no_pieces_has_no_links(shared, here, tmp_path):
    pairs, links = tmp_path / "test.tsv", tmp_path / "links"
    pairs.write_text("the boy\tel niño\nthe boy\t\u200b\nthe boy\tel niño\n")
    done = here("evaluate", shared, pairs, "--alignments", links)
    assert done.returncode == 0, done.stderr
    first, second, third = links.read_text().splitlines()
    assert first == third != ""
    assert second == ""


def test_settings_that_are_not_followed_are_named(shared, here, caplog):
    edit_json(shared / "generation_config.json", repetition_penalty=1.3)
    done = here("run", shared, "the boy")
    assert done.returncode == 0
    assert "repetition_penalty: not followed" in caplog.text


def test_an_end_of_its_own_is_not_followed_and_named(shared):
    path = shared / "generation_config.json"
    for end, notes in ((0, []), ([0], []), ([0, 5], [f"{path}: eos_token_id: not followed"])):
        edit_json(path, eos_token_id=end)
        assert huggingface.load(shared).notes == notes


def test_old_and_inert_keys_are_no_obstacle(pieces, tmp_path):
    folder = make_folder(tmp_path / "old", pieces, **SHAPES["separate-relu"])  # writes something for most texts
    texts = [pair.source for pair in sentences(6)]
    wanted = [answer.text for answer in regard.load(folder).run_all(texts)]
    assert len(set(wanted)) > 3, "translations that are all alike would show nothing"
    edit_config(folder, extra_pos_embeddings=300, static_position_embeddings=True, num_labels=3, output_past=True)
    assert [answer.text for answer in regard.load(folder).run_all(texts)] == wanted


def test_a_half_precision_folder_with_position_tables(shared):
    def halve(tensors):
        for name, tensor in list(tensors.items()):
            tensors[name] = tensor.half()
        tensors["model.encoder.embed_positions.weight"] = sinusoidal_halves(128, 48).half()

    edit(shared, halve)
    assert regard.load(shared).model.embedding.weight.dtype == torch.float32


def test_reading_and_writing_gives_the_same_bits(folder, here, tmp_path):
    done = here("export", folder, tmp_path / "out", "--to", "huggingface")
    assert done.returncode == 0, done.stderr
    wanted, found = load_file(folder / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert wanted.keys() == found.keys()
    for name, weight in wanted.items():
        assert torch.equal(weight, found[name]), name
    assert MarianConfig.from_pretrained(folder).to_dict().items() >= _told(tmp_path / "out").items()


@pytest.mark.parametrize("changes", [{}, {"renormalize_logits": True}, {"forced_eos_token_id": None}])
def test_how_a_folder_is_searched_is_written_and_read_again(pieces, inputs, here, tmp_path, changes):
    folder = make_folder(tmp_path / "in", pieces, **SHAPES["separate-relu"])
    edit_json(folder / "generation_config.json", length_penalty=0.4, **changes)
    assert here("export", folder, tmp_path / "out").returncode == 0
    wanted, found = (huggingface.load(one) for one in (folder, tmp_path / "out"))
    for name in ("num_beams", "length_penalty", "max_new_tokens", "force_eos", "renormalize", "notes"):
        assert getattr(found, name) == getattr(wanted, name), name
    before, after = (MarianMTModel.from_pretrained(one).eval() for one in (folder, tmp_path / "out"))
    assert torch.equal(before.generate(inputs[:9]), after.generate(inputs[:9]))


def _told(folder):
    config = json.loads((folder / "config.json").read_text())
    return {key: value for key, value in config.items() if key not in ("dtype", "architectures")}


@pytest.fixture(scope="module")
def mine(tmp_path_factory, command, tiny):
    """A folder that `regard train translator` made on a user's own pairs."""
    folder = tmp_path_factory.mktemp("mine")
    pairs = folder / "pairs.tsv"
    pairs.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in sentences(2000)))
    done = command("train", "translator", pairs, "-o", folder / "run", *tiny, "training.steps=60")
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_what_we_train_opens_in_transformers_and_gives_the_same(mine, here, tmp_path):
    done = here("export", mine, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    theirs, report = MarianMTModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values()), report
    names = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ours, again = regard.load(mine), regard.load(tmp_path / "out")
    for name, weight in ours.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name]), name
    texts = [pair.source for pair in sentences(10, start=50)]
    batch = names(texts, return_tensors="pt", padding=True, return_token_type_ids=False)
    assert batch.input_ids.tolist() == ours.task.encode(texts).tolist()
    with torch.no_grad():
        target = torch.full((10, 1), ours.tokenizer.bos_id)
        wanted = theirs.eval()(**batch, decoder_input_ids=target).logits
        assert_close(ours.model(batch.input_ids, target), wanted, atol=1e-5, rtol=0)
        written = theirs.generate(**batch, num_beams=1, max_length=30)
    wanted = names.batch_decode(written, skip_special_tokens=True)
    cut = Limits([29] * 10)  # and the begin symbol
    found = generate(ours.model, batch.input_ids, Greedy(), cut)
    assert [ours.tokenizer.decode(hypotheses[0].tokens) for hypotheses in found] == wanted


def test_untied_tables_open_in_transformers(tmp_path):
    config = TransformerConfig(
        vocab_size=300,
        width=16,
        heads=2,
        layers=1,
        feed_forward=16,
        tie_embeddings=False,
        positions="halves",
        special_ids={"pad_id": 299, "bos_id": 299, "eos_id": 0},
    )
    ours = Transformer(config).eval()
    write_folder(tmp_path / "out", marian.files(ours, BPETokenizer.train(["a b c"] * 9, 300)))
    theirs, report = MarianMTModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values()), report
    source, target = torch.randint(2, 299, (3, 5)), torch.randint(2, 299, (3, 4))
    with torch.no_grad():
        wanted = theirs.eval()(input_ids=source, decoder_input_ids=target).logits
        assert_close(ours(source, target), wanted, atol=1e-5, rtol=0)


def test_ctranslate2_converts_it_and_writes_the_same(mine, here, tmp_path):
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    assert here("export", mine, tmp_path / "out").returncode == 0
    TransformersConverter(str(tmp_path / "out")).convert(str(tmp_path / "ct2"))
    engine = ctranslate2.Translator(str(tmp_path / "ct2"), inter_threads=1, intra_threads=1)
    names = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    texts = [pair.source for pair in sentences(20, start=50)]
    sources = [names.convert_ids_to_tokens(names(text).input_ids) for text in texts]
    answers = engine.translate_batch(sources, beam_size=1, max_decoding_length=20, min_decoding_length=0)
    found = generate(regard.load(mine).model, regard.load(mine).task.encode(texts), Greedy(), Limits([20] * len(texts)))
    for answer, hypotheses in zip(answers, found, strict=True):
        assert names.convert_tokens_to_ids(answer.hypotheses[0]) == hypotheses[0].tokens


# ------------------------------------------------ faults


def edit(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def edit_config(folder, **changes):
    edit_json(folder / "config.json", **changes)


def edit_json(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


FAULTS = {
    "missing weight": (lambda f: edit(f, lambda t: t.pop("model.encoder.layers.1.fc1.bias")), "layers.1.fc1.bias"),
    "extra weight": (lambda f: edit(f, lambda t: t.update(extra=torch.zeros(2))), "a weight extra"),
    "wrong shape": (
        lambda f: edit(f, lambda t: t.update({"model.shared.weight": torch.zeros(300, 47)})),
        r"model.shared.weight has shape \(300, 47\), wanted \(300, 48\)",
    ),
    "positions of another kind": (
        lambda f: edit(f, lambda t: t.update({"model.encoder.embed_positions.weight": torch.ones(128, 48)})),
        "embed_positions.weight differs",
    ),
    "unknown key": (lambda f: edit_config(f, rotary=True), "'rotary'"),
    "pre-norm": (lambda f: edit_config(f, normalize_before=True), "normalize_before"),
    "heads do not divide": (
        lambda f: edit_config(f, encoder_attention_heads=5, decoder_attention_heads=5),
        "does not divide",
    ),
    "other family": (lambda f: edit_config(f, model_type="no-such-family"), "'no-such-family'"),
    "truncated pieces": (lambda f: (f / "source.spm").write_bytes((f / "source.spm").read_bytes()[:900]), "source.spm"),
    "missing pieces": (lambda f: (f / "target.spm").unlink(), "target.spm"),
    "truncated vocabulary": (lambda f: (f / "vocab.json").write_text('{"</s>": 0, '), "vocab.json"),
    "vocabulary without padding": (lambda f: (f / "vocab.json").write_text('{"</s>": 0, "<unk>": 1}'), "<pad>"),
    "another model's vocabulary": (
        lambda f: (f / "vocab.json").write_text('{"</s>": 0, "<unk>": 1, "<pad>": 2}'),
        "copy it again",
    ),
    "truncated weights": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:2000]),
        "model.safetensors",
    ),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "no model.safetensors"),
    "a pickle": (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "a pickle.*save_pretrained"),
    "wrong bias": (
        lambda f: edit(f, lambda t: t.update(final_logits_bias=torch.zeros(1, 7))),
        r"final_logits_bias has shape \(1, 7\)",
    ),
    "a beam of no number": (lambda f: (f / "generation_config.json").write_text('{"num_beams": NaN}'), "num_beams"),
    "a penalty too steep": (
        lambda f: edit_json(f / "generation_config.json", length_penalty=11.5),
        "generation_config.json: length_penalty is 11.5, wanted a number from 0 to 10",
    ),
    "a bad beam of config.json": (
        lambda f: ((f / "generation_config.json").unlink(), edit_config(f, num_beams=0)),
        "/config.json: num_beams is 0, wanted a number from 1 on",
    ),
    "a bad beam": (lambda f: (f / "generation_config.json").write_text('{"num_beams": "four"}'), "num_beams"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_that_names_it(shared, here, tmp_path, fault):
    spoil, named = FAULTS[fault]
    spoil(shared)
    with pytest.raises(FolderError, match=named):
        regard.load(shared)
    done = here("export", shared, tmp_path / "out")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_what_marian_does_not_have_is_refused(trained, here, tmp_path):
    done = here("export", trained, tmp_path / "out")
    assert done.returncode == 2
    assert "train it with model.norm=post model.positions=halves to export it" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_export_never_overwrites(mine, here, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    done = here("export", mine, tmp_path)
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert "wanted one of huggingface" in here("export", mine, tmp_path / "x", "--to", "onnx").stderr
    assert "no model that llama.cpp has" in here("export", mine, tmp_path / "x", "--to", "gguf").stderr


def test_a_name_on_the_hub_offline_is_one_line(here, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = here("run", "Helsinki-NLP/opus-mt-en-es", "Hello.")
    assert done.returncode == 2
    assert "is not a folder here" in done.stderr
    assert len(done.stderr.splitlines()) == 1
