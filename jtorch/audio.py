"""The operators of torchaudio's compiled libraries, written with jtorch's own: `torch.ops.torchaudio.forced_align` and the like.

The libraries themselves call PyTorch's C++ code and cannot be loaded; when a program loads one (`torch.ops.load_library`) these are
defined.
"""

from .core.dtype import float16, float32, float64, int32, int64
from .library import Library
from .ops.alignments import best_alignment, transducer_loss
from .ops.recurrences import linear_recurrence


def _demand(*facts):
    """Raise for the first of (whether it holds, what else is wrong)."""
    for holds, words in facts:
        if not holds:
            raise RuntimeError(words)


# Filters.


def _lfilter_core_loop(input_signal_windows, a_coeff_flipped, padded_output_waveform):
    """Write the outputs of a recursive filter behind the first ones, those before the signal."""
    x, taps, padded = input_signal_windows, a_coeff_flipped, padded_output_waveform
    order = taps.shape[1] - 1
    _demand(
        (x.dtype in (float32, float64), f"expected a filter of float32 or float64, got {x.dtype}"),
        (x.dtype == taps.dtype == padded.dtype, f"expected scalar type {x.dtype}, got {taps.dtype} and {padded.dtype}"),
        (
            (*x.shape[:2], x.shape[2] + order) == tuple(padded.shape),
            f"a signal of shape {tuple(x.shape)} and order {order} does not fit outputs of shape {tuple(padded.shape)}",
        ),
    )
    # The filter reads also what lies where an output is going to be.
    outputs = padded[:, :, order:]
    x = x - outputs * taps[:, order:]
    outputs.copy_(linear_recurrence(x, taps[:, :order], padded[:, :, :order]))
    return padded


def _overdrive_core_loop(waveform, temp, last_in, last_out, output_waveform):
    """Write half of a signal and the changes of `temp`, which fade, to the output, and the last input and change to theirs."""
    kinds = {t.dtype for t in (waveform, temp, last_in, last_out, output_waveform)}
    _demand(
        (waveform.dtype in (float32, float64), f'"overdrive_cpu" not implemented for {waveform.dtype}'),
        (len(kinds) == 1, f"expected scalar type {waveform.dtype} of all tensors"),
    )
    if not waveform.numel():
        return last_in, last_out, output_waveform
    change = temp.diff(dim=1, prepend=last_in[:, None])
    fade = temp.new_full((1, 1), -0.995, dtype=float64)
    faded = linear_recurrence(change[:, None], fade, last_out[:, None, None])[:, 0]
    last_in.copy_(temp[:, -1])
    last_out.copy_(faded[:, -1])
    output_waveform.copy_(waveform * 0.5 + faded * 0.75)
    return last_in, last_out, output_waveform


# Alignments.


def forced_align(log_probs, targets, input_lengths, target_lengths, blank):
    """The label of each frame on the likeliest path through `targets` and blanks, and the scores as they came."""
    _demand(
        (log_probs.dtype in (float64, float32, float16), "log_probs must be float64, float32 or float16 (half) type"),
        (targets.dtype in (int32, int64), "targets must be int32 or int64 type"),
        (log_probs.is_contiguous(), "log_probs must be contiguous"),
        (targets.is_contiguous(), "targets must be contiguous"),
        (log_probs.dim() == 3, "log_probs must be 3-D (batch_size, input length, num classes)"),
        (targets.dim() == 2, "targets must be 2-D (batch_size, target length,)"),
        (input_lengths.dim() == 1, "input_lengths must be 1-D (batch_size,)"),
        (target_lengths.dim() == 1, "target_lengths must be 1-D (batch_size,)"),
    )
    _demand(
        (len(log_probs) == 1, "The batch dimension for log_probs must be 1 at the current version."),
        (len(targets) == 1, "The batch dimension for targets must be 1 at the current version."),
        (0 <= blank < log_probs.shape[2], "blank must be within [0, num classes)"),
        (log_probs.shape[1] == int(input_lengths.max()), "input length mismatch"),
        (targets.shape[1] == int(target_lengths.max()), "target length mismatch"),
    )
    frames, length = log_probs.shape[1], targets.shape[1]
    repeats = int((targets[0, 1:] == targets[0, :-1]).sum())
    if frames < length + repeats:
        raise RuntimeError(
            f"targets length is too long for CTC. Found log_probs length: {frames}, targets length: {length}, "
            f"and number of repeats: {repeats}"
        )
    return best_alignment(log_probs[0], targets[0], blank)[None], log_probs


def rnnt_loss_forward(logits, targets, logit_lengths, target_lengths, blank, clamp, fused_log_softmax):
    """The loss of each sequence of a transducer, and its derivative in the logits."""
    _demand(
        (logits.device == targets.device, "logits and targets must be on the same device"),
        (logits.device == logit_lengths.device, "logits and logit_lengths must be on the same device"),
        (logits.device == target_lengths.device, "logits and target_lengths must be on the same device"),
        (logits.dtype in (float32, float16), "logits must be float32 or float16 (half) type"),
        (targets.dtype == int32, "targets must be int32 type"),
        (logit_lengths.dtype == int32, "logit_lengths must be int32 type"),
        (target_lengths.dtype == int32, "target_lengths must be int32 type"),
        (logits.is_contiguous(), "logits must be contiguous"),
        (targets.is_contiguous(), "targets must be contiguous"),
        (logit_lengths.is_contiguous(), "logit_lengths must be contiguous"),
        (target_lengths.is_contiguous(), "target_lengths must be contiguous"),
        (logits.dim() == 4, "logits must be 4-D (batch, time, target, class)"),
        (targets.dim() == 2, "targets must be 2-D (batch, max target length)"),
        (logit_lengths.dim() == 1, "logit_lengths must be 1-D"),
        (target_lengths.dim() == 1, "target_lengths must be 1-D"),
    )
    batch, frames, width, classes = logits.shape
    _demand(
        (len(logit_lengths) == batch, "batch dimension mismatch between logits and logit_lengths"),
        (len(target_lengths) == batch, "batch dimension mismatch between logits and target_lengths"),
        (len(targets) == batch, "batch dimension mismatch between logits and targets"),
        (0 <= blank < classes, "blank must be within [0, logits.shape[-1])"),
    )
    longest = int(logit_lengths.max()), int(target_lengths.max())
    _demand(
        (frames == longest[0], "input length mismatch"),
        (width == longest[1] + 1, "output length mismatch"),
        (targets.shape[1] + 1 == width, "target length mismatch"),
    )
    return transducer_loss(logits, targets, logit_lengths, target_lengths, blank, clamp, fused_log_softmax)


# What the import asks.


def cuda_version():
    """None: no version of CUDA was compiled in, so none has to match."""


def is_align_available():
    """Whether there is `forced_align`."""
    return True


_SCHEMAS = {
    "_torchaudio": ("cuda_version() -> int?", "is_align_available() -> bool"),
    "torchaudio": (
        "_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> Tensor(a!)",
        "_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor(a!) last_in, Tensor(b!) last_out, Tensor(c!) output_waveform) "
        "-> (Tensor(a!), Tensor(b!), Tensor(c!))",
        "forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> (Tensor, Tensor)",
        "rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, float clamp, "
        "bool fused_log_softmax) -> (Tensor, Tensor)",
    ),
}

_libraries = [Library(space, "FRAGMENT") for space in _SCHEMAS]
for _library, _schemas in zip(_libraries, _SCHEMAS.values()):
    for _schema in _schemas:
        _name = _library.define(_schema)
        _library.impl(_name, globals()[_name], "CompositeExplicitAutograd")
