"""The private names of torch.hub that packages use."""

import errno
import hashlib
import os
import re
import shutil
import sys
import tempfile
import uuid
import zipfile
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

__all__ = [  # modules that packages take from here, as torch.hub has them
    "HTTPError", "Path", "Request", "URLError", "errno", "hashlib", "os", "re", "shutil", "sys", "tempfile", "urlopen", "urlparse",
    "uuid", "zipfile",
]  # fmt: skip
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024


def _get_torch_home() -> str:
    """The folder of downloads: $TORCH_HOME, or torch in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))
