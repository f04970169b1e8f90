"""A planted graph larger than memory: the graph of `make_degree_corrected_sbm`, drawn in pieces straight into a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from corecut._files import naming_where_full, parse_size, require_free_space
from corecut._validation import thread_count
from corecut.datasets.planted import PlantedLaw
from corecut.edges import EdgeSpool, Progress, assemble
from corecut.store import GraphStore, StoreWriter


def planted_store(
    law: PlantedLaw,
    path: Path,
    *,
    memory: str | int = "2GB",
    loops: bool = False,
    overwrite: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> GraphStore:
    """Make the store of a planted graph without ever holding all its edges.

    Parameters
    ----------
    law
        The graph.
    path
        The store to make.
    memory
        Bytes to stay within, as a number or like "2GB".
    loops
        Give every node a self-loop of weight 1, which the published method expects of a graph.
    overwrite
        Replace a store of that name.
    jobs, progress
        Number of threads, None for all cores; and a function that is told how far the work is.

    Returns
    -------
    GraphStore
    """
    bound = parse_size(memory)
    with naming_where_full(Path(path)), StoreWriter.create(path, overwrite=overwrite) as writer:
        store, temporary = 8 * law.draws, 24 * law.draws
        require_free_space(
            writer.folder, int(store if store <= bound // 4 else temporary), "the store with its temporary files"
        )
        spool = EdgeSpool(folder=writer.folder, memory=bound)
        try:
            for source, target in law.edges(n_jobs=jobs):
                spool.add(source, target)
                if progress:
                    progress("drawing", min(spool.report.edges_read, int(law.draws)), int(law.draws) + 1)
            if progress:
                progress("drawing", int(law.draws) + 1, int(law.draws) + 1)
            if loops:
                nodes = np.arange(law.n_nodes, dtype=np.int32)
                spool.add(nodes, nodes)
            assemble(spool, writer, n_nodes=law.n_nodes, threads=thread_count(jobs), progress=progress)
        finally:
            spool.close()
        writer.finish(None)
    return GraphStore.open(path)
