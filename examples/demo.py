"""Shows what Litz can do today."""

import torch

import litz


def main() -> None:
    print(f"litz {litz.__version__} with torch {torch.__version__}")
    registered = "litz" in torch.compiler.list_backends()
    print(f'backend="litz" is {"registered" if registered else "not registered"} with torch.compile')
    print("The compiler itself is not there yet.")


if __name__ == "__main__":
    main()
