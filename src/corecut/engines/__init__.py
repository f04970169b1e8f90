"""Engines: where the stages that read all edges, or a part of every block of rows, run.

Such a stage is a pure function of a block of rows and of small arrays, and an ordered merge of what the blocks return. The
local engine runs it on the threads of this process, the Dask engine as tasks on the workers of a cluster; native functions and
results are the same. Everything else (eigenvectors, draws, repair, small quotients) runs in the calling process.

Nothing outside of this folder knows Dask.
"""

from __future__ import annotations

from corecut.engines.local import Engine, LocalEngine

__all__ = ["Engine", "LocalEngine"]
