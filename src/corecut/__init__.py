"""Coreset spectral clustering of large graphs and kernels.

    Graph -> (aggregation) -> KernelView -> Seeds -> Coreset -> CoresetGraph -> partition of the coreset
          -> labels of every node -> refined labels -> metrics

A small graph, and a quotient that is small, goes to the spectral step as it is, without a coreset. One module per arrow;
`pipeline` reads as the algorithm from top to bottom, and `CoresetSpectralClustering` is it as a scikit-learn estimator. Names
are loaded on first use, so that `import corecut` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_MODULE_OF = {
    "Coreset": "coreset",
    "CoresetGraph": "coreset_graphs",
    "CoresetKernelKMeans": "baselines",
    "CoresetSpectralClustering": "scikit_learn",
    "DaskEngine": "engines.dask",
    "FastSpectralClustering": "baselines",
    "Graph": "graph",
    "GraphStore": "store",
    "KernelKMeans": "baselines",
    "KernelKMeansResult": "lloyd",
    "KernelView": "kernel",
    "Labelling": "labelling",
    "PartitionFacts": "facts",
    "Seeds": "sampling",
    "Selection": "selection",
    "Quotient": "aggregation",
    "Report": "reporting",
    "Refinement": "refinement",
    "aggregate_graph": "aggregation",
    "build_coreset": "coreset",
    "callable_graph": "neighbors",
    "conductance": "metrics",
    "coreset_graph": "coreset_graphs",
    "coreset_kernel_kmeans": "lloyd",
    "kernel_kmeans": "lloyd",
    "kernel_kmeans_cost": "metrics",
    "kernel_graph": "neighbors",
    "label_confidence": "confidence",
    "label_nodes": "labelling",
    "load": "models",
    "make_degree_corrected_sbm": "datasets",
    "make_sbm": "datasets",
    "modularity": "metrics",
    "neighbor_graph": "neighbors",
    "normalized_cut": "metrics",
    "partition_facts": "facts",
    "rbf_graph": "neighbors",
    "refine_partition": "refinement",
    "read_graph": "readers",
    "report": "reporting",
    "round_embedding": "spectral",
    "sample_seeds": "sampling",
    "select_n_clusters": "selection",
    "spectral_embedding": "spectral",
    "write_graph": "writers",
}

__all__ = list(_MODULE_OF)
__version__ = "0.1.0"

if TYPE_CHECKING:
    from corecut.aggregation import Quotient as Quotient, aggregate_graph as aggregate_graph
    from corecut.baselines import (
        CoresetKernelKMeans as CoresetKernelKMeans,
        FastSpectralClustering as FastSpectralClustering,
        KernelKMeans as KernelKMeans,
    )
    from corecut.confidence import label_confidence as label_confidence
    from corecut.coreset import Coreset as Coreset, build_coreset as build_coreset
    from corecut.coreset_graphs import CoresetGraph as CoresetGraph, coreset_graph as coreset_graph
    from corecut.datasets import make_degree_corrected_sbm as make_degree_corrected_sbm, make_sbm as make_sbm
    from corecut.engines.dask import DaskEngine as DaskEngine
    from corecut.facts import PartitionFacts as PartitionFacts, partition_facts as partition_facts
    from corecut.graph import Graph as Graph
    from corecut.kernel import KernelView as KernelView
    from corecut.labelling import Labelling as Labelling, label_nodes as label_nodes
    from corecut.lloyd import (
        KernelKMeansResult as KernelKMeansResult,
        coreset_kernel_kmeans as coreset_kernel_kmeans,
        kernel_kmeans as kernel_kmeans,
    )
    from corecut.metrics import (
        conductance as conductance,
        kernel_kmeans_cost as kernel_kmeans_cost,
        modularity as modularity,
        normalized_cut as normalized_cut,
    )
    from corecut.models import load as load
    from corecut.neighbors import (
        callable_graph as callable_graph,
        kernel_graph as kernel_graph,
        neighbor_graph as neighbor_graph,
        rbf_graph as rbf_graph,
    )
    from corecut.readers import read_graph as read_graph
    from corecut.refinement import Refinement as Refinement, refine_partition as refine_partition
    from corecut.reporting import Report as Report, report as report
    from corecut.sampling import Seeds as Seeds, sample_seeds as sample_seeds
    from corecut.scikit_learn import CoresetSpectralClustering as CoresetSpectralClustering
    from corecut.selection import Selection as Selection, select_n_clusters as select_n_clusters
    from corecut.spectral import round_embedding as round_embedding, spectral_embedding as spectral_embedding
    from corecut.store import GraphStore as GraphStore
    from corecut.writers import write_graph as write_graph


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"corecut.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'corecut' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
