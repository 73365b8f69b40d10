"""The functions that make tensors on the host on purpose, and why."""

BATCH = "a batch of the data: made on the host, and moved as a whole by Runtime.move"
INPUT = "ids of a user's input: made on the host, and moved by its caller"
INT8 = "int8 is for the CPU, and refuses another device"
SCORES = "numbers of an evaluation, whose logits have been copied back"

# Recorded programs and packed blocks, whose kernels are for the CPU and which refuse another device.
HOST_FILES = {"generation/engine.py", "generation/recording.py", "ops/packed.py", "ops/program.py"}

HOST_DATA: dict[tuple[str, str], str] = {
    ("generation/speculative.py", "_Smaller.guess"): "counts of Python rows, which index logits of the recorded step",
    ("generation/speculative.py", "_Smaller.reorder"): "rows of the recorded step, which the host orders",
    ("generation/speculative.py", "decode_drafted"): "rows of the recorded step, which the host orders",
    ("layers/decoding.py", "pad_left"): "prompts are lists of Python; padded on the host and moved at the end",
    ("layers/decoding.py", "start_window"): "prompts are lists of Python; windows are moved at the end",
    ("layers/masks.py", "Varlen.cu_seqlens"): "the kernel of unpadded batches reads it on the host",
    ("layers/masks.py", "Varlen.document_ids"): "of an unpadded batch, which is for the CPU; moved where it is not",
    ("models/rnn_lm.py", "RNNLM.start"): "prompts are lists of Python; padded on the host and moved at the end",
    (
        "layers/positions.py",
        "Rotary.__init__",
    ): "a formula, with numbers on the meta device too; then a buffer",
    ("ops/dropout.py", "_Dropout.forward"): "two numbers for the C form, which is for the CPU",
    ("ops/quantized.py", "quantize_rows"): INT8,
    ("ops/quantized.py", "FbgemmInt8.__init__"): INT8,
    ("tasks/captioning/dataset.py", "CaptionCollator.batch"): BATCH,
    ("tasks/classification/evaluate.py", "_score_rows"): SCORES,
    ("tasks/classification/pipeline.py", "Classifier.logits"): SCORES,
    ("tasks/classification/task.py", "balancing_weights"): "a number a class, from the data; the loss moves it",
    ("tasks/encoders/encoding.py", "pad_rows"): INPUT,
    ("tasks/encoders/encoding.py", "embed_rows"): "the vectors that are returned, for numpy",
    ("tasks/encoders/encoding.py", "embed_rows.all_real"): "of unpadded rows, which are for the CPU",
    ("tasks/fine_tuning.py", "encoder_weights"): "an initial weight: loaded before the model is moved",
    ("tasks/language_modeling/dataset.py", "LanguageText._batch"): BATCH,
    ("tasks/language_modeling/evaluate.py", "_Reader.__init__"): "lengths of tokens in bytes, which the host counts",
    ("tasks/language_modeling/evaluate.py", "_Reader.windows"): BATCH,
    ("tasks/language_modeling/evaluate.py", "_Reader._tokens"): BATCH,
    ("tasks/language_modeling/pipeline.py", "TextGenerator.log_probabilities"): INPUT,
    ("tasks/masked_lm/coreference.py", "_accuracy_by_head"): SCORES,
    ("tasks/masked_lm/dataset.py", "MaskedText._collate"): BATCH,
    ("tasks/masked_lm/kept_probe.py", "fit_and_keep"): SCORES,
    ("tasks/translation/task.py", "TranslationTraining.encode"): INPUT,
    ("tasks/vision_language/dataset.py", "ImageTextData._collate"): BATCH,
    ("tasks/vision_language/dataset.py", "ImageTextData._masked_regions"): BATCH,
    ("tasks/vision_language/evaluate_scenes.py", "_attention_on_objects"): INPUT,
    ("tasks/vision_language/trace.py", "trace_inputs"): INPUT,
    ("tasks/warm_start.py", "init_embeddings"): "word vectors of a file: moved to the weights that they become",
}
