"""Anomaly detection: the forward line of a failing backward step, and nan found where it appears."""

import warnings

from ..core.record import tls
from .mode import is_anomaly_check_nan_enabled, is_anomaly_enabled


def _set(mode, check_nan):
    extra = tls.me.extra
    tls.me.put("anomaly", mode)
    if check_nan:
        extra.pop("check_nan", None)
    else:
        extra["check_nan"] = False


class set_detect_anomaly:
    """Turn anomaly detection on or off, at once; as a context manager, until its end."""

    def __init__(self, mode, check_nan=True):
        self.prev = is_anomaly_enabled()
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        _set(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        _set(self.prev, self.prev_check_nan)


class detect_anomaly:
    """While it holds, nodes remember where they were made, and backward looks for nan after every step."""

    def __init__(self, check_nan=True):
        self.prev = is_anomaly_enabled()
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self):
        self.prev = is_anomaly_enabled()
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        _set(True, self.check_nan)

    def __exit__(self, *exc):
        _set(self.prev, self.prev_check_nan)


__all__ = ["detect_anomaly", "set_detect_anomaly"]
