"""Run by test_processes in several processes, by PyTorch and by jtorch (as torch): each writes what it found, a line each."""

import datetime
import importlib
import os
import sys
import time
import warnings

trainings = importlib.import_module("two_trainings")
torch, dist, nn, joins, DistributedDataParallel = (
    trainings.torch, trainings.dist, trainings.nn, trainings.joins, trainings.DistributedDataParallel
)  # fmt: skip
differentiable = importlib.import_module("torch.distributed.nn.functional")
said, hooked = trainings.said, trainings.hooked


def collectives(rank, size):
    for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
        for dtype in (torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64):
            t = torch.tensor([rank + 1, 0, 3]).to(dtype)
            try:
                dist.all_reduce(t, op=getattr(dist.ReduceOp, op))
            except (RuntimeError, ValueError) as error:
                yield f"{op} {dtype}", (type(error).__name__, str(error).splitlines()[0])
            else:
                yield f"{op} {dtype}", t
    turned = (torch.arange(6.0).view(2, 3) * (rank + 1)).t()
    dist.all_reduce(turned)
    leaf = torch.ones(2, requires_grad=True)
    dist.all_reduce(leaf)
    yield "written in place", (turned, turned.stride(), leaf)
    own, out = torch.full((2,), float(rank)), [torch.zeros(2) for _ in range(size)]
    dist.all_gather(out, own)
    yield "all_gather", out
    got = [torch.zeros(2) for _ in range(size)] if rank == 0 else None
    yield "gather", (dist.gather(own, got, 0), got)
    t = torch.zeros(2)
    dist.scatter(t, [own + k for k in range(size)] if rank == 1 else None, src=1)
    yield "scatter", t
    t = torch.full((2,), rank + 1.0)
    dist.reduce(t, 1, op=dist.ReduceOp.PRODUCT)
    yield "reduce", t if rank == 1 else None
    t = torch.full((2,), rank + 1.0)
    dist.broadcast(t, 1)
    yield "broadcast", t
    t = torch.zeros(2)
    dist.reduce_scatter(t, [own + 10 * k for k in range(size)])
    yield "reduce_scatter", t
    dist.reduce_scatter_single(t, torch.arange(2.0 * size) + rank)
    yield "reduce_scatter_single", t
    t = torch.zeros(2 * size)
    dist.all_gather_single(t, own)
    yield "all_gather_single", t
    out = [torch.zeros(2) for _ in range(size)]
    dist.all_to_all(out, [own + 10 * k for k in range(size)])
    yield "all_to_all", out
    rows = torch.zeros(3 if rank == 0 else 5, 2)
    dist.all_to_all_single(
        rows, torch.arange(8.0).view(4, 2) + 100 * rank, *([[1, 2], [1, 3]] if rank == 0 else [[3, 2], [2, 2]])
    )
    yield "all_to_all_single", rows
    work = dist.all_reduce(own, async_op=True)
    yield "work", (work.wait(), work.is_completed(), work.result(), work.get_future().wait(), own)
    yield "barrier", (dist.barrier(), dist.barrier(async_op=True).wait(), dist.monitored_barrier())


def objects(rank, size):
    out = [None] * size
    dist.all_gather_object(out, {"rank": rank, "t": torch.ones(2) * rank})
    got = [None] * size if rank == 0 else None
    dist.gather_object(("o", rank), got, 0)
    said = [1, "a", torch.tensor([2.0])] if rank == 1 else [None] * 3
    dist.broadcast_object_list(said, 1)
    part = [None]
    dist.scatter_object_list(part, ["x", {"y": 2}] if rank == 0 else None, 0)
    yield "objects", (out, got, said, part)
    if rank == 0:
        dist.send_object_list(["hello", 3], 1)
    else:
        heard = [None, None]
        yield "heard", (dist.recv_object_list(heard, 0), heard)


def messages(rank, size):
    other, t = 1 - rank, torch.zeros(2)
    if rank == 0:
        works = [dist.isend(torch.tensor([k, k + 1.0]), 1, tag=tag) for k, tag in ((5.0, 3), (7.0, 4))]
        yield "any sender", (dist.recv(t), t, [w.wait() for w in works])
    else:
        later = torch.zeros(2)
        dist.recv(later, 0, tag=4)
        dist.recv(t, 0, tag=3)
        dist.send(t * 2, 0)
        yield "tags", (later, t)
    first, second = torch.zeros(1), torch.zeros(1)
    receipts = [dist.irecv(first, other), dist.irecv(second, other)]
    for k in range(2):
        dist.isend(torch.tensor([10.0 * rank + k]), other).wait()
    yield "in their order", ([r.wait() for r in reversed(receipts)], first, second, receipts[0].is_completed())
    ops = [dist.P2POp(dist.isend, torch.ones(2) * rank, other), dist.P2POp(dist.irecv, t, other)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    yield "batch", t


def groups(rank, size):
    alone, both = dist.new_group([1]), dist.new_group([0, 1])
    t = torch.ones(1)
    dist.all_reduce(t, group=both)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        dist.all_reduce(t, group=alone)
    yield "members", (dist.get_rank(alone), dist.get_world_size(alone), t, [str(w.message) for w in seen])
    yield (
        "ranks",
        (
            dist.get_process_group_ranks(both),
            dist.get_global_rank(both, 1),
            dist.get_group_rank(both, 0),
            both.size(),
            both.rank(),
        ),
    )
    own, _ = dist.new_subgroups(1)
    dist.all_reduce(t, group=own)
    yield "subgroups", (t, dist.get_world_size(own), dist.get_backend(own), dist.get_process_group_ranks(own))
    dist.destroy_process_group(own)
    yield (
        "world",
        (dist.is_available(), dist.is_initialized(), dist.get_backend(), dist.get_rank(), dist.get_world_size()),
    )


def wrong(rank, size):
    one = torch.ones(1)
    calls = {
        "own rank": lambda: dist.send(one, rank),
        "dtype": lambda: dist.all_gather([torch.zeros(1).double() for _ in range(size)], one),
        "shape": lambda: dist.all_gather([torch.zeros(2) for _ in range(size)], one),
        "no list": lambda: dist.gather(one, None, rank),
        "list elsewhere": lambda: dist.gather(one, [one, one], 1 - rank),
        "no tensor": lambda: dist.all_reduce([1]),
        "group too large": lambda: dist.new_group([0, 1, 2]),
        "op": lambda: dist.P2POp(print, one, 1 - rank),
        "hook": lambda: DistributedDataParallel(nn.Linear(1, 1)).register_comm_hook(None, 3),
        "not a member": lambda: dist.get_backend(dist.GroupMember.NON_GROUP_MEMBER),
        "nothing to join": lambda: joins.Join([]),
        "largest sparse": lambda: dist.all_reduce(one.to_sparse(), dist.ReduceOp.MAX),
    }
    for name, call in calls.items():
        try:
            call()
        except (RuntimeError, ValueError, TypeError) as error:
            yield name, (type(error).__name__, str(error).splitlines()[0])


def gradients(rank, size):
    def pulled(fn):
        x = torch.tensor([1.0 + rank, 2.0], requires_grad=True)
        made = fn(x)
        (made * (rank + 1)).sum().backward()
        return made.detach(), x.grad

    parts = lambda x: list(x.split(1))
    empty = [torch.empty(1), torch.empty(1)]
    yield "all_reduce", pulled(differentiable.all_reduce)
    yield "all_gather", pulled(lambda x: torch.stack(differentiable.all_gather(x)).prod(0))
    yield "broadcast", pulled(lambda x: differentiable.broadcast(x, 1))
    yield "all_to_all", pulled(lambda x: torch.stack(differentiable.all_to_all(list(empty), parts(x))))
    yield "reduce_scatter", pulled(lambda x: differentiable.reduce_scatter(torch.empty(1), parts(x)))


def methods(rank, size):
    group, op = dist.group.WORLD, dist.ReduceOp.MAX
    t = torch.tensor([rank, 5.0 - rank])
    out = [torch.zeros(2) for _ in range(size)]
    wait = lambda work: work.wait()
    yield "allreduce", (wait(group.allreduce([t], op)), group.allreduce(t).get_future().wait()[0])
    yield "allgather", (wait(group.allgather([out], [t + rank])), out)
    yield "broadcast", (wait(group.broadcast(t, 1)), t)
    yield "alltoall", (wait(group.alltoall_base(out[0], t + rank, [], [])), out[0], wait(group.barrier()))
    yield (
        "send",
        (wait(group.send([t], 1, 3)) if rank == 0 else wait(group.recv([t], 0, 3)), t, group.monitored_barrier()),
    )
    with torch.autograd.profiler.profile(record_shapes=True) as seen:
        dist.all_reduce(t)
        dist.all_gather(out, t, async_op=True).wait()
        dist.send(t, 1) if rank == 0 else dist.recv(t)
    noted = [e for e in seen.function_events if e.name.startswith("gloo:")]
    yield "profile", [(e.name, e.input_shapes, e.is_async, e.count) for e in noted]


def ours(rank, size, folder):
    """What PyTorch has for other devices, or in another form: each line says whether it is right."""
    torch.manual_seed(0)
    whole = torch.randn(6, 3, 4)
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Flatten(), nn.Linear(12, 1))
    ref = nn.Sequential(nn.BatchNorm1d(3), nn.Flatten(), nn.Linear(12, 1))
    ref.load_state_dict(net.state_dict())
    ddp = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(net))
    own = slice(0, 2) if rank == 0 else slice(2, 6)  # batches of other sizes, whose losses weigh as their samples
    mine, every = whole[own].clone().requires_grad_(), whole.clone().requires_grad_()
    ((ddp(mine) ** 2).sum() / 3).backward()
    (ref(every) ** 2).mean().backward()
    close = lambda a, b: torch.allclose(a.float(), b.float(), atol=1e-6)
    yield (
        "SyncBatchNorm",
        (
            [close(p.grad, q.grad) for p, q in zip(ddp.parameters(), ref.parameters())],
            close(mine.grad / 2, every.grad[own]),
            [close(a, b) for a, b in zip(ddp.buffers(), ref.buffers())],
        ),
    )
    f = importlib.import_module("torch.distributed._functional_collectives")
    x = torch.arange(4.0).view(2, 2) + 10 * rank
    yield (
        "functional",
        (
            f.all_reduce(x, "sum", None).tolist() == [[10.0, 12.0], [14.0, 16.0]],
            f.all_gather_tensor(x, 1, None).tolist() == [[0.0, 1.0, 10.0, 11.0], [2.0, 3.0, 12.0, 13.0]],
            f.reduce_scatter_tensor(x, "avg", 0, None).tolist() == [[5.0 + 2 * rank, 6.0 + 2 * rank]],
            f.broadcast(x, 1, None).tolist() == [[10.0, 11.0], [12.0, 13.0]],
            f.all_to_all_single(x, None, None, None).tolist()
            == [[2.0 * rank, 1.0 + 2 * rank], [10.0 + 2 * rank, 11.0 + 2 * rank]],
            f.permute_tensor(x, [1, 0], None).tolist() == (x + 10 - 20 * rank).tolist(),
        ),
    )
    files = importlib.import_module("torch.distributed.checkpoint")
    files.save({"w": torch.arange(3.0), "rank": 7}, checkpoint_id=folder)
    found = {"w": torch.zeros(3), "rank": 0}
    files.load(found, checkpoint_id=folder)
    yield "checkpoint", found["w"].tolist() == [0.0, 1.0, 2.0] and found["rank"] == 7
    made = importlib.import_module("torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
    yield "bfloat16", hooked(made.bf16_compress_hook, rank).tolist() == [[1.5, 1.5]]
    compiled, seen = torch.compile(lambda t: _summed(t * 2)), []
    for k in range(4):
        seen.append(compiled(torch.full((2,), float(k + rank))).tolist())
    yield "compiled", seen == [[2.0 + 4 * k] * 2 for k in range(4)]

    late = []
    for seconds, every in ((0.2, False), (0.2, True), (60, False)):
        if rank and seconds < 1:
            time.sleep(0.5)
        late.append(said(dist.monitored_barrier, None, 0.01 if rank and seconds < 1 else seconds, every))
        dist.barrier()
    rank_1 = [
        "Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0"
    ] * 2
    rank_0 = [f"[Rank 0]: {who} failed to pass monitoredBarrier in 200 ms" for who in ("Rank 1", "Ranks 1")]
    yield (
        "monitored",
        [said.startswith(expected) for said, expected in zip(late, [*(rank_1 if rank else rank_0), "None"])],
    )

    yield "refused", [_refuses(call) for call in (
        lambda: dist.all_reduce(x, dist.ReduceOp.PREMUL_SUM),
        lambda: importlib.import_module("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook").PowerSGDState(None),
        lambda: importlib.import_module("torch.distributed.checkpoint.hf_storage").HuggingFaceStorageReader("x"),
        lambda: f.all_reduce(x, "sum", "0"),
    )]  # fmt: skip


def _refuses(call):
    try:
        call()
    except NotImplementedError:
        return True
    return False


def _summed(t):
    dist.all_reduce(t)
    return t + 0


def main():
    rank, size, address, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    os.environ["LOCAL_WORLD_SIZE"] = str(size)
    dist.init_process_group("gloo", address, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=60))
    with open(os.path.join(folder, f"{rank}.txt"), "w") as file:
        for part in (collectives, objects, messages, groups, wrong, gradients, methods, *trainings.PARTS):
            for name, value in part(rank, size):
                print(f"{part.__name__}, {name}: {value!r}".replace("\n", " "), file=file, flush=True)
        for name, value in ours(rank, size, folder) if len(sys.argv) > 5 else ():
            print(f"ours, {name}: {value!r}", file=file, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
