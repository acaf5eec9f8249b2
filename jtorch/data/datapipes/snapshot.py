"""A pipe put back to where it was: by going through its samples again."""

from .graph_settings import apply_random_seed
from .passes import SnapshotState

__all__: list[str] = []


def _simple_graph_snapshot_restoration(datapipe, n_iterations: int, rng=None) -> None:
    """Go `n_iterations` samples ahead, so that the next pass begins there. Raises RuntimeError where there are fewer."""
    if datapipe._snapshot_state == SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph "
            "if your graph has not been restored."
        )
    datapipe.reset()
    apply_random_seed(datapipe, rng)
    samples = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(samples)
        except StopIteration as error:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples available."
            ) from error
    datapipe._fast_forward_iterator = samples
    datapipe._snapshot_state = SnapshotState.Restored
