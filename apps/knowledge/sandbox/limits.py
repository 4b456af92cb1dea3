"""What reading one file may take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one reading. ``wall_s`` and ``cpu_s`` bound time, the rest memory and the result's size."""

    wall_s: float = 120.0
    cpu_s: int = 100
    memory_bytes: int = 2 << 30
    output_bytes: int = 256 << 20


A_PAGE = Limits(wall_s=60.0, cpu_s=60)  # one page whose text is recognised: 1 to 3 s of CPU where nothing is odd
