"""Rows of jtorch/ops/fft.py."""

from . import row

ROWS = [
    row("fft.fft"),
    row("fft.ifft"),
    row("fft.rfft"),
    row("fft.irfft"),
    row("fft.hfft"),
    row("fft.ihfft"),
    row("fft.fftn"),
    row("fft.ifftn"),
    row("fft.rfftn"),
    row("fft.irfftn"),
    row("fft.hfftn"),
    row("fft.ihfftn"),
    row("fft.fft2"),
    row("fft.ifft2"),
    row("fft.rfft2"),
    row("fft.irfft2"),
    row("fft.hfft2"),
    row("fft.ihfft2"),
    row("fft.fftshift"),
    row("fft.ifftshift"),
    row("stft"),
    row("istft"),
]
