"""What can run a model, by the names of `--engine`."""

EAGER, STATIC_CACHE, CUDA_GRAPH = "eager", "static-cache", "cuda-graph"
COMPILE, COMPILE_REDUCE_OVERHEAD = "compile", "compile-reduce-overhead"
OPENAI = "openai"  # a running server, by its completions API
VLLM = "vllm"  # its engine in this process
