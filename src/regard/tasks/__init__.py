"""What a model learns to do: one package a task, with its data, its loss, its pipeline and its evaluation."""
