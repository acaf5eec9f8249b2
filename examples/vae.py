"""A variational autoencoder of handwritten digits, with a posterior and a prior from torch.distributions.

python examples/vae.py                  30 epochs on the 1797 digits that scikit-learn ships
python examples/vae.py --epochs 3 --latent 2
"""

import argparse

from sklearn.datasets import load_digits

import jtorch as torch
from jtorch import nn
from jtorch.distributions import Bernoulli, Independent, Normal, kl_divergence
from jtorch.utils.data import DataLoader, TensorDataset

BATCH = 64
SHADES = " .:-=+*#%@"


class VAE(nn.Module):
    def __init__(self, latent, hidden=256):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.SiLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, 64))

    # Checking arguments needs their values, which would cut the recorded step in two: hence validate_args=False.
    def posterior(self, x):
        loc, log_scale = self.encoder(x).chunk(2, dim=-1)
        return Independent(Normal(loc, log_scale.exp(), validate_args=False), 1, validate_args=False)

    def prior(self, n):
        zeros = torch.zeros(n, self.latent)
        return Independent(Normal(zeros, torch.ones_like(zeros), validate_args=False), 1, validate_args=False)

    def likelihood(self, z):
        return Independent(Bernoulli(logits=self.decoder(z), validate_args=False), 1, validate_args=False)

    def elbo(self, x):
        """The lower bound of log p(x), one number for each image."""
        q = self.posterior(x)
        z = q.rsample()  # (B, latent)
        return self.likelihood(z).log_prob(x) - kl_divergence(q, self.prior(len(x)))


def digits():
    """Images (N, 64) in 0..1, a fifth of them for the test."""
    images = torch.from_numpy(load_digits().data).float() / 16
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    cut = len(images) // 5
    return images[order[cut:]], images[order[:cut]]


def train(model, data, test, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        for (x,) in DataLoader(TensorDataset(data), batch_size=BATCH, shuffle=True):
            optimizer.zero_grad()
            loss = -model.elbo(x).mean()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            print(
                f"epoch {epoch + 1:2d}  train {-loss.item():7.2f}  test {model.elbo(test).mean().item():7.2f}",
                flush=True,
            )


def show(images):
    """Pictures side by side as text."""
    shades = (images.view(-1, 8, 8) * (len(SHADES) - 1)).round().long()
    for row in shades.transpose(0, 1).tolist():
        print("   ".join("".join(SHADES[s] * 2 for s in line) for line in row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--latent", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(0)
    data, test = digits()
    model = VAE(args.latent)
    train(model, data, test, args.epochs)
    with torch.no_grad():
        drawn = model.likelihood(model.prior(5).sample()).mean
    print("\nnew digits, from the prior")
    show(drawn)


if __name__ == "__main__":
    main()
