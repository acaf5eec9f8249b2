"""Step counts: what a state dict holds counts on with the optimizer, copies of it do not, against torch."""

import copy
import io
import pickle

import pytest

from tests.oracle import both


@pytest.mark.parametrize("keep", ["as it is", "copied", "pickled", "saved"])
def test_a_state_that_is_kept_counts_on_unless_it_is_copied(keep):
    def program(t):
        params = [t.ones(3, requires_grad=True), t.full((2, 2), 2.0, requires_grad=True)]
        optimizer = t.optim.Adam(params, lr=0.1)

        def run(steps):
            for _ in range(steps):
                optimizer.zero_grad()
                sum((p * p).sum() for p in params).backward()
                optimizer.step()

        run(3)
        kept = optimizer.state_dict()
        if keep == "copied":
            kept = copy.deepcopy(kept)
        elif keep == "pickled":
            kept = pickle.loads(pickle.dumps(kept))
        elif keep == "saved":
            file = io.BytesIO()
            t.save(kept, file)
            file.seek(0)
            kept = t.load(file)
        run(4)
        seen = copy.deepcopy(kept["state"])
        if keep != "as it is":
            kept["state"][1]["step"].add_(1)
        alone = copy.deepcopy(kept["state"])
        optimizer.load_state_dict(kept)
        run(2)
        return params, seen, alone, optimizer.state_dict()["state"]

    both(program)
