"""Read runs: pure functions of frames, charts of frames, reports. No torch here."""
