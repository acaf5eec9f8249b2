"""torch.hub: files by URL, the folder they are kept in, local repositories."""

import hashlib
import os
import urllib.error

import pytest

import jtorch
from tests.oracle import both


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(jtorch.hub, "_dir", [None])
    jtorch.hub.set_dir(tmp_path / "hub")
    return tmp_path


def test_the_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(jtorch.hub, "_dir", [None])
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    both(lambda torch: torch.hub.get_dir())
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    both(lambda torch: torch.hub.get_dir())


def test_a_state_dict_by_url(folder, capsys):
    jtorch.save({"w": jtorch.ones(2)}, folder / "x.pth")
    url = (folder / "x.pth").as_uri()
    assert jtorch.hub.load_state_dict_from_url(url, progress=False)["w"].tolist() == [1, 1]
    assert "Downloading" in capsys.readouterr().out
    os.remove(folder / "x.pth")  # it is kept
    assert jtorch.hub.load_state_dict_from_url(url, weights_only=True)["w"].tolist() == [1, 1]
    assert os.listdir(folder / "hub" / "checkpoints") == ["x.pth"] and not capsys.readouterr().out
    with pytest.raises(ValueError, match="no file name"):
        jtorch.hub.load_state_dict_from_url("file:///tmp/..")


def test_hashes(folder):
    data = b"some bytes"
    digest = hashlib.sha256(data).hexdigest()
    (folder / "x.bin").write_bytes(data)
    url = (folder / "x.bin").as_uri()
    jtorch.hub.download_url_to_file(url, folder / "y.bin", digest[:8], progress=False)
    assert (folder / "y.bin").read_bytes() == data
    with pytest.raises(RuntimeError, match='invalid hash value \\(expected "0000"'):
        jtorch.hub.download_url_to_file(url, folder / "z.bin", "0000", progress=False)
    assert sorted(os.listdir(folder)) == ["x.bin", "y.bin"]


def test_what_cannot_be_reached(folder):
    url = (folder / "none.pth").as_uri()
    both(lambda torch: torch.hub.download_url_to_file(url, str(folder / "y.pth"), progress=False))
    with pytest.raises(urllib.error.URLError) as caught:
        jtorch.hub.load_state_dict_from_url(url)
    assert "without a network, put the file at" in caught.value.__notes__[0]


def test_local_repositories(folder):
    (folder / "hubconf.py").write_text(
        "dependencies = ['os']\ndef net(n, scale=1):\n    'A net.'\n    return n * scale\ndef _hidden(): pass\n"
    )
    assert jtorch.hub.load(str(folder), "net", 3, source="local", scale=2) == 6
    assert jtorch.hub.list(str(folder)) == ["net"] and jtorch.hub.help(str(folder), "net") == "A net."
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        jtorch.hub.load(str(folder), "other", source="local")
    with pytest.raises(NotImplementedError, match="git clone"):
        jtorch.hub.load("pytorch/vision", "resnet18")
    with pytest.raises(FileNotFoundError, match="hubconf.py"):
        jtorch.hub.load(str(folder / "hub"), "net", source="local")
