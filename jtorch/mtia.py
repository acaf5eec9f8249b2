"""torch.mtia: not there. is_available() is False and device_count() is 0."""

from .absent_device import *  # noqa: F403
