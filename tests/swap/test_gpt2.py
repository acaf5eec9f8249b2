"""GPT-2 of transformers under the hook: weights that PyTorch wrote, logits, gradients and greedy tokens that PyTorch computes."""

import textwrap

import numpy as np
import pytest

from tests.oracle import torch
from tests.swap import programs

CONFIG = dict(
    n_layer=4, n_embd=128, n_head=4, vocab_size=64, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    bos_token_id=0, eos_token_id=0,
)  # fmt: skip
PROGRAM = """
    import numpy as np
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    net = GPT2LMHeadModel(GPT2Config(**CONFIG)).eval()
    net.load_state_dict(torch.load("weights.pt"))
    tokens = torch.arange(12).reshape(2, 6) * 5
    out = net(tokens, labels=tokens)
    out.loss.backward()
    found = {name: p.grad.numpy() for name, p in net.named_parameters()}
    found["logits"] = out.logits.detach().numpy()
    found["greedy"] = net.generate(tokens, max_new_tokens=3, do_sample=False, pad_token_id=0).numpy()
    np.savez("FOUND.npz", **found)
"""


def test_gpt2(tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    net = transformers.GPT2LMHeadModel(transformers.GPT2Config(**CONFIG))
    for p in net.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.1)  # as they begin, the greedy token is always the one before
    torch.save(net.state_dict(), tmp_path / "weights.pt")
    text = PROGRAM.replace("**CONFIG", f"**{CONFIG}")
    monkeypatch.chdir(tmp_path)
    exec(compile(textwrap.dedent(text).replace("FOUND", "theirs"), "program", "exec"), {})
    programs.run(text.replace("FOUND", "ours"), tmp_path)
    theirs, ours = np.load("theirs.npz"), np.load("ours.npz")
    assert sorted(theirs) == sorted(ours) and len(theirs) > 50
    assert (theirs["greedy"] == ours["greedy"]).all() and len(set(theirs["greedy"][0, 6:])) > 1
    for name in theirs:
        assert np.abs(theirs[name] - ours[name]).max() <= 1e-4 * max(1.0, np.abs(theirs[name]).max()), name
