"""torch.hub: weights from URLs, kept in a folder, and models of a local repository with a `hubconf.py`."""

import hashlib
import importlib.util
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

from . import errors
from .files.saving import replacing
from .serialization import load as _load_file

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_HASH = re.compile(r"-([a-f0-9]*)\.")
_CHUNK = 1 << 17
_dir: list = [None]


def get_dir() -> str:
    """The folder of what was downloaded: what set_dir was given, else $TORCH_HOME/hub, else ~/.cache/torch/hub."""
    if _dir[0] is not None:
        return _dir[0]
    home = os.getenv("TORCH_HOME") or os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d) -> None:
    """Keep what is downloaded in this folder."""
    _dir[0] = os.path.expanduser(d)


def download_url_to_file(url, dst, hash_prefix=None, progress=True) -> None:
    """Download to a path, where the file appears when it is whole.

    Args:
        url: also `file://`
        dst: the path
        hash_prefix: what the SHA256 of the file must begin with
        progress: write to stderr how far it is

    Raises RuntimeError when the hash differs, urllib's URLError when the URL cannot be reached.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "torch.hub"})
    try:
        with urllib.request.urlopen(request) as source, replacing(os.path.expanduser(dst)) as file:
            total, done, digest = source.headers.get("Content-Length"), 0, hashlib.sha256()
            while chunk := source.read(_CHUNK):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                if progress:
                    sys.stderr.write(f"\r{done}{f' of {total}' if total else ''} bytes")
            if progress:
                sys.stderr.write("\n")
            if total is not None and done != int(total):
                raise RuntimeError(f"{url} broke off: {done} of {total} bytes came")
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
    except urllib.error.URLError as error:
        error.add_note(f"  {url}: without a network, put the file at {dst}, where it is looked for first")
        raise  # programs catch URLError, and HTTPError by its code


def load_state_dict_from_url(
    url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False
):
    """What torch.load gives for the file at a URL, downloaded only when it is not there yet.

    Args:
        url: also `file://`
        model_dir: where the file is kept. Default: `checkpoints` in `get_dir()`
        map_location, weights_only: as of torch.load; note that weights_only is False, as in PyTorch
        progress: write to stderr how far the download is
        check_hash: the file's name has the start of its SHA256, `name-<sha256>.ext`, and must keep to it
        file_name: another name for the file
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = os.path.basename(urllib.parse.urlparse(url).path) if file_name is None else file_name
    if not name or name in (".", ".."):
        raise ValueError(f"the URL {url} has no file name; give file_name")
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        found = _HASH.search(name) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress)
    return _load_file(path, map_location, weights_only=weights_only)


# --- repositories ----------------------------------------------------------------------------------------------------------


def _conf(repo, source):
    if source == "github":
        raise errors.unsupported("repositories on GitHub", f"`git clone` of {repo} and source='local' with its path")
    if source != "local":
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    path = os.path.join(os.path.expanduser(repo), "hubconf.py")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path} is not there: a repository has its models in hubconf.py")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(path))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.path.dirname(path))
    missing = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module, name):
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(github, force_reload=False, skip_validation=False, trust_repo=None, verbose=True, *, source="local"):
    """The names of the models in a local repository."""
    found = vars(_conf(github, source))
    return [name for name, value in found.items() if callable(value) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo=None, *, source="local"):
    """The docstring of a model in a local repository."""
    return _entry(_conf(github, source), model).__doc__


def load(
    repo_or_dir,
    model,
    *args,
    source="github",
    trust_repo=None,
    force_reload=False,
    verbose=True,
    skip_validation=False,
    **kwargs,
):
    """A model of a local repository: the function of this name in its `hubconf.py`, called with these arguments.

    Raises NotImplementedError for source="github": clone the repository and give its path.
    """
    return _entry(_conf(repo_or_dir, source.lower()), model)(*args, **kwargs)
