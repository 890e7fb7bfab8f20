"""Charts: each a function from a frame to an altair chart; all of them already reduced."""
