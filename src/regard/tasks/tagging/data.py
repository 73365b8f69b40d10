"""Tagged sentences made ready for a tagger."""

from collections.abc import Sequence
from pathlib import Path

from regard.data.batches import IGNORED
from regard.data.readers.conll import Tagged
from regard.data.rows import RowData, Rows
from regard.models.bert import BertForTokenClassificationConfig
from regard.tasks.fine_tuning import fitted, start_of, words_of
from regard.tasks.recipe import Given, Prepared, Run
from regard.tasks.tagging.corpus import TaggedDataConfig, read_tagged_corpus
from regard.tasks.tagging.task import Tagging
from regard.tokenizers.wordpiece import WordPieceTokenizer, encode_in_rows, first_token_positions


def prepare(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """The tagging task on the user's files."""
    settings: TaggedDataConfig = run.data  # type: ignore[assignment]
    config: BertForTokenClassificationConfig = run.model  # type: ignore[assignment]
    corpus = read_tagged_corpus(given.paths, settings)
    texts = (" ".join(sentence.words) for sentence in corpus.training)
    tokenizer = words_of(given, texts, config.vocab_size, tokenizer_file)
    config = fitted(config, given, tokenizer).model_copy(update={"labels": corpus.labels})
    training, _ = rows_of(corpus.training, corpus.labels, tokenizer, config.context)
    validation, sentences = rows_of(corpus.validation, corpus.labels, tokenizer, config.context)
    task = Tagging(RowData(training, validation), corpus.labels, sentences)
    notes = [
        *corpus.notes,
        f"{len(corpus.training):,} sentences to train on, {len(corpus.validation):,} held out; "
        f"{len(corpus.labels)} tags ({', '.join(corpus.labels[:10])})",
    ]
    return Prepared(task, config, notes, start_of(given, config))


def rows_of(
    sentences: Sequence[Tagged], labels: Sequence[str], tokenizer: WordPieceTokenizer, longest: int
) -> tuple[Rows, list[int]]:
    """A row a sentence, of a long one several; each word's label is wanted of its first piece. Beside them, of which
    sentence each row is."""
    numbers = {label: number for number, label in enumerate(labels)}
    encoded, targets, owners = [], [], []
    for number, sentence in enumerate(sentences):
        for start, row in encode_in_rows(tokenizer, sentence.words, longest):
            wanted = [IGNORED] * len(row.ids)
            for word, place in first_token_positions(row).items():
                wanted[place] = numbers[(sentence.labels or ())[start + word]]
            if any(one != IGNORED for one in wanted):  # of a lone accent nothing is left
                encoded.append(row)
                targets.append(wanted)
                owners.append(number)
    return Rows(encoded, targets, tokenizer.pad_id), owners
