"""What a pass through a model costs by formula, for a source of N words and a target of M, or for a text of N + M.

A reader writes nothing: it reads N words and guesses M of them, all or those that were hidden. Beside a picture it
reads its R regions too.

A test holds every formula against the products that torch really does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.config import Config
from regard.data.batches import PairBatch
from regard.layers.image_encoder import halvings
from regard.layers.recurrent import CELLS, LSTM
from regard.models.bert import (
    BertConfig,
    BertForMaskedLMConfig,
    BertForPreTrainingConfig,
    BertForSequenceClassificationConfig,
    BertForTokenClassificationConfig,
)
from regard.models.captioner import CaptionerConfig
from regard.models.conv_seq2seq import ConvConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.rnn_seq2seq import RNNConfig
from regard.models.transformer import TransformerConfig
from regard.models.vilbert import (
    BOX,
    StreamConfig,
    ViLBERTConfig,
    ViLBERTForGroundingConfig,
    ViLBERTForPreTrainingConfig,
    ViLBERTForQuestionAnsweringConfig,
    ViLBERTForRetrievalConfig,
)


@dataclass(frozen=True)
class Formula:
    """Numbers for one pair of N and M words."""

    multiply_adds: float
    attention_numbers: float  # weights of all layers and heads, where they are written out
    state_numbers: float  # carried from step to step after M words


def of_transformer(config: TransformerConfig, n: int, m: int) -> Formula:
    d, f = config.width, config.feed_forward
    encoders, decoders = config.layers, config.decoder_layers or config.layers
    encoder = n * (4 * d * d + 2 * d * f) + 2 * n * n * d
    decoder = m * (6 * d * d + 2 * d * f) + 2 * n * d * d + 2 * (m * m + n * m) * d
    join = 2 * (n + m) * d * d if config.join == "concatenated" else 0
    return Formula(
        encoders * encoder + decoders * decoder + join + m * d * config.output_vocab_size,
        config.heads * (encoders * n * n + decoders * (m * m + n * m)),
        2 * decoders * (n + m) * d,
    )


def of_rnn(config: RNNConfig, n: int, m: int) -> Formula:
    d, layers, cell = config.width, config.layers, CELLS[config.cell]
    ways, each = (2, d // 2) if config.both_ways else (1, d)
    reading = n * layers * ways * cell.gates * each * (d + each)
    writing = m * layers * cell.gates * d * 2 * d
    bridge, attention, context, kept = 0, 0, 0, 0
    if config.bridge != "last_state":
        context = d
        bridge = layers * cell.parts * d * d + cell.gates * d * d  # the first states, and c into the gates, once
        kept = d + cell.gates * d
    if config.bridge == "attention":
        similarity = m * n * d  # the same for a product of vectors and for the last layer of the MLP
        bridge += (m - 1) * cell.gates * d * d + (n + m) * d * d + similarity + m * n * d
        attention, kept = m * n, 2 * n * d
    readout = m * (d + context) * d + m * d * config.vocab_size
    return Formula(reading + writing + bridge + readout, attention, layers * cell.parts * d + kept)


def of_conv(config: ConvConfig, n: int, m: int) -> Formula:
    d, k = config.width, config.kernel
    encoders, decoders = config.layers, config.decoder_layers or config.layers
    encoder = n * 2 * k * d * d
    decoder = m * (2 * k + 2) * d * d + 2 * m * n * d
    return Formula(
        encoders * encoder + decoders * decoder + m * d * d + m * d * config.vocab_size,
        decoders * m * n,
        decoders * (k - 1) * d + 2 * n * d,
    )


def of_gpt(config: GPTConfig, n: int, m: int) -> Formula:
    d, f = config.width, config.feed_forward or 4 * config.width
    return _of_language(config, n + m, blocks=4 * d * d + 2 * d * f, keys=d)


def of_llama(config: LlamaConfig, n: int, m: int) -> Formula:
    d, f = config.width, config.feed_forward
    keys = d * config.num_kv_heads // config.heads
    return _of_language(config, n + m, blocks=2 * d * d + 2 * d * keys + 3 * d * f, keys=keys)


def _of_language(config: GPTConfig | LlamaConfig, t: int, *, blocks: int, keys: int) -> Formula:
    """T words, prompt and text together, all of which get logits; `blocks` are a word's multiply-adds in a block."""
    return Formula(
        config.layers * (t * blocks + 2 * t * t * config.width) + t * config.width * config.vocab_size,
        config.layers * config.heads * t * t,
        2 * config.layers * t * keys,
    )


def of_bert(config: BertConfig, n: int, m: float) -> Formula:
    """N words are read, and M of them are compared with the table, where there is a head for words."""
    d, f = config.width, config.feed_forward or 4 * config.width
    blocks = config.layers * (n * (4 * d * d + 2 * d * f) + 2 * n * n * d)
    pooler = d * d if config.pooler else 0
    return Formula(blocks + pooler + _bert_head(config, n, m), config.layers * config.heads * n * n, 0)


def _bert_head(config: BertConfig, n: int, m: float) -> float:
    d = config.width
    words = m * (d * d + d * config.vocab_size)
    match config:
        case BertForPreTrainingConfig():
            return words + 2 * d
        case BertForMaskedLMConfig():
            return words
        case BertForSequenceClassificationConfig():
            return d * (len(config.labels) or 1)
        case BertForTokenClassificationConfig():
            return n * d * len(config.labels)
    return 0


def of_captioner(config: CaptionerConfig, n: int, m: int) -> Formula:
    """A picture has as many cells as the config says, whatever N; M words are written."""
    d, f, p, layers = config.width, config.feed_forward, config.cells, config.layers
    looks = _looks(config)
    if config.decoder == "transformer":
        block = m * (6 * d * d + 2 * d * f) + 2 * p * d * d + 2 * (m * m + m * p) * d
        writing = layers * block + m * d * config.vocab_size
        looks += layers * config.heads * (m * m + m * p)
        return Formula(_seeing(config) + writing, looks, 2 * layers * (p + m) * d)
    begins = layers * 2 * d * d + p * d * d  # the first states, and the keys
    a_look = d * d + 2 * p * d + d + LSTM.gates * d * d  # query, scores and sum, gate, context into the cell
    words = layers * LSTM.gates * 2 * d * d + 2 * d * d + d * config.vocab_size
    return Formula(_seeing(config) + begins + m * (a_look + words), looks + m * p, 2 * layers * d + 2 * p * d)


def _looks(config: CaptionerConfig) -> int:
    """Weights of attention that the grid takes."""
    if config.vit is not None:
        return config.vit.layers * config.vit.heads * (config.cells + 1) ** 2
    return config.blocks * config.heads * config.cells**2 if config.encoder == "patches" else 0


def _seeing(config: CaptionerConfig) -> float:
    """Multiply-adds of the grid."""
    d, f, p = config.width, config.feed_forward, config.cells
    if config.vit is not None:
        e, words = config.vit.width, p + 1
        block = words * (4 * e * e + 2 * e * config.vit.feed_forward) + 2 * words * words * e
        return p * 3 * config.cell**2 * e + config.vit.layers * block + p * e * d
    if config.encoder == "patches":
        return p * 3 * config.cell**2 * d + config.blocks * (p * (4 * d * d + 2 * d * f) + 2 * p * p * d)
    channels, side = halvings(config.cell, d), config.side // 2
    total, before = 48 * channels[0] * side * side, channels[0]
    for after in channels:
        side //= 1 if after == before else 2
        first = 9 * after * after if after == before else 8 * before * after  # halving: four places, and the shortcut
        total += (first + (2 * config.blocks - 1) * 9 * after * after) * side * side
        before = after
    return total


def of_vilbert(config: ViLBERTConfig, n: int, m: float, r: int) -> Formula:
    """N words are read beside R regions; M of the words are compared with the table, where there is a head for them."""
    text, regions, seeing = config.text, config.regions, config.seeing
    d, e, j = text.width, regions.width, config.joint
    first = seeing.numbers * seeing.inner + seeing.inner * e if seeing.inner else seeing.numbers * e
    alone = text.layers * _block(text, n) + regions.layers * _block(regions, r)
    met = _look(text, n, e, r) + _look(regions, r, d, n) + _block(text, n) + _block(regions, r)
    wholes = (d + e) * j
    attention = text.heads * (config.co_attention_layers * (n * n + n * r) + text.layers * n * n)
    attention += regions.heads * (config.co_attention_layers * (r * r + r * n) + regions.layers * r * r)
    adds = r * (first + BOX * e) + alone + config.co_attention_layers * met + wholes + _vilbert_head(config, m, r)
    return Formula(adds, attention, 0)


def _block(stream: StreamConfig, n: int) -> int:
    d = stream.width
    return n * (4 * d * d + 2 * d * stream.inner) + 2 * n * n * d


def _look(stream: StreamConfig, n: int, other: int, r: int) -> int:
    """N of one stream look at R of another width."""
    d = stream.width
    return n * (2 * d * d + 2 * d * stream.inner) + 2 * r * other * d + 2 * n * r * d


def _vilbert_head(config: ViLBERTConfig, m: float, r: int) -> float:
    d, e, j = config.text.width, config.regions.width, config.joint
    match config:
        case ViLBERTForPreTrainingConfig():
            kinds = config.seeing.classes or config.seeing.numbers
            return m * (d * d + d * config.vocab_size) + r * (e * e + e * kinds) + j
        case ViLBERTForQuestionAnsweringConfig():
            return j * j + j * len(config.labels)
        case ViLBERTForGroundingConfig():
            return r * (e * j + j)
        case ViLBERTForRetrievalConfig():
            return j
    return 0


FORMULAS: dict[type[Config], Callable[..., Formula]] = {  # of a config, and N, M and, beside pictures, R
    TransformerConfig: of_transformer,
    RNNConfig: of_rnn,
    ConvConfig: of_conv,
    GPTConfig: of_gpt,
    LlamaConfig: of_llama,
    BertConfig: of_bert,
    BertForPreTrainingConfig: of_bert,
    BertForMaskedLMConfig: of_bert,
    BertForSequenceClassificationConfig: of_bert,
    BertForTokenClassificationConfig: of_bert,
    CaptionerConfig: of_captioner,
    ViLBERTConfig: of_vilbert,
    ViLBERTForPreTrainingConfig: of_vilbert,
    ViLBERTForQuestionAnsweringConfig: of_vilbert,
    ViLBERTForGroundingConfig: of_vilbert,
    ViLBERTForRetrievalConfig: of_vilbert,
}


def training_flops(model: Any, batches: Sequence[Any]) -> float | None:
    """FLOPs of a training step over these batches: the way forward and, twice as much, back. None: no formula."""
    config: Any = getattr(model, "config", None)  # the loop also trains what has none
    formula = FORMULAS.get(type(config))
    if formula is None:
        return None
    return 6 * sum(rows * formula(config, *sizes).multiply_adds for rows, *sizes in map(_shape, batches))


def _shape(batch: Any) -> tuple[Any, ...]:
    """Rows, and the tokens read and written in each; of hidden words, how many a row has to guess, on average.

    Of pictures also the regions of each.
    """
    if isinstance(batch, PairBatch):
        return (*batch.source.shape, batch.target_in.shape[1])
    if hasattr(batch, "pixels"):
        return len(batch.pixels), 0, batch.target_in.shape[1]
    rows, length = batch.ids.shape
    guessed = len(getattr(batch, "places", ())) / rows
    return (rows, length, guessed, batch.regions.shape[1]) if hasattr(batch, "regions") else (rows, length, guessed)
