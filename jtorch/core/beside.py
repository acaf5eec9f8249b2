"""Threads in which programs are compiled while the loop that will run them goes on."""

import threading

THREAD = "jtorch compile"


def beside(function, *args):
    """Call a function in a thread of its own, beside the training."""
    threading.Thread(target=function, args=args, name=THREAD).start()


def compiled_beside():
    """Wait until what is being compiled beside the program's loop is ready: for who times a loop. `jtorch.compile.wait`."""
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join()
