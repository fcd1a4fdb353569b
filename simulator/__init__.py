"""batchsim: what continuous batching is worth on your traffic, and why."""
