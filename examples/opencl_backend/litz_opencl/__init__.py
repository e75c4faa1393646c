"""An OpenCL backend for Litz: ``torch.compile(model, backend="litz", options={"device": "opencl"})``."""

from pathlib import Path


def library() -> str:
    """The path of the backend's shared library, for ``litz.register_backend``."""
    return str(Path(__file__).parent / "litz_opencl.so")
