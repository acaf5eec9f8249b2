"""An encoder in evaluation gives zeros for padding under the conditions under which PyTorch leaves the padding out."""

import warnings

import pytest

from tests.oracle import both

PADDING = {
    "at the end": [[0, 0, 1], [0, 0, 0]],
    "in the middle": [[0, 1, 0], [0, 0, 0]],
    "all of a sequence": [[1, 1, 1], [0, 0, 1]],
}
CASES = {
    "usual": {},
    "with gradients": {"grad": True},
    "in training": {"training": True},
    "with a mask": {"masked": True},
    "additive padding": {"additive": True},
    "one head": {"layer": {"nhead": 1}},
    "norm first": {"layer": {"norm_first": True}},
    "no bias": {"layer": {"bias": False}},
    "sequences second": {"layer": {"batch_first": False}},
    "refused": {"encoder": {"enable_nested_tensor": False}},
    "no norm": {"encoder": {"norm": None}},
}


PAIRS = [(name, padding) for name in CASES for padding in list(PADDING)[:2]] + [("usual", "all of a sequence")]


@pytest.mark.parametrize(("name", "padding"), PAIRS)
def test_zeros_at_padding(name, padding):
    def run(torch):
        nn, case = torch.nn, CASES[name]
        torch.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            options = {"d_model": 4, "nhead": 2, "dim_feedforward": 8, "dropout": 0.0, "batch_first": True}
            layer = nn.TransformerEncoderLayer(**options | case.get("layer", {}))
            encoder = nn.TransformerEncoder(layer, 2, **{"norm": nn.LayerNorm(4)} | case.get("encoder", {}))
        encoder.train(case.get("training", False))
        hidden = torch.tensor(PADDING[padding]).bool()
        x = torch.randn(2, 3, 4)
        if not layer.self_attn.batch_first:
            x = x.transpose(0, 1)
        if case.get("additive"):
            hidden = torch.zeros(2, 3).masked_fill(hidden, float("-inf"))
        mask = nn.Transformer.generate_square_subsequent_mask(3) if case.get("masked") else None
        with torch.set_grad_enabled(case.get("grad", False)):
            out = encoder(x, mask=mask, src_key_padding_mask=hidden)
        return out.detach(), [str(w.message) for w in caught if "nested" in str(w.message)], encoder.use_nested_tensor

    both(run, layout=False, least=(1e-4, 1e-5))
