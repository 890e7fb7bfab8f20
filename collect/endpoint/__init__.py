"""Measure a running server from outside, by its completions API and a stopwatch: no torch."""
