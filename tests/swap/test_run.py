"""`python -m jtorch run`: what a program sees, how it ends, processes that it starts, and what it costs."""

import pickle
import resource
import subprocess
import sys

from tests import oracle
from tests.swap import programs


def test_script(tmp_path):
    (tmp_path / "beside.py").write_text("import torch\nvalue = torch.ones(3).sum().item()\n")
    text = """
        import pickle
        import sys
        import torch
        import beside
        if __name__ == "__main__":
            print(sys.argv[1:], beside.value, __file__ == sys.argv[0], sys.modules["__main__"].torch is torch)
            print(*pickle.loads(pickle.dumps([torch.device("cpu"), torch.device, torch.int8])))
    """
    done = programs.run(text, tmp_path, "-m", "--lr", "0.1")
    assert done.stdout == "['-m', '--lr', '0.1'] 3.0 True True\ncpu <class 'torch.device'> torch.int8\n"


def test_standard_input(tmp_path):
    """`run -`, as `python -`: without a file, its lines in tracebacks nonetheless by number."""
    text = "import sys, torch\nprint(sys.argv, torch.ones(2).sum().item(), '__file__' in globals())\n1 / 0\n"
    done = programs.call(["run", "-", "x"], tmp_path, check=False, given=text)
    assert done.stdout == "['-', 'x'] 2.0 False\n"
    assert done.stderr.splitlines()[1:] == [
        '  File "<stdin>", line 3, in <module>',
        "ZeroDivisionError: division by zero",
    ]


def test_file_is_an_absolute_path(tmp_path):
    """As in Python: `Path(__file__).parent.parent` is right when a program was started by a relative path."""
    (tmp_path / "program.py").write_text("import sys\nprint(__file__, sys.argv[0])\n")
    done = programs.call(["run", "program.py"], tmp_path)
    assert done.stdout == f"{tmp_path / 'program.py'} program.py\n"


def test_tensors_pickled_by_pytorch(tmp_path):
    """`pickle.load` names functions of PyTorch's own modules, and those are there too."""
    torch = oracle.torch
    weights = torch.nn.Linear(2, 1).to(torch.bfloat16).state_dict()
    given = {
        "t": torch.arange(4.0).view(2, 2).t(),
        "p": torch.nn.Parameter(torch.ones(1)),
        "d": torch.int8,
        "w": weights,
    }
    (tmp_path / "given.pkl").write_bytes(pickle.dumps(given))
    text = """
        import pickle
        got = pickle.load(open("given.pkl", "rb"))
        print(got["t"].tolist(), got["t"].stride(), got["p"], got["d"], *[t.tolist() for t in got["w"].values()])
    """
    expected = [given["t"].tolist(), (1, 2), given["p"], torch.int8, *[t.tolist() for t in weights.values()]]
    assert programs.run(text, tmp_path).stdout == " ".join(map(str, expected)) + "\n"


def test_launchers_start_the_program_anew(tmp_path):
    """As those do that take the main module's name from its spec: the same program, its main part too, with other arguments."""
    text = """
        import subprocess
        import sys
        import torch
        if __name__ == "__main__":
            print(sys.argv[1:], sys.argv[0] == __file__, torch.ones(2).sum().item(), flush=True)
            if "again" not in sys.argv:
                name = sys.modules["__main__"].__spec__.name
                sys.exit(subprocess.run([sys.executable, "-m", name, "again"]).returncode)
    """
    assert programs.run(text, tmp_path, "first").stdout == "['first'] True 2.0\n['again'] True 2.0\n"


def test_module(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "part.py").write_text("import torch\ntwo = torch.tensor(2)\n")
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys\nfrom .part import two\nprint(two.item(), sys.argv[1:])\n"
    )
    done = programs.call(["run", "-m", "package", "--flag"], tmp_path)
    assert done.stdout == "2 ['--flag']\n"


def test_ends(tmp_path):
    done = programs.run("import sys\nsys.exit(3)\n", tmp_path, check=False)
    assert done.returncode == 3
    done = programs.run("def f():\n    raise ValueError('mine')\nf()\n", tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ValueError: mine"
    assert "jtorch" not in done.stderr.replace(str(tmp_path), ""), "the traceback begins in the program"
    done = programs.call(["run", "nowhere.py"], tmp_path, check=False)
    assert done.returncode == 1 and "no such file" in done.stderr
    done = programs.call(["run", "-m", "nowhere"], tmp_path, check=False)
    assert done.returncode == 1 and "No module named nowhere" in done.stderr


def test_program_that_cannot_start(tmp_path):
    """One line says why; Python's own lines where the program's text is wrong."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "nulls.py").write_bytes(b"x = 1\0\n")
    for arguments, words in [
        (["-m", "nowhere.at.all"], "No module named 'nowhere'"),
        (["folder"], "can't find '__main__' module in 'folder'"),
        (["nulls.py"], "source code string cannot contain null bytes"),
    ]:
        done = programs.call(["run", *arguments], tmp_path, check=False)
        assert done.returncode == 1
        assert words in done.stderr and "Traceback" not in done.stderr
    done = programs.run("x = (\n", tmp_path, check=False)
    assert done.stderr.splitlines()[0].strip() == f'File "{tmp_path}/program.py", line 1'
    done = programs.call(["run"], tmp_path, check=False)
    assert done.stderr.splitlines()[-1].endswith("required: TARGET")


def test_loader_workers_have_the_swap(tmp_path):
    (tmp_path / "beside.py").write_text("import torch\n\ndef doubled(x):\n    return torch.add(x, x)\n")
    text = """
        import beside
        import torch
        import torch.backends.cudnn as cudnn
        from torch import compile as compiled, nn
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, i):
                assert cudnn.enabled and compiled is torch.compile
                return nn.functional.relu(beside.doubled(torch.tensor(float(i)))), torch.__version__

        if __name__ == "__main__":
            for batch in DataLoader(Numbers(), 2, num_workers=2):
                print(batch)
    """
    done = programs.run(text, tmp_path)
    assert done.stdout == "".join(f"[tensor([{a}., {a + 2}.]), ('2.13.0', '2.13.0')]\n" for a in (0, 4))


def test_spawned_processes_have_the_swap(tmp_path):
    text = """
        import multiprocessing
        import torch

        class Item:
            def __init__(self):
                self.values = torch.ones(2).tolist()

        def work(queue, item):
            queue.put((item.values, torch.__version__, torch.zeros(1).item()))

        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=work, args=(queue, Item()))
            process.start()
            print(queue.get(timeout=120))
            process.join()
    """
    assert programs.run(text, tmp_path).stdout == "([1.0, 1.0], '2.13.0', 0.0)\n"


def spent():
    """Seconds of processor time of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_cost_over_importing_jtorch(tmp_path):
    """The least of a few runs each, in turns: less than 0.3 s of processor time apart, whatever else the machine does."""
    (tmp_path / "empty.py").write_text("import torch\n")
    best = {}
    for _ in range(3):
        for name, command in {
            "import": [sys.executable, "-c", "import jtorch"],
            "run": [sys.executable, "-m", "jtorch", "run", "empty.py"],
        }.items():
            start = spent()
            subprocess.run(
                command, check=True, cwd=tmp_path, env={"PYTHONPATH": str(programs.ROOT), "PATH": "/usr/bin:/bin"}
            )
            best[name] = min(best.get(name, 1e9), spent() - start)
    assert best["run"] - best["import"] < 0.3, best
