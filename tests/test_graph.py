"""The input contract: what a graph may be made from, what is refused and in which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from scipy.sparse.csgraph import connected_components

from corecut import Graph, KernelView, build_coreset, conductance, label_nodes, sample_seeds
from corecut.coreset import everything
from corecut.graph import NotSymmetricError

PATH = np.array([[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 3], [0, 0, 3, 0]], dtype=float)


def frozen(csr: sp.csr_array) -> sp.csr_array:
    """Return the matrix with arrays that nobody can write to."""
    for array in (csr.indptr, csr.indices, csr.data):
        array.flags.writeable = False
    return csr


# --- what is accepted ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("value", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_canonical_csr_is_used_as_it_is(index: type, value: type, kind: type, rng: np.random.Generator) -> None:
    csr = kind(problems.random_adjacency(rng, 30, loops=0.5).astype(value))
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
    graph = Graph.from_matrix(frozen(csr))
    assert np.shares_memory(graph.indptr, csr.indptr)
    assert np.shares_memory(graph.indices, csr.indices)
    assert np.shares_memory(graph.weights, csr.data)
    assert (graph.indices.dtype, graph.weights.dtype) == (index, value)
    checks.valid_graph(graph)


def test_mixed_index_widths_are_used_as_they_are(rng: np.random.Generator) -> None:
    csr = sp.csr_array(problems.random_adjacency(rng, 30))
    csr.indptr = csr.indptr.astype(np.int64)
    graph = Graph.from_matrix(csr)
    assert graph.indptr is csr.indptr
    assert graph.indices.dtype == np.int32
    checks.valid_graph(graph)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_sparse_format_gives_the_same_graph(form: str, kind: str, rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 12, loops=0.3, isolated=2)
    matrix = getattr(sp, f"{form}_{kind}")(A)
    before = matrix.copy()
    graph = Graph.from_matrix(matrix)
    checks.valid_graph(graph)
    np.testing.assert_array_equal(graph.adjacency.toarray(), A)
    np.testing.assert_array_equal(matrix.toarray(), before.toarray())


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i4", "i8", "f4", "f8", "g", "dense f2", "dense >f8", "dense ?", "dense i4", "dense f4"]
)
def test_every_real_dtype_gives_the_same_graph(dtype: str) -> None:
    *dense, dtype = dtype.split()
    A = PATH.astype(dtype)
    graph = Graph.from_matrix(A if dense else sp.csr_array(A))
    checks.valid_graph(graph)
    np.testing.assert_array_equal(graph.adjacency.toarray(), A.astype(float))
    expected = None if dtype == "?" else np.float32 if dtype == "f4" else np.float64
    assert (None if graph.weights is None else graph.weights.dtype) == expected


def test_dense_lists_are_graphs() -> None:
    assert Graph.from_matrix([[0, 1], [1, 0]]).n_entries == 2


@given(problems.adjacency_matrices(), st.randoms(use_true_random=False))
def test_duplicates_are_summed_and_zeros_dropped(A: np.ndarray, random: Any) -> None:
    n = len(A)
    # Every entry in two parts, in any order, with stored zeros between them. The parts are exact in binary.
    entries = [(x, y, part) for x in range(n) for y in range(n) for part in (A[x, y] * 0.25, A[x, y] * 0.75)]
    random.shuffle(entries)
    rows, columns, values = (np.array(column) for column in zip(*entries, strict=True))
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    csr = frozen(sp.csr_array((values[order], columns[order], indptr), shape=(n, n)))
    arrays = [a.copy() for a in (csr.indptr, csr.indices, csr.data)]
    for matrix in (csr, sp.coo_array((values, (rows, columns)), shape=(n, n))):
        graph = Graph.from_matrix(matrix)
        checks.valid_graph(graph)
        np.testing.assert_array_equal(graph.adjacency.toarray(), A)
    for array, copy in zip((csr.indptr, csr.indices, csr.data), arrays, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_room_behind_the_last_entry_is_ignored() -> None:
    csr = sp.csr_array(PATH)
    csr.indices, csr.data = np.append(csr.indices, 99).astype(np.int32), np.append(csr.data, np.nan)
    np.testing.assert_array_equal(Graph.from_matrix(csr).adjacency.toarray(), PATH)


@pytest.mark.parametrize("value", [np.float32, np.float64, np.int64, np.bool_])
def test_unit_weights_are_recognised(value: type) -> None:
    graph = Graph.from_matrix(sp.csr_array((PATH > 0).astype(value)))
    assert graph.weights is None
    np.testing.assert_array_equal(graph.degrees, [1, 2, 2, 1])
    assert "unit weights" in repr(graph)


def test_equal_weights_other_than_one_are_kept() -> None:
    graph = Graph.from_matrix((PATH > 0) * 0.5)
    np.testing.assert_array_equal(graph.weights, 0.5)
    assert "float64 weights" in repr(graph)


@given(problems.adjacency_matrices())
def test_degrees_diagonal_volume_and_isolated_nodes(A: np.ndarray) -> None:
    graph = Graph.from_matrix(sp.csr_array(A), check="full")
    checks.valid_graph(graph)
    np.testing.assert_array_equal(graph.isolated, ~A.any(axis=1))
    assert graph.volume == pytest.approx(A.sum())
    assert graph.n_nodes == len(A)


@given(problems.adjacency_matrices())
def test_components_are_scipys_numbered_by_lowest_node(A: np.ndarray) -> None:
    count, labels = Graph.from_matrix(A).components()
    expected_count, expected = connected_components(sp.csr_array(A), directed=False)
    assert count == expected_count
    _, first = np.unique(expected, return_index=True)
    rank = np.argsort(np.argsort(first))
    np.testing.assert_array_equal(labels, rank[expected])


def test_components_of_a_long_path_and_many_pieces(rng: np.random.Generator) -> None:
    order = rng.permutation(5000)
    cut = np.delete(np.arange(4999), np.arange(99, 4999, 100))  # a path cut into pieces of 100
    half = sp.coo_array((np.ones(cut.size), (order[cut], order[cut + 1])), shape=(5000, 5000))
    graph = Graph.from_matrix(sp.csr_array(half + half.T))
    count, labels = graph.components()
    assert count == 50
    for piece in range(50):
        assert np.unique(labels[order[100 * piece : 100 * piece + 100]]).size == 1


@given(problems.adjacency_matrices(), st.data())
def test_subgraph_is_the_principal_submatrix(A: np.ndarray, data: st.DataObject) -> None:
    nodes = np.array(sorted(data.draw(st.sets(st.integers(0, len(A) - 1)))), dtype=np.int64)
    for dtype in (np.float32, np.float64):
        graph = Graph.from_matrix(A.astype(dtype))
        np.testing.assert_array_equal(graph.subgraph(nodes).toarray(), A[np.ix_(nodes, nodes)])


@pytest.mark.parametrize("nodes", [[2, 1], [1, 1], [-1, 2], [0, 4]])
def test_subgraph_wants_increasing_nodes(nodes: list[int]) -> None:
    with pytest.raises(ValueError, match="increasing node numbers below 4"):
        Graph.from_matrix(PATH).subgraph(np.array(nodes))


# --- asymmetry -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "combine"),
    [("mean", lambda A: (A + A.T) / 2), ("max", lambda A: np.maximum(A, A.T)), ("min", lambda A: np.minimum(A, A.T))],
)
def test_symmetrize(how: Any, combine: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator) -> None:
    A = (rng.random((15, 15)) < 0.3) * rng.integers(1, 9, (15, 15)).astype(float)
    graph = Graph.from_matrix(frozen(sp.csr_array(A)), symmetrize=how)
    checks.valid_graph(graph)
    np.testing.assert_array_equal(graph.adjacency.toarray(), combine(A))


def test_symmetrize_leaves_a_symmetric_graph_alone() -> None:
    csr = sp.csr_array(PATH)
    assert Graph.from_matrix(csr, symmetrize="mean").indices is csr.indices


def test_symmetrizing_unit_weights_by_max_gives_unit_weights(rng: np.random.Generator) -> None:
    A = np.triu(rng.random((15, 15)) < 0.3)
    assert Graph.from_matrix(A, symmetrize="max").weights is None


@pytest.mark.parametrize("value", [0.0, 2.5])
def test_full_check_finds_a_single_asymmetric_entry(value: float) -> None:
    # Far more entries than the sample has, so that "sample" would hardly see it.
    graph, _ = problems.planted_graph(np.random.default_rng(5), [20_000], degree=10)
    x = 12_345
    p = int(graph.indptr[x + 1]) - 1  # neither row is among the first
    y, backward = int(graph.indices[p]), float(graph.data[p])
    graph.data[p] = value
    if value == 0.0:
        graph.eliminate_zeros()
    low, high = (x, y) if x < y else (y, x)
    with pytest.raises(ValueError, match="not symmetric") as caught:
        Graph.from_matrix(graph, check="full")
    message = str(caught.value)
    assert f"({low}, {high})" in message
    assert f"({high}, {low})" in message
    assert f"{backward:g}" in message
    assert f"= {value:g}" in message
    assert 'symmetrize="mean"' in message
    assert Graph.from_matrix(graph, check="none").n_entries == graph.nnz


def test_sample_check_finds_a_directed_graph() -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(5), [20_000], degree=10)
    directed = sp.csr_array(sp.triu(graph))
    with pytest.raises(ValueError, match=r"not symmetric: entry \(\d+, \d+\) = \S+ but entry \(\d+, \d+\) = 0;"):
        Graph.from_matrix(directed)


def test_small_graphs_are_checked_in_full_by_default() -> None:
    A = problems.random_adjacency(np.random.default_rng(5), 100)
    A[3, 97] += 1.0
    with pytest.raises(ValueError, match="not symmetric"):
        Graph.from_matrix(A)


def test_rounding_is_not_asymmetry() -> None:
    A = PATH.copy()
    A[0, 1] *= 1 + 1e-9
    assert Graph.from_matrix(A, check="full").n_entries == 6


# --- what is refused -----------------------------------------------------------------------------------------------------


def with_value(value: float) -> sp.csr_array:
    """Return the path with entries (2, 1) and (1, 2) replaced."""
    A = PATH.copy()
    A[1, 2] = A[2, 1] = value
    return sp.csr_array(A)


def broken(array: str, position: int, value: int, form: type = sp.csr_array) -> Any:
    """Return the path with one element of its index arrays overwritten behind scipy's back."""
    matrix = form(PATH)
    getattr(matrix, array)[position] = value
    return matrix


def unsorted_out_of_range() -> sp.csr_array:
    csr = sp.csr_array(PATH)
    csr.indices[1:3] = [7, 0]
    return csr


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "NaN": (lambda: with_value(np.nan), ValueError, r"NaN weight: entry \(1, 2\).*remove or replace"),
    "infinity": (lambda: with_value(np.inf), ValueError, r"infinite weight: entry \(1, 2\).*finite"),
    "minus infinity": (lambda: with_value(-np.inf), ValueError, r"infinite weight: entry \(1, 2\)"),
    "negative": (lambda: with_value(-0.5), ValueError, r"negative weight: entry \(1, 2\) = -0.5; .*similarities"),
    "dense NaN": (lambda: with_value(np.nan).toarray(), ValueError, "NaN weight"),
    "float32 NaN": (lambda: with_value(np.nan).astype(np.float32), ValueError, "NaN weight"),
    "negative integer": (lambda: (PATH * -1).astype(int), ValueError, r"negative weight: entry \(0, 1\) = -2"),
    "COO NaN": (lambda: with_value(np.nan).tocoo(), ValueError, "NaN weight"),
    "overflowing row": (lambda: np.full((4, 4), 1e308), ValueError, "node 0 add up to infinity; divide"),
    "overflowing volume": (lambda: np.diag(np.full(4, 1e308)), ValueError, "graph add up to infinity; divide"),
    "asymmetric": (lambda: np.triu(PATH), ValueError, r"entry \(0, 1\) = 2 but entry \(1, 0\) = 0; .*symmetrize"),
    "not square": (lambda: sp.csr_array(np.ones((3, 4))), ValueError, r"square, got shape \(3, 4\)"),
    "dense not square": (lambda: np.ones((4, 3)), ValueError, r"square, got shape \(4, 3\)"),
    "one dimension": (lambda: np.ones(4), TypeError, "square array, got ndarray with 1 dimension"),
    "three dimensions": (lambda: np.ones((2, 2, 2)), TypeError, "3 dimension"),
    "empty": (lambda: sp.csr_array((0, 0)), ValueError, "empty: it has 0 nodes"),
    "dense empty": (lambda: np.zeros((0, 0)), ValueError, "empty: it has 0 nodes"),
    "complex": (lambda: sp.csr_array(PATH + 1j), TypeError, "real numbers, got dtype complex128"),
    "dense complex": (lambda: PATH + 1j, TypeError, "real numbers, got dtype complex128"),
    "objects": (lambda: PATH.astype(object), TypeError, "holding objects"),
    "text": (lambda: np.array([["a", "b"], ["b", "a"]]), TypeError, "real numbers, got dtype <U1"),
    "None": (lambda: None, TypeError, "got NoneType"),
    "column too large": (lambda: broken("indices", -1, 4), ValueError, "column index 4 .* out of range for 4 nodes"),
    "column far too large": (lambda: broken("indices", 0, 2**31 - 1), ValueError, "2147483647 .* out of range"),
    "column negative": (lambda: broken("indices", 1, -1), ValueError, "column index -1 .* out of range"),
    "unsorted column too large": (unsorted_out_of_range, ValueError, "column index 7 .* out of range"),
    "indptr falls": (lambda: broken("indptr", 2, 0), ValueError, "indptr is corrupt at row 1"),
    "indptr jumps": (lambda: broken("indptr", 2, 10**8), ValueError, "indptr is corrupt at row 1"),
    "indptr negative": (lambda: broken("indptr", 1, -3), ValueError, "indptr is corrupt at row 0"),
    "indptr begins late": (lambda: broken("indptr", 0, 1), ValueError, "indptr must begin with 0"),
    "indptr ends late": (lambda: broken("indptr", 4, 7), ValueError, "end with the number of stored entries, 6"),
    "indptr ends negative": (lambda: broken("indptr", 4, -1), ValueError, "end with the number of stored entries, 6"),
    "CSC row too large": (lambda: broken("indices", 2, 4, sp.csc_array), ValueError, "index 4 is out of range"),
    "CSC row negative": (lambda: broken("indices", 2, -4, sp.csc_array), ValueError, "index -4 is out of range"),
    "CSC indptr jumps": (
        lambda: broken("indptr", 2, 10**8, sp.csc_array),
        ValueError,
        "indptr must rise in 4 steps from 0 to at most 6",
    ),
    "CSC indptr falls": (lambda: broken("indptr", 2, 0, sp.csc_array), ValueError, "indptr must rise"),
    "CSC indptr begins late": (lambda: broken("indptr", 0, 1, sp.csc_array), ValueError, "indptr must rise"),
    "CSC indptr ends late": (lambda: broken("indptr", 4, 10**8, sp.csc_array), ValueError, "indptr must rise"),
    "COO row too large": (lambda: broken("row", 2, 4, sp.coo_array), ValueError, "index 4 is out of range"),
    "COO column negative": (lambda: broken("col", 2, -1, sp.coo_array), ValueError, "index -1 is out of range"),
    "BSR column too large": (lambda: broken("indices", 0, 10**8, sp.bsr_array), ValueError, "out of range"),
    "BSR indptr jumps": (lambda: broken("indptr", 1, 10**8, sp.bsr_array), ValueError, "indptr must rise"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_one_clear_sentence(case: str) -> None:
    build, error, words = REFUSED[case]
    for jobs in (1, 3):
        with pytest.raises(error, match=words) as caught:
            Graph.from_matrix(build(), n_jobs=jobs)
        assert "\n" not in str(caught.value)


def test_sparse_objects_are_refused() -> None:
    matrix = sp.csr_array(PATH)
    matrix.data = matrix.data.astype(object)
    with pytest.raises(TypeError, match="real numbers, got dtype object"):
        Graph.from_matrix(matrix)


def test_arrays_of_different_length_are_refused() -> None:
    csr = sp.csr_array(PATH)
    csr.data = csr.data[:-1]
    with pytest.raises(ValueError, match="differ in length: 5 and 6"):
        Graph.from_matrix(csr)


@pytest.mark.parametrize("form", [sp.csc_array, sp.coo_array])
def test_too_few_indices_are_refused(form: type) -> None:
    matrix = form(PATH)
    matrix.data = np.append(matrix.data, 1.0)
    with pytest.raises(ValueError, match="7 stored entries, but indices for 6"):
        Graph.from_matrix(matrix)


@pytest.mark.parametrize(
    ("form", "words"), [(sp.csr_array, "indptr has 2 elements for 4 rows"), (sp.csc_array, "indptr must rise in 4 steps")]
)
def test_indptr_of_the_wrong_length_is_refused(form: type, words: str) -> None:
    matrix = form(PATH)
    matrix.indptr = np.array([0, 6], dtype=np.int32)
    with pytest.raises(ValueError, match=words):
        Graph.from_matrix(matrix)


def test_the_first_bad_entry_is_named_for_any_number_of_threads() -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(5), [30_000], degree=4)
    for x in (29_000, 9_000, 17_000):
        graph.data[graph.indptr[x]] = np.nan
    for jobs in (1, 2, 3):
        with pytest.raises(ValueError, match=r"NaN weight: entry \(9000, \d+\)"):
            Graph.from_matrix(graph, n_jobs=jobs)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"symmetrize": "sum"}, "symmetrize must be one of None, 'mean', 'max', 'min'; got 'sum'"),
        ({"check": "all"}, "check must be one of 'sample', 'full', 'none'; got 'all'"),
        ({"check": None}, "check must be one of"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
    ],
)
def test_unknown_options_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Graph.from_matrix(PATH, **arguments)


@pytest.mark.parametrize(
    ("k", "error", "words"),
    [
        (5, ValueError, "n_clusters=5 is more than n_samples=4"),
        (0, ValueError, "n_clusters must be at least 1"),
        (2.0, TypeError, "n_clusters must be an integer"),
        (True, TypeError, "n_clusters must be an integer"),
    ],
)
def test_wrong_numbers_of_clusters_are_refused(k: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        build_coreset(PATH, k, size=3)


@pytest.mark.parametrize("array", ["indices", "indptr"])
@pytest.mark.parametrize("value", [10**8, -(10**8)])
def test_arrays_that_break_after_the_check_never_crash_a_stage(array: str, value: int, method: str) -> None:
    # Memory-mapped files can change behind a graph; each stage looks at what it reads.
    graph = Graph.from_matrix(sp.csr_array(problems.random_adjacency(np.random.default_rng(3), 40, loops=1.0)))
    view = KernelView.from_graph(graph)
    coreset = everything(view)
    getattr(graph, array)[20 if array == "indptr" else int(graph.indptr[20])] = value
    stages: list[Callable[[], Any]] = [
        lambda: sample_seeds(view, 40, method=method, random_state=0),
        lambda: view.restrict(coreset.indices),
        lambda: label_nodes(view, coreset, np.zeros(40, dtype=int)),
        lambda: conductance(graph, np.zeros(40, dtype=int)),
        graph.components,
    ]
    for stage in stages:
        with pytest.raises(ValueError, match=r"out of range|indptr is corrupt"):
            stage()


# --- sameness ------------------------------------------------------------------------------------------------------------


def test_equal_bits_for_any_number_of_threads(many_blocks: sp.csr_array) -> None:
    nodes = np.arange(0, many_blocks.shape[0], 3)
    one = Graph.from_matrix(many_blocks, check="full", n_jobs=1)
    for jobs in (2, 3, None):
        other = Graph.from_matrix(many_blocks, check="full", n_jobs=jobs)
        checks.same_bits(one, other)
        checks.same_bits(one.subgraph(nodes, n_jobs=1), other.subgraph(nodes, n_jobs=jobs))
    np.testing.assert_allclose(one.degrees, many_blocks.sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("indices", [">i4", ">i8", "<i4", "i2", "u4", "u8"])
@pytest.mark.parametrize("values", [">f8", ">f4", "f2", ">i4", "?"])
def test_any_byte_order_and_width(kind, indices, values):
    """Arrays as files from other machines hold them."""
    matrix = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0.0]])).asformat(kind)
    matrix.data = matrix.data.astype(values)
    if kind == "coo":
        matrix.coords = tuple(axis.astype(indices) for axis in matrix.coords)
    else:
        matrix.indices, matrix.indptr = matrix.indices.astype(indices), matrix.indptr.astype(indices)
    graph = Graph.from_matrix(matrix)
    assert graph.degrees.tolist() == [1, 2, 1]
    assert graph.indices.dtype in (np.int32, np.int64)


def test_indices_that_no_graph_has():
    matrix = sp.csr_array(np.ones((2, 2)))
    matrix.indices = np.array([0, 2**63, 0, 1], dtype=np.uint64)
    with pytest.raises(ValueError, match="index 9223372036854775808 is out of range"):
        Graph.from_matrix(matrix)
    matrix.indices = np.array([0, 0.5, 0, 1])
    with pytest.raises(TypeError, match="its indices are float64, not integers"):
        Graph.from_matrix(matrix)


def test_edges_are_counted_with_their_loops():
    assert Graph.from_matrix(np.array([[3, 1, 0], [1, 0, 2], [0, 2, 0]])).n_edges == 3
    assert Graph.from_matrix(np.array([[0, 1], [1, 0]])).n_edges == 1


def test_asymmetry_has_an_error_of_its_own():
    with pytest.raises(NotSymmetricError, match="the graph is not symmetric") as caught:
        Graph.from_matrix(np.array([[0, 1], [0, 0]]))
    assert isinstance(caught.value, ValueError)
