"""What the tests of language families share: a small tokenizer, folders of random models, and ways to spoil them."""

import json
import shutil

import pytest
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import decoders, models, pre_tokenizers, trainers

from regard.synthetic.translation.sentences import sentences

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

SIZE = 300
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


@pytest.fixture(scope="session")
def bpe():
    """Byte-level BPE of 300 tokens, three of them specials."""
    core = tokenizers.Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator((pair.source for pair in sentences(500)), trainer)
    assert core.get_vocab_size() == SIZE
    return core


@pytest.fixture(scope="session")
def make_folder(bpe):
    """A Hugging Face folder of a random model, its weights scaled up so that differences would show."""

    def make(folder, model, **settings):
        torch.manual_seed(1)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if weight.dim() > 1:
                    weight.normal_(std=0.3 if "wpe" in name or "wte" in name or "embed" in name else 0.2)
                else:
                    weight.normal_(mean=float("norm" in name or "ln_" in name), std=0.2)
        model.generation_config = transformers.GenerationConfig(**settings)
        model.save_pretrained(folder)
        bpe.save(str(folder / "tokenizer.json"))
        words = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": SPECIALS[0], "chat_template": "{{ 1 }}"}
        (folder / "tokenizer_config.json").write_text(json.dumps(words))
        return folder

    return make


@pytest.fixture(scope="session")
def ids():
    """Rows of random ids."""
    return torch.randint(0, SIZE, (4, 40), generator=torch.Generator().manual_seed(3))


@pytest.fixture(scope="session")
def edit():
    def change_weights(folder, change):
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return change_weights


@pytest.fixture(scope="session")
def edit_json():
    def change_json(path, **changes):
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change_json


@pytest.fixture
def copy(tmp_path):
    """A folder to spoil."""
    return lambda folder: shutil.copytree(folder, tmp_path / "copy")
