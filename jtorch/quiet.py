"""jax's messages are not a program's: one whose own log shows INFO or DEBUG would show how jax looks for devices, and each compilation."""

import logging

_logger = logging.getLogger("jax")
if _logger.level == logging.NOTSET:
    _logger.setLevel(logging.WARNING)
