"""The private names of torch.hub that packages use."""

import os
import re

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024


def _get_torch_home() -> str:
    """The folder of downloads: $TORCH_HOME, or torch in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))
