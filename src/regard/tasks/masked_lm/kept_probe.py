"""The coreference probe that a model folder keeps, so that `regard show --token it` can say what "it" refers to.

`regard train bert` fits it on stories once, at the end, and stores its direction beside the weights, in a safetensors
file that the manifest lists. It knows the nouns of the stories alone; of others nothing is said.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors import safe_open
from torch import Tensor, nn

from regard.checkpoint import encode_tensors
from regard.errors import FolderError
from regard.inspection.capture import capture
from regard.inspection.trace import Reference
from regard.synthetic.stories.vocabulary import FRAMES
from regard.tasks.masked_lm.coreference import WordTokenizer, probe_coreference
from regard.training.validation import evaluation_mode

PROBE = "coreference.safetensors"
PRONOUN = "it"
NOUNS = frozenset(noun for frame in FRAMES for noun in (*(actor.noun for actor in frame.actors), *frame.objects))


@dataclass(frozen=True)
class KeptProbe:
    """softmax of w · (it ⊙ noun) + u · noun over the nouns of a sentence, on the hidden states of one layer."""

    layer: int  # from 1; 0 would be the embeddings
    direction: Tensor  # (2 D): w and u
    accuracy: float  # in held-out stories
    sentences: int  # that it was scored on

    def to_bytes(self) -> bytes:
        facts = {"layer": str(self.layer), "accuracy": repr(self.accuracy), "sentences": str(self.sentences)}
        return encode_tensors({"direction": self.direction}, facts)

    @classmethod
    def open(cls, path: Path) -> "KeptProbe":
        """Read a file of `to_bytes`; FolderError for any other."""
        try:
            with safe_open(path, "pt") as file:
                facts = file.metadata() or {}
                direction = file.get_tensor("direction").clone()
            return cls(int(facts["layer"]), direction, float(facts["accuracy"]), int(facts["sentences"]))
        except (safetensors.SafetensorError, OSError, KeyError, ValueError) as error:
            raise FolderError(f"{path} is not a coreference probe: {error}; train the model again") from error

    @torch.inference_mode()
    def references(self, model: nn.Module, labels: Sequence[str], forward: Callable[[], Any]) -> tuple[Reference, ...]:
        """What each "it" of a row refers to, among the nouns before it; `forward` runs the model on the row."""
        words = _words(labels)
        tap = f"encoder.blocks.{self.layer - 1}.hidden"
        with capture(model, tap) as captured:
            forward()
        hidden = captured[tap][0][0].float().cpu()  # (T, D)
        across, own = self.direction.chunk(2)
        found = []
        for at in (first for first, word in words.items() if word == PRONOUN):
            nouns = {first: word for first, word in words.items() if first < at and word in NOUNS}
            if len(nouns) > 1:
                places = list(nouns)
                scores = (hidden[at] * hidden[places]) @ across + hidden[places] @ own
                said = {
                    "nouns": tuple(nouns.values()),
                    "positions": tuple(places),
                    "shares": scores.softmax(0).tolist(),
                }
                found.append(Reference(token=at, accuracy=self.accuracy, **said))
        return tuple(found)


def _words(labels: Sequence[str]) -> dict[int, str]:
    """The words in lower case, by their first token, as the probe was fitted; "·" continues a word."""
    found: dict[int, str] = {}
    for number, label in enumerate(labels):
        if found and label.startswith("·"):
            found[next(reversed(found))] += label.removeprefix("·").casefold()
        else:
            found[number] = label.casefold()
    return found


def fit_and_keep(model: nn.Module, tokenizer: WordTokenizer, stories: int) -> dict[str, bytes]:
    """The file of a trained model's probe, fitted on so many stories; none where the embeddings alone do best."""
    with evaluation_mode(model):
        found = probe_coreference(model, tokenizer, num_training=min(8000, stories), num_test=min(1000, stories))
    if found.best.layer == 0:
        return {}
    direction = torch.from_numpy(found.best.classifier.coef_[0]).float()
    return {PROBE: KeptProbe(found.best.layer, direction, found.probe, found.sentences).to_bytes()}
