"""Scripts that run in a child process with bounds (regard.limits); they import nothing of regard."""
