"""What two_processes runs of training in several processes."""

import contextlib
import importlib
import io

torch, dist, nn, parallel, data, joins = map(
    importlib.import_module,
    (
        "torch",
        "torch.distributed",
        "torch.nn",
        "torch.nn.parallel",
        "torch.utils.data",
        "torch.distributed.algorithms.join",
    ),
)
DistributedDataParallel = parallel.DistributedDataParallel


def said(call, *args):
    try:
        return str(call(*args))
    except RuntimeError as error:
        return str(error)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.never = (nn.Linear(2, 1) for _ in range(3))

    def forward(self, x, which):
        return self.a(x) if which == 0 else self.b(x)


def training(rank, size):
    torch.manual_seed(rank)  # other weights, which become those of rank 0
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)).double()
    ddp = DistributedDataParallel(net)
    xs = torch.arange(48, dtype=torch.float64).view(12, 4)
    samples = data.TensorDataset(xs.sin(), xs[:, :1] / 48)
    sampler = data.DistributedSampler(samples, shuffle=True, seed=3)
    opt, losses = torch.optim.SGD(ddp.parameters(), 0.1, momentum=0.9), []
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for x, y in data.DataLoader(samples, batch_size=2, sampler=sampler):
            opt.zero_grad()
            loss = nn.functional.mse_loss(ddp(x), y)
            loss.backward()
            opt.step()
            losses.append(round(loss.item(), 3))
    yield "losses", losses
    yield "weights", [[round(v, 3) for v in p.detach().flatten().tolist()] for p in net.parameters()]
    yield "means", [round(v, 3) for v in net[1].running_mean.tolist()]
    plain = DistributedDataParallel(Branches())
    with plain.no_sync():
        plain(torch.ones(1, 2) * (rank + 1), 0).sum().backward()
    yield "no_sync", plain.module.a.weight.grad
    said = []
    try:
        for _ in range(2):
            plain(torch.ones(1, 2), 0).sum().backward()
    except RuntimeError as error:
        said = str(error)[:250]
    yield "unused", said


def unused(rank, size):
    torch.manual_seed(0)
    ddp = DistributedDataParallel(Branches(), find_unused_parameters=True)
    for _ in range(2):
        ddp(torch.ones(1, 2) * (rank + 1), rank).sum().backward()
    module = ddp.module
    yield "each its own", (module.a.weight.grad, module.b.weight.grad, module.never.weight.grad)
    hooked = DistributedDataParallel(nn.Linear(2, 1))

    def twice(state, bucket):
        state.append(
            (
                bucket.index(),
                bucket.is_last(),
                len(bucket.gradients()),
                bucket.buffer().numel(),
            )
        )
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0] * 2)

    seen = []
    hooked.register_comm_hook(seen, twice)
    hooked(torch.ones(1, 2) * (rank + 1)).sum().backward()
    yield "hook", (seen, hooked.module.weight.grad, hooked.module.bias.grad)


def accumulated(rank, size):
    """Of what was used without being shared, and of gradients that are sparse, the means too."""
    torch.manual_seed(0)
    ddp = DistributedDataParallel(Branches(), find_unused_parameters=True)
    with ddp.no_sync():
        ddp(torch.ones(1, 2) * (rank + 1), rank).sum().backward()
    ddp(torch.ones(1, 2), 1).sum().backward()
    yield "means", [p.grad for p in ddp.parameters()]
    bag = DistributedDataParallel(nn.EmbeddingBag(6, 3, sparse=True, mode="sum"))
    for _ in range(2):
        bag(torch.tensor([[rank, 2], [4, rank]])).sum().backward()
        grad = bag.module.weight.grad.coalesce()
        yield "sparse", (grad.indices(), grad.values())
    t = torch.sparse_coo_tensor([[rank, 3 - rank]], [[1.0, 2.0], [3.0, 4.0]], (5, 2))
    yield "sparse sum", (dist.all_reduce(t, async_op=True).wait(), t.is_coalesced(), t.to_dense())
    file = io.BytesIO()
    torch.save(ddp, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    again.zero_grad()
    again(torch.ones(1, 2) * (rank + 1), 0).sum().backward()
    yield "saved", (again.module.a.weight.grad, again.process_group is ddp.process_group)


class Shadow(joins.JoinHook):
    def __init__(self, counter):
        self.counter = counter

    def main_hook(self):
        dist.all_reduce(torch.zeros(1))

    def post_hook(self, is_last_joiner):
        self.counter.last = is_last_joiner


class Counter(joins.Joinable):
    join_device = torch.device("cpu")
    join_process_group = property(lambda self: dist.group.WORLD)

    def __init__(self):
        super().__init__()
        self.count = torch.zeros(1)

    def __call__(self):
        joins.Join.notify_join_context(self)
        one = torch.ones(1)
        dist.all_reduce(one)
        self.count += one

    def join_hook(self, **kwargs):
        return Shadow(self)


def uneven(rank, size):
    """More inputs in rank 1 than in rank 0."""
    for given in ({}, {"divide_by_initial_world_size": False}, {"throw_on_early_termination": True}):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).double()
        ddp = DistributedDataParallel(net, find_unused_parameters=not given)
        opt, found = torch.optim.SGD(ddp.parameters(), 0.1), []
        try:
            with ddp.join(**given):
                for k in range(3 + 2 * rank):
                    x = torch.arange(12.0).view(4, 3).double().sin() * (k + 1 + rank)
                    with ddp.no_sync() if k == 1 else contextlib.nullcontext():
                        ddp(x).pow(2).mean().backward()
                    if k != 1:
                        opt.step()
                        found.append([round(v, 5) for v in net[2].weight.grad.flatten().tolist()])
                        opt.zero_grad()
        except RuntimeError as error:
            found.append(str(error))
        yield "steps", found
        yield "in the end", [[round(v, 5) for v in t.flatten().tolist()] for t in ddp.state_dict().values()]
    counter = Counter()
    with joins.Join([counter]):
        for _ in range(3 + 2 * rank):
            counter()
    yield "counter", (counter.count, counter.last)
    dist.barrier()


def spread(rank, size):
    """An optimizer of which each process has a part of the state."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1)).double()
    ddp, x = DistributedDataParallel(net), torch.arange(12.0).view(4, 3).double().sin() + rank
    kind = importlib.import_module("torch.distributed.optim").ZeroRedundancyOptimizer
    groups = lambda: [{"params": list(net[:3].parameters())}, {"params": list(net[4].parameters()), "lr": 0.05}]
    state = [None]
    for _ in range(2):
        opt = kind(groups(), optimizer_class=torch.optim.Adam, lr=0.01)
        if state[0]:
            opt.load_state_dict(state[0])
        schedule = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)
        for _ in range(3):
            opt.zero_grad()
            ddp(x).pow(2).mean().backward()
            opt.step()
            schedule.step()
        yield "weights", [[round(v, 6) for v in p.flatten().tolist()] for p in net.parameters()]
        yield "own part", [[tuple(p.shape) for p in group["params"]] for group in opt.optim.param_groups]
        yield "not gathered", said(opt.state_dict)
        opt.consolidate_state_dict(to=0)
        state = [opt.state_dict() if rank == 0 else None]
        dist.broadcast_object_list(state)
        sums = {k: round(s["exp_avg"].sum().item(), 7) for k, s in sorted(state[0]["state"].items())}
        yield "state", (sums, [(g["params"], g["lr"]) for g in state[0]["param_groups"]])
    extra = nn.Parameter(torch.ones(7).double())
    opt.add_param_group({"params": [extra], "lr": 0.3})
    extra.grad = torch.ones(7).double()
    opt.step()
    yield "added", ([len(group["params"]) for group in opt.optim.param_groups], extra)
    for params in ([], 3, [3], [extra, torch.ones(2)], [torch.ones(2).to_sparse()]):
        try:
            kind(params, torch.optim.SGD, lr=0.1)
        except (ValueError, TypeError) as error:
            yield "wrong", (type(error).__name__, str(error))
    plain = DistributedDataParallel(nn.Linear(3, 1).double())
    opt = kind(plain.parameters(), torch.optim.SGD, lr=0.1)
    with joins.Join([plain, opt]):
        for _ in range(2 + 2 * rank):
            opt.zero_grad()
            plain(x).pow(2).mean().backward()
            opt.step()
    yield "joined", [[round(v, 6) for v in p.flatten().tolist()] for p in plain.parameters()]


def hooked(hook, rank):
    ddp = DistributedDataParallel(nn.Linear(2, 1))
    ddp.register_comm_hook(None, hook)
    ddp(torch.ones(1, 2) * (rank + 1)).sum().backward()
    return ddp.module.weight.grad


def hooks(rank, size):
    made = importlib.import_module("torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
    for hook in (made.allreduce_hook, made.fp16_compress_hook, made.fp16_compress_wrapper(made.allreduce_hook)):
        yield hook.__name__, hooked(hook, rank)
    local = importlib.import_module("torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook")
    alone, _ = dist.new_subgroups(1)
    for shared in (True, False):
        state = local.PostLocalSGDState(None, alone, 1, shared)
        ddp = DistributedDataParallel(nn.Linear(2, 1))
        ddp.register_comm_hook(state, local.post_localSGD_hook)
        found = []
        for _ in range(3):
            ddp.zero_grad()
            ddp(torch.ones(1, 2) * (rank + 1)).sum().backward()
            found.append(ddp.module.weight.grad.tolist())
        yield "local SGD", found
    averagers = importlib.import_module("torch.distributed.algorithms.model_averaging.averagers")
    net, averager, found = nn.Linear(2, 1), averagers.PeriodicModelAverager(2, warmup_steps=1), []
    net(torch.ones(1, 2)).sum().backward()
    for k in range(4):
        with torch.no_grad():
            net.weight.fill_(float(k + rank))
        averager.average_parameters(net.parameters())
        found.append(net.weight.tolist())
    yield "averaged", found


PARTS = unused, training, hooks, accumulated, uneven, spread
