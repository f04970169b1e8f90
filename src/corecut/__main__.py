"""`python -m corecut` is the command line."""

from corecut.cli import main

if __name__ == "__main__":
    main()
