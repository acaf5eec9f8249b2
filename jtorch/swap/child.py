"""What other processes of a program under `python -m jtorch run` have in the place of its main module.

Spawned ones import it as `__mp_main__`. Launchers that start the program anew, as they find it by its main module's spec, run it as
`python -m jtorch.swap.child [arguments]`.
"""

from .hook import install_as_torch
from .main import run_again

install_as_torch()
globals().update(run_again(__name__ if __name__ == "__main__" else "__mp_main__"))
