"""llama.cpp as a contestant of bench_engine.py, by its plain C interface; run by a Python of its own.

    python engine_llama_cpp.py MODEL.gguf THREADS

Reads a task a line as JSON, answers with the seconds it took: by the clock, and of the processor.
"""

import json
import sys
import time

import llama_cpp as llama
import numpy as np

QUIET = llama.llama_log_callback(lambda *_: None)  # kept: C calls it


class Context:
    """A KV cache for some sequences, and batches of tokens through it."""

    def __init__(self, model, threads, rows, length):
        settings = llama.llama_context_default_params()
        settings.n_ctx, settings.n_seq_max = rows * (length + 256), rows
        settings.n_batch = settings.n_ubatch = 512
        settings.n_threads = settings.n_threads_batch = threads
        self.pointer = llama.llama_init_from_model(model, settings)
        self.vocab_size = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
        self.batch = llama.llama_batch_init(512, 0, 1)

    def read(self, tokens, positions, rows, wanted):
        for at, (token, position, row, want) in enumerate(zip(tokens, positions, rows, wanted, strict=True)):
            self.batch.token[at], self.batch.pos[at] = int(token), position
            self.batch.n_seq_id[at], self.batch.seq_id[at][0] = 1, row
            self.batch.logits[at] = want
        self.batch.n_tokens = len(tokens)
        assert llama.llama_decode(self.pointer, self.batch) == 0

    def argmax(self, at):
        return int(np.ctypeslib.as_array(llama.llama_get_logits_ith(self.pointer, at), (self.vocab_size,)).argmax())

    def close(self):
        llama.llama_batch_free(self.batch)
        llama.llama_free(self.pointer)


def main():
    path, threads = sys.argv[1], int(sys.argv[2])
    llama.llama_backend_init()
    llama.llama_log_set(QUIET, None)
    model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        prompts, new = task["prompts"], task["new"]
        context = Context(model, threads, len(prompts), len(prompts[0]))
        started = time.perf_counter(), time.process_time()
        for row, prompt in enumerate(prompts):
            for first in range(0, len(prompt) - 1, 512):
                part = prompt[:-1][first : first + 512]
                context.read(part, range(first, first + len(part)), [row] * len(part), [0] * len(part))
        if new:
            tokens = [prompt[-1] for prompt in prompts]
            started = time.perf_counter(), time.process_time()
            for step in range(new):
                positions = [len(prompt) - 1 + step for prompt in prompts]
                context.read(tokens, positions, range(len(prompts)), [1] * len(prompts))
                tokens = [context.argmax(row) for row in range(len(prompts))]
        print(json.dumps([time.perf_counter() - started[0], time.process_time() - started[1]]), flush=True)
        context.close()


if __name__ == "__main__":
    main()
