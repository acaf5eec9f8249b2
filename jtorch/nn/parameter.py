"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from jtorch import copying, dispatch, errors_extend, pytree
from jtorch import functions as torch
from jtorch.tensor import Tensor, disabled_torch_function

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(type(Tensor)):
    # A tensor subclass marked as a parameter counts as one: `isinstance(t, Parameter)`.
    def __instancecheck__(self, instance):
        if self is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False):
            return True
        return type.__instancecheck__(self, instance)


class _BufferMeta(type(Tensor)):
    def __instancecheck__(self, instance):
        if self is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False):
            return True
        return type.__instancecheck__(self, instance)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a parameter of the module it is assigned to.

    Args:
        data: the tensor whose storage the parameter shares
        requires_grad: whether it takes part in autograd. Default: True
    """

    __torch_function__ = staticmethod(disabled_torch_function)

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = torch.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        t = data.detach().requires_grad_(requires_grad)
        if type(t) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} "
                "requires that detach() returns an instance of the same type, but return "
                f"type {type(t).__name__} was found instead. To use the type as a "
                "Parameter, please correct the detach() semantics defined by "
                "its __torch_dispatch__() implementation."
            )
        t._is_param = True
        return t

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, proto):
        return _rebuild_parameter, (self.data, self.requires_grad, copying.own_state(self))


def _rebuild_parameter(data, requires_grad, state):
    made = Parameter(data, requires_grad)
    made.__dict__.update(state)
    return made


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that is a buffer of the module it is assigned to: saved with it, but not trained.

    Args:
        data: the tensor whose storage the buffer shares
        persistent: whether it is part of the module's `state_dict`. Default: True
    """

    __torch_function__ = staticmethod(disabled_torch_function)

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = torch.empty(0)
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t


# What may be called on a tensor without a shape.
_ALLOWED = (
    "size", "copy_", "is_complex", "is_floating_point", "half", "float", "double", "char", "short", "int", "long", "cuda", "cpu",
    "to", "get_device", "detach", "requires_grad_", "bfloat16",
)  # fmt: skip


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet: only its dtype and device are."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        allowed = isinstance(getattr(func, "__self__", None), property) or func in (
            getattr(Tensor, n) for n in _ALLOWED
        )
        if not allowed:
            raise errors_extend.uninitialized(func)
        return super().__torch_function__(func, types, args, kwargs)

    def materialize(self, shape, device=None, dtype=None):
        """Give it a shape (and uninitialised memory): it becomes an ordinary parameter or buffer."""
        data = torch.empty(
            shape,
            device=self.data.device if device is None else device,
            dtype=self.data.dtype if dtype is None else dtype,
        )
        self.data = data
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. "
            "This error usually happens in `load_state_dict` when trying to load "
            "an uninitialized parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    def requires_grad_(self, requires_grad=True):
        raise errors_extend.uninitialized(Tensor.requires_grad_)

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. "
            "Call `forward` to initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self):
        return f"<{self.__class__.__name__}>"

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, proto):
        return type(self), (self.requires_grad,)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter that has no shape yet; a lazy module gives it one at its first forward."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        dispatch.override.arm()
        data = torch.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer that has no shape yet; a lazy module gives it one at its first forward."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        dispatch.override.arm()
        data = torch.empty(0, device=device, dtype=dtype)
        result = Tensor._make_subclass(cls, data, requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result


def is_lazy(param) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


# Parameters take the generated fast path of every op, and print as parameters.
dispatch.FAST.update((Parameter, Buffer))
copying.PARAMETER[0] = Parameter
for _cls in (Parameter, Buffer):
    pytree.register(_cls)
