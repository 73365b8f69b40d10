"""What `regard run` does with a model that reads: fill in words, classify, tag, embed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import ConfigError, InputError
from regard.printing import print_json
from regard.progress import note

if TYPE_CHECKING:
    from regard.tasks.classification.pipeline import Classifier
    from regard.tasks.embedding.pipeline import Embedder
    from regard.tasks.masked_lm.pipeline import FilledMask, FillMask
    from regard.tasks.tagging.pipeline import Tagger

BAR = 24  # signs of a probability of 1
NEIGHBORS = 3


def read(
    runner: "Embedder",
    texts: list[str],
    *,
    embed: bool,
    second: str | None,
    count: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Run a reader on texts: its own task, or with `embed` (and without a head) their vectors."""
    from regard.tasks.classification.pipeline import Classifier
    from regard.tasks.masked_lm.pipeline import FillMask
    from regard.tasks.tagging.pipeline import Tagger

    blank = sum(not text.strip() for text in texts)
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise InputError("no text has words; wanted one at least")
    if embed or not isinstance(runner, FillMask | Classifier | Tagger):
        if second is not None:
            raise ConfigError("--second is for pairs; give both texts to be embedded as INPUT")
        mask = runner.tokenizer.id_to_token(runner.tokenizer.mask_id) or "[MASK]"
        if not embed and any(mask in text for text in texts):
            note(f"this model, a {runner.kind}, has no head that fills in words: {mask} is read as it is written")
        _embed(runner, texts, output, as_json)
        _tell_blank(blank)
        return
    if output is not None:
        raise ConfigError(f"-o {output} draws a map of texts; add --embed")
    if count is not None and not isinstance(runner, FillMask):
        raise ConfigError(f"--guesses {count} is for a model that fills in words; leave it out")
    if isinstance(runner, FillMask):
        _fill(runner, texts, second, count, as_json)
    elif isinstance(runner, Classifier):
        _classify(runner, texts, second, as_json)
    else:
        if second is not None:
            raise ConfigError("--second is for pairs, and a tagger reads one text at a time; leave it out")
        _tag(runner, texts, as_json)
    if runner.cut:
        note(f"{runner.cut} of {len(texts)} texts were longer than {runner.longest} pieces: their ends were not read")
    _tell_blank(blank)


def _tell_blank(count: int) -> None:
    if count:
        note(f"{count} blank texts left out")


def _fill(runner: "FillMask", texts: list[str], second: str | None, count: int | None, as_json: bool) -> None:
    from regard.tasks.masked_lm.pipeline import GUESSES

    if second is not None:
        for text in texts:
            _follow(runner, text, second, count, as_json)
        return
    for found in runner.fill(texts, count or GUESSES):
        if as_json:
            print_json({"text": found.source, "filled": found.text, "places": _as_lists(found)})
        else:
            _show_filled(found)


def _follow(runner: "FillMask", text: str, second: str, count: int | None, as_json: bool) -> None:
    """How likely the second text follows; where one of them hides a word, also which it may be beside the other."""
    from regard.tasks.masked_lm.pipeline import GUESSES

    mask = runner.tokenizer.id_to_token(runner.tokenizer.mask_id)
    hides = mask is not None and mask in text + second
    if count is not None and not hides:
        raise ConfigError(f"--guesses {count} is for hidden words, and these texts hide none; leave it out")
    filled, cut = None, runner.cut
    # One that only fills in words is not asked what follows, where it has a word to fill in.
    share = None if hides and not hasattr(runner.model, "next_logits") else runner.follows(text, second)
    if hides:
        runner.cut = cut  # `fill` counts a text that is too long
        filled = runner.fill([text], count or GUESSES, second=second)[0]
    if as_json:
        words = {"filled": filled.text, "filled_second": filled.second, "places": _as_lists(filled)} if filled else {}
        print_json({"text": text, "second": second, **words, "follows": share})
        return
    if filled:
        _show_filled(filled)
    if share is not None:
        print(f"{share:.1%} likely that it follows: {text} | {second}")


def _as_lists(found: "FilledMask") -> list[list[dict[str, Any]]]:
    return [[{"piece": one.piece, "probability": one.probability} for one in place] for place in found.places]


def _show_filled(found: "FilledMask") -> None:
    print(found.text if found.second is None else f"{found.text} | {found.second}")
    for number, place in enumerate(found.places, 1):
        if len(found.places) > 1:
            print(f"  place {number}")
        for guess in place:
            _bar(guess.piece, guess.probability)


def _classify(runner: "Classifier", texts: list[str], second: str | None, as_json: bool) -> None:
    firsts, seconds = _pairs(texts, second, runner.pairs)
    for found in runner.run_all(firsts, seconds):
        if as_json:
            pair = {} if found.second is None else {"second": found.second}
            judged = {"label": found.label, "probabilities": found.probabilities} if found.label else {}
            print_json({"text": found.text, **pair, **judged, "score": found.score})
        elif found.label is None:
            print(f"{found.score:.3f}" + (f"  {found.text}" if len(texts) > 1 else ""))
        elif len(texts) == 1:
            print(found.label)
            for label, share in list(found.probabilities.items())[:10]:
                _bar(label, share)
        else:
            print(f"{found.label}\t{found.score:.3f}\t{found.text}")


def _pairs(texts: list[str], second: str | None, known: bool | None) -> tuple[list[str], list[str] | None]:
    """A text with a tab in it is a pair, unless it is known that the model reads one text at a time."""
    if second is not None:
        return texts, [second] * len(texts)
    if known is False:
        return texts, None
    split = [text.partition("\t") for text in texts]
    if not any(tab for _, tab, _ in split):
        return texts, None
    for number, (first, tab, other) in enumerate(split, 1):
        if not (tab and first.strip() and other.strip()):
            raise InputError(f"text {number} is no pair, others are; wanted two texts with a tab between them in each")
    return [first for first, _, _ in split], [other for _, _, other in split]


def _tag(runner: "Tagger", texts: list[str], as_json: bool) -> None:
    for found in runner.run_all(texts):
        if as_json:
            words = [{"word": one.text, "label": one.label, "probability": one.probability} for one in found.words]
            named = [{"text": one.text, "type": one.type} for one in found.entities]
            print_json({"text": found.text, "words": words, "entities": named})
            continue
        width = max((len(word.text) for word in found.words), default=0) + 2
        for word in found.words:
            print(f"{word.text:<{width}}{word.label:<12}{word.probability:.3f}")
        for entity in found.entities:
            print(f"{entity.type}: {entity.text}")


def _embed(runner: "Embedder", texts: list[str], output: Path | None, as_json: bool) -> None:
    if output is not None:
        from regard.inspection.map import check_map

        check_map(output)
        if len(texts) < 3:
            raise InputError(f"a map of {len(texts)} texts shows nothing; give three at least")
    vectors = runner.embed(texts)
    if runner.cut:
        note(f"{runner.cut} of {len(texts)} texts were longer than {runner.longest} pieces: their ends were not read")
    if as_json:
        for text, vector in zip(texts, vectors, strict=True):
            print(
                json.dumps({"text": text, "vector": [round(float(value), 7) for value in vector]}, ensure_ascii=False)
            )
    else:
        _show_near(texts, vectors)
    if output is not None:
        from regard.inspection.map import pca, save_map

        save_map(output, [_short(text) for text in texts], pca(vectors), title="texts by their vectors")
        note(f"wrote {output}")


def _show_near(texts: list[str], vectors: Any) -> None:
    """For each text the nearest others, with cosine and euclidean distance; of one text its vector."""
    import numpy as np

    if len(texts) == 1:
        print(" ".join(f"{value:.4f}" for value in vectors[0]))
        return
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for number, text in enumerate(texts[: 1 if len(texts) == 2 else None]):
        print(text)
        cosines = units @ units[number]
        near = [other for other in (-cosines).argsort().tolist() if other != number]
        for other in near[:NEIGHBORS]:
            apart = np.linalg.norm(vectors[other] - vectors[number])
            print(f"  cosine {cosines[other]:+.3f}   distance {apart:.3f}   {texts[other]}")


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"


def _bar(name: str, share: float) -> None:
    print(f"  {share:6.1%}  {name:<16}{'█' * round(BAR * share)}".rstrip())
