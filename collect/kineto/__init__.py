"""Kineto JSON, plain or gz, into the trace tables of a run: streamed, exact, lenient."""
