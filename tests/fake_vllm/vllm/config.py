from dataclasses import dataclass


@dataclass
class ProfilerConfig:
    profiler: str | None = None
    torch_profiler_dir: str = ""
    torch_profiler_record_shapes: bool = False
    torch_profiler_with_stack: bool = True
    torch_profiler_use_gzip: bool = True
