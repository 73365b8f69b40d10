"""What the page asks of the models: figures, traces, predictions, steps of decoding, and folders that it watches."""
