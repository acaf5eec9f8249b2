"""What `python -m jtorch bench` measures: five models as PyTorch text, their JAX peers, the clock.

Nothing here imports jtorch by name: a worker process measures JAX and PyTorch without its settings.
"""
