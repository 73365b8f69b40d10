"""The settings of a training run: the keys under `training.` on the command line."""

from typing import Literal

from pydantic import Field

from regard.config import Config
from regard.training.optimizer import Kind
from regard.training.parallel import Mode
from regard.training.schedule import Schedule


class TrainingConfig(Config):
    """How long a run is, how it steps, and what it evaluates and saves."""

    # length
    steps: int = Field(1000, ge=1, description="optimizer steps of the whole run, at most")
    epochs: float | None = Field(
        None,
        gt=0,
        description="passes over the data; limits warmup to a tenth of the run and evaluations to four an epoch",
    )
    minutes: float | None = Field(None, gt=0, description="time limit; the schedule is fitted to it")
    patience: int | None = Field(
        None, ge=1, description="early stopping: evaluations without a better one before the run ends"
    )
    # batches
    max_tokens: int = Field(
        4096, ge=16, le=100_000_000, description="tokens of a batch: rows x length, padding included"
    )
    gradient_accumulation: int = Field(1, ge=1, description="batches whose gradients are summed for one step")
    # steps
    optimizer: Kind = Field("adamw", description="muon: Muon for the weights of linear layers, AdamW for the rest")
    learning_rate: float = Field(1e-3, gt=0, description="the peak learning rate")
    warmup: int = Field(100, ge=0, description="steps of linear warmup to the peak")
    schedule: Schedule = Field("inverse_sqrt", description="learning-rate schedule after the warmup")
    decay_share: float = Field(0.2, gt=0, le=1, description="wsd schedule: share of the run that decays to zero")
    weight_decay: float = Field(0.01, ge=0, description="decoupled weight decay, of matrices only")
    max_grad_norm: float = Field(1.0, gt=0, description="gradient clipping: largest norm of the whole gradient")
    # evaluation and checkpoints
    evaluate_every: int = Field(500, ge=1, description="steps between evaluations on the validation data")
    evaluate_examples: int = Field(200, ge=1, description="validation examples decoded at each of them")
    checkpoint_every: int = Field(500, ge=1, description="steps between checkpoints")
    select: Literal["loss", "metric", "last"] = Field(
        "loss",
        description="which weights the model keeps, and patience waits for: of the lowest validation loss, of the best "
        "value of the task's main metric, or the last",
    )
    keep_checkpoints: int = Field(2, ge=2, description="newest checkpoints to keep, besides the best")
    average_checkpoints: int = Field(
        1, ge=1, description="checkpoint averaging: try the mean of so many as final weights"
    )
    # how a step is computed
    compile: bool = Field(False, description="torch.compile each block: a minute at the start, then faster steps")
    activation_checkpointing: bool = Field(
        False, description="recompute the activations of each block in the backward pass: less memory, 1/3 more time"
    )
    # with several processes
    parallel: Mode = Field(
        "ddp", description="under torchrun: ddp: a model in each process; fsdp: sharded; hsdp: sharded within each host"
    )
    backend: str = Field("auto", description="under torchrun: auto, gloo, nccl, …: how processes exchange tensors")
    timeout: float = Field(600, gt=0, description="under torchrun: seconds until a process that does not answer fails")
    seed: int = Field(1, ge=0, description="of the initial weights, the order of the data, and dropout")
