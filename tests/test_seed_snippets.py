"""The shorter snippets of documents about PyTorch, put together by subject: with the import swapped they print the same.

Not here, since there is nothing to compare: snippets for CUDA graphs, ONNX, accelerate, transformers, wandb, the elastic launcher,
C++ and Java; torch.jit and torch.save, which have tests of their own; those that need data or networks that the document does not show; and IR listings.
"""

import pytest

from tests.oracle import both

PROGRAMS = {
    "a slice shares storage": """
import torch
a = torch.arange(5)
b = a[2:]
print('a:', a)
print('b:', b)
print(a.storage().data_ptr() == b.storage().data_ptr())
b[1] = 0
print('a:', a)
print('b:', b)
x = torch.tensor([[1, 3, 5, 7], [7, 7, 7, 7]])
print(x, x.stride(0), x.stride(1))
""",
    "view needs contiguous memory": """
import torch
a = torch.arange(9).reshape(3, 3)
b = a.permute(1, 0)
print(a, a.size(), a.stride())
print(b, b.size(), b.stride())
print(a.view(-1))
try:
    b.view(-1)
except RuntimeError as e:
    print(e)
c = b.contiguous()
print(c.view(-1), b.reshape(-1))
print(a.storage().data_ptr() == b.storage().data_ptr(), a.storage().data_ptr() == c.storage().data_ptr())
""",
    "products": """
import torch
torch.manual_seed(0)
a, b = torch.randn(2, 3), torch.randn(3, 4)
c = torch.matmul(a, b)
d, e, f = a @ b, torch.mm(a, b), torch.einsum('ij,jk->ik', a, b)
g = torch.bmm(torch.randn(10, 3, 4), torch.randn(10, 4, 5))
h = torch.dot(torch.randn(5), torch.randn(5))
result = torch.mv(torch.randn(3, 4), torch.randn(4))
print(c.shape, g.shape, h.shape, result.shape)
""",
    "shapes": """
import torch
x = torch.randn(4, 4)
print(x.view(16).shape, x.view(-1, 8).shape, x.reshape(2, 8).shape)
x = torch.zeros(2, 1, 3, 1, 4)
print(x.squeeze().shape, x.squeeze(1).shape)
x = torch.tensor([1, 2, 3])
print(x.unsqueeze(0).shape, x.unsqueeze(1).shape)
x = torch.randn(2, 3, 5)
print(x.transpose(0, 2).shape, x.permute(2, 0, 1).shape)
x = torch.tensor([[1], [2], [3]])
print(x.expand(3, 4), torch.tensor([1, 2, 3]).repeat(2, 3))
x = torch.randn(2, 3, 4)
print(x.flatten().shape, x.flatten(start_dim=1).shape, x.ravel().shape)
print(torch.stack([torch.randn(3, 4), torch.randn(3, 4)]).shape)
print(torch.cat([torch.randn(2, 3), torch.randn(2, 5)], dim=1).shape)
x = torch.randn(5, 10)
print([t.shape for t in torch.split(x, 2, dim=0)], [t.shape for t in torch.chunk(x, 3, dim=1)])
x = torch.randn(3, 1)
print(torch.broadcast_to(x, (3, 5)).shape, torch.randn(3, 5).narrow(1, 1, 2).shape)
print(torch.arange(1, 8).unfold(0, 3, 1))
""",
    "layers by name": """
import torch
import torch.nn as nn
for layer in (
    nn.Linear(in_features=10, out_features=20), nn.Conv2d(in_channels=3, out_channels=16, kernel_size=3, stride=1, padding=1),
    nn.RNN(input_size=10, hidden_size=20, num_layers=2), nn.LSTM(input_size=10, hidden_size=20, num_layers=2),
    nn.GRU(input_size=10, hidden_size=20, num_layers=2), nn.ReLU(), nn.Sigmoid(), nn.Tanh(), nn.LeakyReLU(negative_slope=0.01),
    nn.MaxPool2d(kernel_size=2, stride=2), nn.AvgPool2d(kernel_size=2, stride=2), nn.BatchNorm2d(num_features=16),
    nn.LayerNorm(normalized_shape=[20, 30]), nn.MSELoss(), nn.CrossEntropyLoss(), nn.BCELoss(),
    nn.Transformer(d_model=16, nhead=8, num_encoder_layers=1, num_decoder_layers=1),
):
    print(layer)
""",
    "a model from start to evaluation": """
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset
class MyModel(nn.Module):
    def __init__(self):
        super(MyModel, self).__init__()
        self.layer1 = nn.Linear(10, 20)
        self.layer2 = nn.Linear(20, 2)
    def forward(self, x):
        x = torch.relu(self.layer1(x))
        return self.layer2(x)
class MyCustomLayer(nn.Module):
    def __init__(self, in_features, out_features):
        super(MyCustomLayer, self).__init__()
        self.linear = nn.Linear(in_features, out_features)
    def forward(self, x):
        return torch.sigmoid(self.linear(x))
def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
        nn.init.zeros_(m.bias)
torch.manual_seed(0)
print(MyCustomLayer(10, 5))
model = MyModel()
model.apply(init_weights)
print(optim.SGD(model.parameters(), lr=0.01, momentum=0.9))
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)
data = TensorDataset(torch.randn(24, 10), torch.randint(0, 2, (24,)))
losses = []
for epoch in range(2):
    for inputs, labels in DataLoader(data, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
again = nn.DataParallel(MyModel())
again.module.load_state_dict(model.state_dict())
again.eval()
with torch.no_grad():
    same = torch.equal(again(inputs), model(inputs))
print(same)
""",
    "modules in modules": """
import torch
from torch import nn
import torch.nn.functional as F
class MyLinear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(in_features, out_features))
        self.bias = nn.Parameter(torch.randn(out_features))
    def forward(self, input):
        return (input @ self.weight) + self.bias
torch.manual_seed(0)
m = MyLinear(4, 3)
print(m(torch.randn(4)))
for parameter in m.named_parameters():
    print(parameter)
net = nn.Sequential(MyLinear(4, 3), nn.ReLU(), MyLinear(3, 1))
print(net(torch.randn(4)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = MyLinear(4, 3)
        self.l1 = MyLinear(3, 1)
    def forward(self, x):
        x = self.l0(x)
        x = F.relu(x)
        x = self.l1(x)
        return x
for child in Net().named_children():
    print(child)
class BigNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = MyLinear(5, 4)
        self.net = Net()
    def forward(self, x):
        return self.net(self.l1(x))
for module in BigNet().named_modules():
    print(module)
class DynamicNet(nn.Module):
    def __init__(self, num_layers):
        super().__init__()
        self.linears = nn.ModuleList([MyLinear(4, 4) for _ in range(num_layers)])
        self.activations = nn.ModuleDict({'relu': nn.ReLU(), 'lrelu': nn.LeakyReLU()})
        self.final = MyLinear(4, 1)
    def forward(self, x, act):
        for linear in self.linears:
            x = linear(x)
        x = self.activations[act](x)
        x = self.final(x)
        return x
dynamic_net = DynamicNet(3)
output = dynamic_net(torch.randn(4), 'relu')
for parameter in dynamic_net.named_parameters():
    print(parameter)
""",
    "walking over a model": """
import torch
import torch.nn as nn
class ExampleModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layer = nn.Linear(7, 12)
        self.activation1 = nn.ReLU()
        self.feature_block = nn.Sequential(nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 3), nn.BatchNorm1d(3))
        self.output_layer = nn.Linear(3, 2)
        self.final_activation = self.activation1
    def forward(self, x):
        x = self.activation1(self.input_layer(x))
        return self.final_activation(self.output_layer(self.feature_block(x)))
model = ExampleModel()
print("Model Structure:", model)
for i, child in enumerate(model.children()):
    print(f"{i}: {child.__class__.__name__}", isinstance(child, nn.Sequential))
for name, child in model.named_children():
    print(f"Name: '{name}', Module: {child.__class__.__name__}")
for i, module in enumerate(model.modules()):
    print(i, repr(module).splitlines()[0][:70])
for name, module in model.named_modules():
    print(f"Path: '{name}', Module: {repr(module).splitlines()[0][:70]}")
for i, param in enumerate(model.parameters()):
    print(f"{i}: Shape={param.shape}, Requires Grad={param.requires_grad}")
frozen = 0
for name, param in model.named_parameters():
    if name.startswith('feature_block.') and param.requires_grad:
        param.requires_grad = False
        frozen += 1
    print(f"Name: '{name}', Shape={param.shape}, Requires Grad={param.requires_grad}")
for name, buf in model.named_buffers():
    print(name, buf.size())
l = nn.Linear(2, 2)
net = nn.Sequential(l, l)
for idx, m in enumerate(net.modules()):
    print(idx, '->', m)
for idx, m in enumerate(net.named_modules()):
    print(idx, '->', m)
for param in net.parameters():
    print(param.size())
""",
    "random numbers": """
import torch
torch.manual_seed(42)
print(torch.rand(3, 3), torch.randn(3, 3), torch.randperm(10), torch.randint(2, 9, (4,)))
print(torch.initial_seed(), torch.default_generator.initial_seed())
state = torch.get_rng_state()
a = torch.rand(2)
torch.set_rng_state(state)
print(torch.equal(a, torch.rand(2)), state.dtype)
print(torch.normal(torch.zeros(3), torch.ones(3)).shape, torch.bernoulli(torch.ones(3)), torch.poisson(torch.zeros(2)))
print(torch.multinomial(torch.tensor([0., 1.]), 3, replacement=True))
""",
    "grad modes": """
import torch
x = torch.zeros(1, requires_grad=True)
with torch.no_grad():
    y = x * 2
print(y.requires_grad)
with torch.set_grad_enabled(False):
    y = x * 2
print(y.requires_grad)
torch.set_grad_enabled(True)
print((x * 2).requires_grad, torch.is_grad_enabled())
torch.set_grad_enabled(False)
print((x * 2).requires_grad, torch.is_grad_enabled())
torch.set_grad_enabled(True)
with torch.autograd.grad_mode.inference_mode():
    x = torch.ones(3, 3)
    y = x * 2
    print(torch.is_inference_mode_enabled(), y.is_inference())
print(torch.is_inference_mode_enabled())
""",
    "detach and clone": """
import torch
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 2
y_detached = y.detach()
print(y.requires_grad, y_detached.requires_grad)
y_detached[0] = 10
print(y)
y = x.clone()
y[0] = 10
print(x, y)
z_clone = (x * 2).clone()
print(type(z_clone.grad_fn).__name__, type((x * 2).grad_fn).__name__)
z = (x * 2).sum()
z.backward()
print(x.grad)
x.requires_grad_(False)
print(x.requires_grad)
""",
    "contiguous": """
import torch
tensor = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
print(tensor.is_contiguous())
transposed_tensor = tensor.t()
print(transposed_tensor.is_contiguous(), transposed_tensor.contiguous().is_contiguous())
print(transposed_tensor, transposed_tensor.stride())
s = 0
for i in range(3):
    for j in range(3):
        s += tensor[j, i].item()
print(s)
""",
    "depth by the input": """
import torch
class DynamicNetwork(torch.nn.Module):
    def __init__(self, max_layers=4, hidden_dim=6):
        super().__init__()
        self.max_layers = max_layers
        self.layers = torch.nn.ModuleList([torch.nn.Linear(hidden_dim, hidden_dim) for _ in range(max_layers)])
        self.gating_network = torch.nn.Sequential(torch.nn.Linear(hidden_dim, max_layers), torch.nn.Sigmoid())
    def forward(self, x):
        gate_weights = self.gating_network(x)
        for i in range(self.max_layers):
            gate = gate_weights[:, i:i+1]
            if (gate > 0.5).any():
                layer_output = self.layers[i](x)
                x = gate * layer_output + (1 - gate) * x
        return x
torch.manual_seed(0)
net = DynamicNetwork()
out = net(torch.randn(5, 6))
out.sum().backward()
grads = [p.grad for p in net.parameters() if p.grad is not None]
print(len(grads))
""",
    "steps by the input": """
import torch
class AdaptiveComputationTime(torch.nn.Module):
    def __init__(self, cell, max_steps=10, threshold=0.95):
        super().__init__()
        self.cell = cell
        self.max_steps = max_steps
        self.threshold = threshold
        self.halting_network = torch.nn.Linear(cell.hidden_size, 1)
        torch.nn.init.constant_(self.halting_network.bias, -0.5)
    def forward(self, x):
        batch_size = x.size(0)
        device = x.device
        h = torch.zeros(batch_size, self.cell.hidden_size).to(device)
        c = torch.zeros(batch_size, self.cell.hidden_size).to(device)
        total_steps = 0
        remainders = torch.zeros(batch_size).to(device)
        halting_probability = torch.zeros(batch_size).to(device)
        for step in range(self.max_steps):
            h, c = self.cell(x, (h, c))
            p = torch.sigmoid(self.halting_network(h)).squeeze()
            still_running = (halting_probability < self.threshold).float()
            halting_probability = halting_probability + p * still_running
            remainders = remainders + still_running * (1 - halting_probability)
            running = (halting_probability < self.threshold).float()
            total_steps += 1
            if running.sum().item() == 0:
                break
        h = h * remainders.view(-1, 1)
        return h, total_steps
torch.manual_seed(0)
model = AdaptiveComputationTime(torch.nn.LSTMCell(3, 4))
h, steps = model(torch.randn(5, 3))
print(steps)
h.sum().backward()
grads = [p.grad for p in model.parameters()]
""",
    "mixed precision": """
import torch
class PrecisionAwareTraining(torch.nn.Module):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.optimizer = optimizer
        self.scaler = torch.amp.GradScaler("cpu")
    def forward(self, x, targets=None):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            outputs = self.model(x)
        if targets is not None:
            loss = torch.nn.functional.cross_entropy(outputs.float(), targets)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=1.0)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            return outputs, loss
        return outputs
torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
train = PrecisionAwareTraining(model, torch.optim.SGD(model.parameters(), 0.1))
outputs, loss = train(torch.randn(6, 4), torch.randint(0, 3, (6,)))
print(outputs.dtype, round(loss.item(), 2), train.scaler.get_scale())
del outputs, loss
""",
    "smaller gradients": """
import torch
def gradient_compression(grad, compression_ratio=0.1):
    if compression_ratio >= 1.0:
        return grad
    grad_flat = grad.view(-1)
    k = max(1, int(grad_flat.numel() * compression_ratio))
    values, indices = torch.topk(grad_flat.abs(), k)
    compressed_grad = torch.zeros_like(grad_flat)
    compressed_grad[indices] = grad_flat[indices]
    return compressed_grad.view_as(grad)
def gradient_quantization(grad, bits=8):
    grad_max = grad.abs().max()
    if grad_max == 0:
        return grad
    scale = (2 ** (bits - 1) - 1) / grad_max
    quantized = torch.clamp(torch.round(grad * scale), -2**(bits-1), 2**(bits-1)-1)
    return quantized / scale
torch.manual_seed(0)
g = torch.randn(6, 5)
a, b = gradient_compression(g), gradient_quantization(g)
print(a, gradient_quantization(torch.zeros(2)))
""",
    "hooks that change results": """
import torch
import torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
def hook_function(module, input, output):
    modified_output = output * 0.5
    return modified_output
def masked(module, input, output):
    output[output > 0.1] *= 1.2
    return output
kept = []
def keep(module, input, output):
    kept.append(output.detach())
handles = [net[0].register_forward_hook(hook_function), net[2].register_forward_hook(masked), net[1].register_forward_hook(keep)]
x = torch.randn(4, 3)
changed = net(x)
changed.sum().backward()
grads = [p.grad for p in net.parameters()]
for h in handles:
    h.remove()
plain = net(x)
print(len(kept))
""",
    "batch norm from tensors": """
import torch
from torch import nn
from torch.nn import Parameter
class BatchNorm2d(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = Parameter(torch.ones(num_features))
        self.bias = Parameter(torch.zeros(num_features))
        self.register_buffer('running_mean', torch.zeros(num_features))
        self.register_buffer('running_var', torch.ones(num_features))
        self.register_buffer('num_batches_tracked', torch.tensor(0, dtype=torch.long))
    def forward(self, input):
        if self.training:
            mean = input.mean([0, 2, 3])
            var = input.var([0, 2, 3], unbiased=False)
            with torch.no_grad():
                self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * mean
                self.running_var = (1 - self.momentum) * self.running_var + self.momentum * var
                self.num_batches_tracked += 1
        else:
            mean = self.running_mean
            var = self.running_var
        output = (input - mean.view(1, -1, 1, 1)) / torch.sqrt(var.view(1, -1, 1, 1) + self.eps)
        return output * self.weight.view(1, -1, 1, 1) + self.bias.view(1, -1, 1, 1)
torch.manual_seed(0)
bn = BatchNorm2d(3)
x = torch.randn(4, 3, 2, 2, requires_grad=True)
a = bn(x)
(a ** 2 * torch.arange(4.).view(4, 1, 1, 1)).sum().backward()
bn.eval()
b = bn(x)
print(bn.num_batches_tracked, list(bn.state_dict()))
grads = [x.grad, bn.weight.grad, bn.bias.grad]
""",
    "factory arguments": """
import torch
from torch.nn import factory_kwargs
print(sorted(factory_kwargs({"device": "cpu", "dtype": torch.float64}).items(), key=str), factory_kwargs({}), factory_kwargs(None))
print(sorted(factory_kwargs({"factory_kwargs": {"dtype": torch.int8}, "device": "cpu"}).items(), key=str))
for wrong in ({"foo": 1}, {"device": 1, "factory_kwargs": {"device": 2}}, {"factory_kwargs": {"bar": 3}}):
    try:
        factory_kwargs(wrong)
    except TypeError as e:
        print(e)
""",
    "compile": """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(10, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
try:
    torch.compile(model, object)
except TypeError as e:
    print("TypeError")
compiled_model = torch.compile(model, mode="reduce-overhead", backend="eager")
output_data = compiled_model(torch.randn(1, 10))
print(output_data.shape)
""",
    "workers": """
import torch
from torch.utils.data import Dataset, DataLoader
class ImageDataset(Dataset):
    def __init__(self, images, labels, transform=None):
        self.images, self.labels, self.transform = images, labels, transform
    def __len__(self):
        return len(self.images)
    def __getitem__(self, idx):
        image = self.images[idx]
        if self.transform:
            image = self.transform(image)
        return image, self.labels[idx]
dataset = ImageDataset(torch.arange(20.).view(10, 2), list(range(10)), transform=lambda x: x / 2)
torch.manual_seed(0)
dataloader = DataLoader(
    dataset, batch_size=4, shuffle=True, drop_last=True,
    collate_fn=lambda batch: (torch.stack([x[0] for x in batch]), torch.tensor([x[1] for x in batch])),
)
for images, labels in dataloader:
    print(images, labels)
del images, labels
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_snippets_print_the_same(name):
    both(PROGRAMS[name], least=(1e-4, 1e-5))
