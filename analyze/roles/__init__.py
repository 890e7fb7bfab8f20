"""What part of the model each kernel works for: shape proposes, order decides.

Start at `attribute`; `candidates` and `rules` say what shapes allow, `stages` and `order` what
the sequence allows.
"""
