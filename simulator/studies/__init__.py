"""Studies: questions answered by several runs. Each reads results and returns plain tables and prose."""
