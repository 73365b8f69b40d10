"""Training: one loop for every task, and what it is made of.

config       TrainingConfig: the keys under `training.` on the command line
loop         the training loop: gradient accumulation, gradient clipping, validation, early stopping
schedule     the learning-rate schedules, and when a run is over
optimizer    AdamW and Muon, their state in a checkpoint
muon         the Muon optimizer
validation   validation loss and a task's metrics
run_folder   checkpoints of a run, its lock, resuming
scaling      activation checkpointing and torch.compile, applied from outside
speed        tokens per second, utilization, time left
flops        FLOPs of a training step
log          metrics.jsonl and TensorBoard
"""
