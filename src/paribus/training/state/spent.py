"""What a training took, over all its parts: it may go on in another number of processes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Spent:
    """Time until a step."""

    seconds: float = 0.0
    """By the clock, while it trained."""
    device_seconds: float = 0.0
    """The same summed over the devices, a process each, of every part."""

    @property
    def device_hours(self) -> float:
        """Hours of devices."""
        return self.device_seconds / 3600

    def later(self, seconds: float, devices: int) -> "Spent":
        """After so many more seconds on so many devices."""
        return Spent(self.seconds + seconds, self.device_seconds + seconds * devices)
