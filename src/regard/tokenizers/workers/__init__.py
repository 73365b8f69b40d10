"""Scripts that run in a child process with bounds (regard.sandbox); they import nothing of regard."""
