"""What can run a model's passes: one module per engine, all with a decoder's two calls."""
