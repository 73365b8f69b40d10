"""The tiny configs that every model's file has, by interface. A new model in MODELS is found here."""

from dataclasses import dataclass

import torch

from regard.config import Config
from regard.models import MODELS, build, examples, kind_of, model_class
from regard.models.base import Interface, Model


@dataclass(frozen=True)
class Example:
    """A config, and models of it."""

    config: Config
    number: int = 0  # among those of its kind

    @property
    def kind(self) -> str:
        return kind_of(self.config)

    @property
    def interface(self) -> Interface:
        return model_class(self.kind).interface

    def model(self, seed: int = 0) -> Model:
        torch.manual_seed(seed)
        return build(self.config).eval()

    def loud_model(self) -> Model:
        """One whose parameters all matter: large matrices, and biases and norms that differ from their initial values.

        A fresh language model attends almost uniformly: its scores are near 0, and a fault in them goes unseen.
        """
        model = self.model()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(std=parameter.shape[-1] ** -0.5)
                else:
                    parameter.add_(torch.randn_like(parameter), alpha=0.2)
        return model


EXAMPLES = [Example(config, number) for kind in MODELS for number, config in enumerate(examples(kind))]


def of_interface(interface: Interface) -> list[Example]:
    return [example for example in EXAMPLES if example.interface == interface]


SEQ2SEQ = of_interface("seq2seq")
CAUSAL_LM = of_interface("causal_lm")
ENCODERS = of_interface("encoder")
CAPTIONERS = of_interface("captioner")
VISION_LANGUAGE = of_interface("vision_language")


def example_of(kind: str, number: int = 0) -> Example:
    return [example for example in EXAMPLES if example.kind == kind][number]


def named(example: Example) -> str:
    """The id of a test."""
    return f"{example.kind}-{example.number}"
