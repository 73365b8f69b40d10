"""Where the host waits for the accelerator, and why: each function of regard that asks a tensor for its numbers.

A wait costs a round trip, during which the accelerator is idle. One in a step's loss, forward or backward pass is a
mistake; those below are meant. The tests of this folder fail at any other.
"""

METRICS = "the metrics of an evaluation are numbers: once a batch"

HOST_SYNCS: dict[tuple[str, str], str] = {
    (
        "training/loop.py",
        "take_parallel_step",
    ): "the loss and the gradient norm, together once a step: is the step to be taken?",
    ("training/validation.py", "validation_loss"): "the loss of a validation batch is added up in double precision",
    ("training/parallel.py", "Parallel.validation_loss"): "the same, while a run trains",
    ("generation/decode.py", "mask_banned"): "logits that are not finite end the text at once, with an error",
    ("generation/decode.py", "_decode"): "the host holds the texts, and decides which rows have ended",
    (
        "generation/beam.py",
        "beam_search",
    ): "the host decides by the scores which searches are done",
    ("generation/beam.py", "Finished._keep"): "a text that has ended",
    ("layers/decoding.py", "kept_inputs"): "inputs still in their places need no copy of their memory",
    ("layers/sampling.py", "cut_tail"): "a check that the k largest are all that top-p needs; else it sorts them all",
    ("tasks/classification/task.py", "score_logits"): METRICS,
    ("tasks/masked_lm/task.py", "MaskedLMTraining.metrics"): METRICS,
    ("tasks/tagging/task.py", "_predictions"): METRICS,
    ("tasks/translation/task.py", "TranslationTraining.max_new_tokens"): "the host bounds the length of each text",
    ("tasks/translation/task.py", "TranslationTraining.references"): METRICS,
    ("tasks/vision_language/pretraining.py", "ImageTextPretraining.metrics"): METRICS,
    ("tasks/vision_language/pretraining.py", "RetrievalTraining.metrics"): METRICS,
    ("tasks/vision_language/pretraining.py", "_Mean.add"): METRICS,
    ("tasks/vision_language/questions.py", "QuestionTraining.metrics"): METRICS,
}
