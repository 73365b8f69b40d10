"""Serve models over HTTP: the OpenAI API with continuous batching, and regard's own tasks, traces and figures."""
