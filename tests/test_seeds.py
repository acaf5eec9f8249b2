"""Programs as documents about PyTorch show them: with the import swapped they print the same."""

import pytest

from tests.oracle import both

PROGRAMS = {}


def program(text):
    """Keep a program under the name in its first line."""
    name, _, body = text.strip().partition("\n")
    PROGRAMS[name.lstrip("# ")] = body


program("""
# storage and strides
import torch
t = torch.tensor([[1, 2, 3], [4, 5, 6]])
print(t)
print(f"storage: {t.storage()}")
print(f"storage offset: {t.storage_offset()}")
print(f"shape: {t.shape}, stride: {t.stride()}")
t_t = t.T
print(f"t_t shape: {t_t.shape}, stride: {t_t.stride()}")
print(f"t_t storage: {t_t.storage()}")
print(f"storage id same: {t.storage().data_ptr() == t_t.storage().data_ptr()}")
t_c = t_t.contiguous()
print(f"t_t is_contiguous: {t_t.is_contiguous()}")
print(f"t_c is_contiguous: {t_c.is_contiguous()}")
print(f"t_c storage: {t_c.storage()}")
""")

program("""
# memory layout
import torch
import numpy as np
x = torch.arange(60.).view(3, 4, 5)
print(f"Stride: {x.stride()}")
print(f"Contiguous: {x.is_contiguous()}")
y = x.transpose(0, 2)
print(f"Original stride: {x.stride()}")
print(f"Transposed stride: {y.stride()}")
print(f"Same storage: {x.storage().data_ptr() == y.storage().data_ptr()}")
z = y.contiguous()
print(f"After contiguous: {z.is_contiguous()}")
""")

program("""
# indexing: views and copies
import torch
x = torch.arange(10000.).view(100, 100)
view1 = x[:50, :50]
view2 = x[::2, ::3]
indices = torch.tensor([0, 2, 4, 6, 8])
copy1 = x[indices]
view1[0, 0] = -1
view2[1, 1] = -2
copy1[0, 1] = -3
def memory_efficient_indexing(tensor, indices):
    return tensor.index_select(0, indices)
print(memory_efficient_indexing(x, indices).sum(), x[0, :3], x[2, 3])
w = torch.randn(3, 3, requires_grad=True)
with torch.no_grad():
    w.fill_(1.0)
print(w)
""")

program("""
# gradients accumulate
import torch
x = torch.tensor([1.0], requires_grad=True)
w = torch.tensor([2.0], requires_grad=True)
y = x * w
y.backward()
print(f"After 1st backward: x.grad={x.grad}, w.grad={w.grad}")
y = x * w
y.backward()
print(f"After 2nd backward: x.grad={x.grad}, w.grad={w.grad}")
""")

program("""
# the chain rule by hand
import torch
w = torch.tensor([2.0], requires_grad=True)
x = torch.tensor([0.5], requires_grad=True)
b = torch.tensor([1.0], requires_grad=True)
f = w * x + b
f.backward()
print(f"w.grad = {w.grad}, x.grad = {x.grad}, b.grad = {b.grad}")
print(f, f.grad_fn.__class__.__name__, f.grad_fn.next_functions[0][0].__class__.__name__)
""")

program("""
# no gradients
import torch
import torch.nn as nn
torch.manual_seed(0)
model = nn.Linear(2, 2)
x = torch.ones(1, 2)
with torch.no_grad():
    y_pred = model(x)
print(y_pred.requires_grad)
for param in model.parameters():
    param.requires_grad_(False)
print(model(x).requires_grad)
w = torch.ones(1, 2, requires_grad=True)
y = x * w
z = y.detach()
print(z.requires_grad, y.requires_grad, z.data_ptr() == y.data_ptr())
""")

program("""
# a custom linear layer
import torch
import torch.nn as nn
class MyLinear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
    def forward(self, x):
        return x @ self.weight.T + self.bias
torch.manual_seed(0)
layer = MyLinear(4, 3)
print(list(layer.parameters()))
print(layer, layer(torch.ones(2, 4)).shape)
class BadLinear(nn.Module):
    def __init__(self, in_f, out_f):
        super().__init__()
        self.W = torch.randn(out_f, in_f)
print(list(BadLinear(2, 2).parameters()))
""")

program("""
# containers
import torch
import torch.nn as nn
from collections import OrderedDict
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
print(model)
print(nn.Sequential(OrderedDict([('fc1', nn.Linear(7, 5)), ('relu1', nn.ReLU()), ('fc2', nn.Linear(5, 2))])))
class MyResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(5)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x) + x
        return x
class SwitchableNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.activations = nn.ModuleDict({'relu': nn.ReLU(), 'tanh': nn.Tanh(), 'sigmoid': nn.Sigmoid()})
    def forward(self, x, activation='relu'):
        return self.activations[activation](x)
net = MyResNet()
out = net(torch.ones(2, 8))
print(net, [n for n, _ in net.named_parameters()], out.shape)
out2 = SwitchableNet()(torch.tensor([-1., 0., 2.]), 'tanh')
print(SwitchableNet(), out2)
""")

program("""
# forward hooks
import torch
import torch.nn as nn
torch.manual_seed(0)
layer = nn.Linear(4, 2)
def pre_hook(module, input):
    print(f"[pre_hook] input shape: {input[0].shape}")
def post_hook(module, input, output):
    print(f"[post_hook] output shape: {output.shape}")
handle1 = layer.register_forward_pre_hook(pre_hook)
handle2 = layer.register_forward_hook(post_hook)
x = torch.randn(2, 4)
y = layer(x)
handle1.remove()
handle2.remove()
y = layer(x)
""")

program("""
# backward hooks
import torch
import torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
order = []
for name, m in net.named_modules():
    if name:
        def hook(m, gi, go, name=name):
            order.append((name, m.__class__.__name__, go[0].shape))
        m.register_full_backward_hook(hook)
x = torch.ones(2, 3, requires_grad=True)
x.register_hook(lambda g: print("grad of x", g.shape))
h = net[0](x)
h.register_hook(lambda g: g * 2)
h.retain_grad()
net[2](net[1](h)).sum().backward()
print(order)
grads = [p.grad for p in net.parameters()]
""")

program("""
# autoencoder
import torch
import torch.nn as nn
class Autoencoder(nn.Module):
    def __init__(self, dims=[20, 10, 4, 10, 20]):
        super().__init__()
        layers = []
        for i in range(len(dims) - 1):
            layers.append(nn.Linear(dims[i], dims[i+1]))
            if i < len(dims) // 2:
                layers.append(nn.ReLU())
            else:
                layers.append(nn.Sigmoid())
        self.net = nn.Sequential(*layers)
    def forward(self, x):
        return self.net(x)
torch.manual_seed(0)
model = Autoencoder()
print(model)
x = torch.rand(6, 20)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()
losses = []
for epoch in range(5):
    optimizer.zero_grad()
    loss = criterion(model(x), x)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[-1] < losses[0])
""")

program("""
# a dataset
import torch
from torch.utils.data import Dataset, DataLoader
class MyDataset(Dataset):
    def __init__(self, data, targets):
        self.data = data
        self.targets = targets
    def __len__(self):
        return len(self.data)
    def __getitem__(self, idx):
        return self.data[idx], self.targets[idx]
dataset = MyDataset(torch.arange(20.).view(10, 2), torch.arange(10))
torch.manual_seed(3)
loader = DataLoader(dataset, batch_size=4, shuffle=True, drop_last=True)
for xb, yb in loader:
    print(xb, yb)
def collate_fn(batch):
    images = torch.stack([item[0] for item in batch])
    labels = torch.tensor([item[1] for item in batch])
    return images, labels
for images, labels in DataLoader(dataset, batch_size=3, collate_fn=collate_fn):
    print(images.shape, labels)
""")

program("""
# samplers
import torch
from torch.utils.data import Sampler, SequentialSampler, RandomSampler, WeightedRandomSampler
class OrderedSampler(Sampler):
    def __init__(self, data_source, order):
        self.data_source = data_source
        self.order = order
    def __iter__(self):
        return iter(self.order)
    def __len__(self):
        return len(self.order)
print(list(OrderedSampler(range(3), [2, 0, 1])), list(SequentialSampler(range(4))))
torch.manual_seed(0)
print(list(RandomSampler(range(8))))
weights = torch.tensor([1.0, 10.0, 1.0])
sampler = WeightedRandomSampler(weights, num_samples=10, replacement=True)
print(len(list(sampler)))
""")

program("""
# a custom autograd function
import torch
class CustomFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha=2.0):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return x * torch.sigmoid(alpha * x)
    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        alpha = ctx.alpha
        sigmoid = torch.sigmoid(alpha * x)
        grad_x = grad_output * (sigmoid + alpha * x * sigmoid * (1 - sigmoid))
        return grad_x, None
x = torch.tensor([-1.0, 0.0, 0.5, 2.0, 3.0], requires_grad=True)
custom_silu = CustomFunction.apply
y = custom_silu(x, 1.5)
print(type(y.grad_fn).__name__)
loss = y.sum()
loss.backward()
print(f"Gradient w.r.t x: {x.grad}")
""")

program("""
# gradient checkpointing
import torch
import torch.utils.checkpoint as checkpoint
class MemoryEfficientModel(torch.nn.Module):
    def __init__(self, n_layers=8, hidden_dim=16):
        super().__init__()
        self.layers = torch.nn.ModuleList([
            torch.nn.Sequential(torch.nn.Linear(hidden_dim, hidden_dim), torch.nn.ReLU())
            for _ in range(n_layers)
        ])
    def forward(self, x):
        segments = 4
        segment_len = len(self.layers) // segments
        for i in range(segments):
            start = i * segment_len
            end = (i + 1) * segment_len
            def segment_forward(*inputs, start=start, end=end):
                local_x = inputs[0]
                for layer in self.layers[start:end]:
                    local_x = layer(local_x)
                return local_x
            x = checkpoint.checkpoint(segment_forward, x, use_reentrant=False)
        return x
torch.manual_seed(0)
model = MemoryEfficientModel()
input_tensor = torch.randn(4, 16, requires_grad=True)
output = model(input_tensor)
output.sum().backward()
grad = input_tensor.grad
""")

program("""
# batch norm by hand
import torch
import torch.nn as nn
torch.manual_seed(0)
x = torch.randn(4, 3, 5, 5)
bn = nn.BatchNorm2d(3)
out = bn(x)
mean = x.mean([0, 2, 3])
var = x.var([0, 2, 3], unbiased=False)
by_hand = (x - mean.view(1, -1, 1, 1)) / torch.sqrt(var.view(1, -1, 1, 1) + bn.eps)
print(torch.allclose(out, by_hand, atol=1e-5), bn.num_batches_tracked)
state = dict(bn.state_dict())
bn.eval()
out2 = bn(x)
""")

program("""
# a residual block
import torch
import torch.nn as nn
import torch.nn.functional as F
class ResNetBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(channels)
    def forward(self, x):
        residual = x
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += residual
        return F.relu(out)
class ResNet(nn.Module):
    def __init__(self, num_blocks, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, stride=2, padding=3)
        self.bn1 = nn.BatchNorm2d(8)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.blocks = nn.ModuleList([ResNetBlock(8) for _ in range(num_blocks)])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8, num_classes)
    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.maxpool(x)
        for block in self.blocks:
            x = block(x)
        x = self.avgpool(x)
        x = x.view(x.size(0), -1)
        return self.fc(x)
torch.manual_seed(0)
model = ResNet(2)
print(model)
x = torch.randn(2, 3, 16, 16)
model.eval()
y = model(x)
print(y.shape, sum(p.numel() for p in model.parameters()))
""")

program("""
# a training loop
import torch
import torch.nn as nn
import torch.nn.functional as F
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
x = torch.randn(32, 4)
y = torch.randint(0, 3, (32,))
losses = []
for epoch in range(6):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
    print(f"epoch {epoch} loss {loss.item():.3f} lr {scheduler.get_last_lr()}")
model.eval()
with torch.no_grad():
    accuracy = (model(x).argmax(1) == y).float().mean().item()
print(f"accuracy {accuracy:.2f}")
""")

program("""
# in-place operations and their errors
import torch
x = torch.ones(3, requires_grad=True)
try:
    x.add_(1)
except RuntimeError as e:
    print(e)
y = x * 2
y.add_(1)
print(y, y._version)
z = y.exp()
z.mul_(2)
try:
    z.sum().backward()
except RuntimeError as e:
    print("modified by an inplace operation" in str(e))
try:
    torch.ones(3, 4) + torch.ones(3)
except RuntimeError as e:
    print(str(e).splitlines()[0])
""")

program("""
# higher derivatives
import torch
x = torch.tensor(2.0, requires_grad=True)
y = x ** 4
(first,) = torch.autograd.grad(y, x, create_graph=True)
(second,) = torch.autograd.grad(first, x, create_graph=True)
(third,) = torch.autograd.grad(second, x)
print(first.item(), second.item(), third.item())
""")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_program_prints_the_same(name):
    both(PROGRAMS[name], least=(1e-4, 1e-5))
