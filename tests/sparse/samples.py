"""The sparse tensors that all tests of sparse layouts start from, in either module. Few shapes: each costs programs."""

INDICES = [[0, 1, 1, 0], [2, 0, 1, 2]]


class Samples:
    """Tensors of shape (2, 3), and one of each kind made of them."""

    def __init__(self, t, grad=False):
        self.t, self.grad = t, grad

    def leaf(self, x):
        return x.detach().requires_grad_() if self.grad else x

    @property
    def dense(self):
        return self.leaf(self.t.tensor([[1.0, 0, 2], [0, 3, 0]]))

    @property
    def full(self):
        return self.leaf(self.t.arange(1.0, 7).reshape(2, 3))

    @property
    def coo(self):
        """Coordinates with a duplicate, not sorted."""
        return self.leaf(self.t.sparse_coo_tensor(INDICES, [1.0, 2, 3, 4], (2, 3)))

    @property
    def whole(self):
        """Coalesced coordinates."""
        return self.leaf(self.t.sparse_coo_tensor(INDICES, [1.0, 2, 3, 4], (2, 3)).coalesce())

    @property
    def other(self):
        return self.leaf(self.t.sparse_coo_tensor([[0, 1, 1], [2, 1, 2]], [10.0, 20, 30], (2, 3)).coalesce())

    @property
    def hybrid(self):
        """One indexed dimension and one dense."""
        return self.leaf(self.t.sparse_coo_tensor([[1, 0]], [[1.0, 2, 3], [4, 5, 6]], (2, 3)))

    @property
    def csr(self):
        return self.leaf(self.t.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse_csr())

    @property
    def csc(self):
        return self.leaf(self.t.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse_csc())

    def blocks(self, kind):
        x = self.t.tensor([[1.0, 2, 0, 0], [3, 4, 0, 0], [0, 0, 0, 7], [0, 0, 0, 0]])
        return self.leaf(getattr(x, f"to_sparse_{kind}")((2, 2)))

    @property
    def right(self):
        """A dense right factor."""
        return self.leaf(self.t.arange(1.0, 7).reshape(3, 2))

    @property
    def square(self):
        return self.leaf(self.t.arange(1.0, 5).reshape(2, 2))


def parts(x):
    """What a sparse tensor is made of."""
    kind = str(x.layout)
    if kind == "torch.sparse_coo":
        return [x._indices(), x._values(), x.is_coalesced(), x._nnz(), x.sparse_dim(), x.dense_dim()]
    if kind in ("torch.sparse_csr", "torch.sparse_bsr"):
        return [x.crow_indices(), x.col_indices(), x.values(), x._nnz()]
    if kind in ("torch.sparse_csc", "torch.sparse_bsc"):
        return [x.ccol_indices(), x.row_indices(), x.values(), x._nnz()]
    return []


def weigh(x):
    """A number that depends on every element in its own way."""
    x = (x if str(x.layout) == "torch.strided" else x.to_dense()).reshape(-1)
    return (x * (x.detach() * 0 + 1).cumsum(0)).sum()
