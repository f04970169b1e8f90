"""The paper's experiments, each by one command, with its figures and a table of claims.

    plan            cells: a method, on a graph, at one place of the horizontal axis, in one run
     -> run         each unfinished cell in a process of its own kind; results.json grows by one cell at a time
     -> figures     mean and one standard deviation, as the paper draws them
     -> summary.md  claim, the paper's figure, ours

===============  =================  ====================================================================
name             in the paper       module
===============  =================  ====================================================================
coreset-time     Figure 2           :mod:`corecut.experiments.coreset_time`
real-data        Figures 3, 5, 6, 7  :mod:`corecut.experiments.real_data`
many-clusters    Figure 4           :mod:`corecut.experiments.many_clusters`
===============  =================  ====================================================================
"""
