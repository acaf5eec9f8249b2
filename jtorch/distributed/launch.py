"""torchrun as it was before: the program gets its number as `--local-rank=N`, unless --use-env is given.

Run: python -m jtorch run -m torch.distributed.launch --nproc-per-node=2 script.py [arguments]
"""

from jtorch.distributed import run


def main(given=None) -> None:
    """The command."""
    if run.arguments(given).use_env:
        run.main(given)
    else:
        run.main(given, lambda local_rank: (f"--local-rank={local_rank}",))


if __name__ == "__main__":
    main()
