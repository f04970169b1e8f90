"""The commands of the command line, one module each; `cli` gathers them."""
