"""nvidia-smi samples: clocks, power, temperature and throttle reasons over time."""

from whichwall.schemas.table import FLOAT64, INT32, INT64, TEXT, Column, Table


class Samples(Table):
    """A row per sample of one GPU, in order of arrival; an unreadable value is null."""

    NAME = "samples"

    time_ns = Column(
        INT64, "nvidia-smi's own stamp, Unix epoch, ms resolution.", "ns", required=True
    )
    received_ns = Column(INT64, "When the row reached us; null for imported samples.", "ns")
    gpu_uuid = Column(TEXT, "GPU by UUID.")
    gpu_index = Column(INT32, "nvidia-smi's index; not CUDA's ordinal.")
    pstate = Column(TEXT, "Performance state, P0 the fastest.")
    sm_clock_mhz = Column(FLOAT64, "Clock of the multiprocessors.", "MHz")
    memory_clock_mhz = Column(FLOAT64, "Clock of the memory.", "MHz")
    graphics_clock_mhz = Column(FLOAT64, "Graphics clock.", "MHz")
    power_w = Column(FLOAT64, "power.draw: 1 s average on Ampere and later, except GA100.", "W")
    power_instant_w = Column(FLOAT64, "power.draw.instant.", "W")
    power_average_w = Column(FLOAT64, "power.draw.average, over 1 s.", "W")
    power_limit_w = Column(FLOAT64, "The limit in force.", "W")
    temperature_c = Column(FLOAT64, "GPU temperature.", "°C")
    memory_temperature_c = Column(FLOAT64, "Memory temperature.", "°C")
    temperature_headroom_c = Column(FLOAT64, "Degrees left before it slows itself.", "°C")
    utilization_percent = Column(FLOAT64, "Share of time in which any kernel ran.", "%")
    memory_utilization_percent = Column(FLOAT64, "Share of time in which memory was used.", "%")
    memory_used_mib = Column(FLOAT64, "Memory in use.", "MiB")
    throttle_reasons = Column(INT64, "Bit mask of clock event reasons, NVML's bits.")
