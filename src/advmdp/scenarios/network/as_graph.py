"""The Internet as a graph of autonomous systems (ASes) and their relations, read from a file or generated.

Two linked ASes are provider and customer, or peers.  Seen from one end, a link leads

    UP to a provider        ACROSS to a peer        DOWN to a customer.

A path is valley-free (Gao 2001) if it goes up any number of times, then across at most once, then down any number of
times: no AS carries traffic between two of its providers or peers for free.  The state of a path is therefore its AS
and whether it may still climb.  :class:`Ways` is the graph of these places: AS u while climbing is place u, AS u while
descending is place n + u, and

    u -UP-> v        u -ACROSS-> n + v        u -DOWN-> n + v        n + u -DOWN-> n + v.

Its walks are the valley-free walks, and its distances are the lengths of the shortest ones.

Files are CAIDA's AS relationships.  A line in the format serial-1 is provider|customer|-1 or peer|peer|0.  serial-2 has
a fourth field, the source of the link, which is ignored.  Lines that start with # are comments and may be in Latin-1.
Files may be compressed with gzip or bzip2.

An older format, recognised by its tabs or spaces, has other codes.  Its -1 means the opposite:

    AS  AS  -1      the first is a customer of the second       AS  AS  1       the first is a provider of the second
    AS  AS  0       they are peers                              AS  AS  2       they are siblings

Siblings carry all traffic for each other, which valley-free paths cannot express; such links are dropped, and a warning
says how many.  A file with bars and a code 1 or 2 is refused: it is the older format with another separator, and
reading it as serial-1 would swap providers and customers.
"""

import bz2
import gzip
import zlib
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, frozen, whole
from advmdp.core.errors import InputError, warn_caller
from advmdp.core.files import path_of
from advmdp.core.optional import optional
from advmdp.core.streams import generator
from advmdp.core.wording import plural
from advmdp.model.tables import running
from advmdp.scenarios.base import at_most

Ints = NDArray[np.int64]
UP, ACROSS, DOWN = 0, 1, 2
SIBLINGS = 2
"""The code of siblings in the older format."""
LARGEST_AS = 2**32 - 1
FEWEST, MOST_BY_NETWORKX = 20, 10_000
"""The fewest ASes of an Internet-like graph, and the most that networkx's generator is designed for."""
MOST = 10_000_000
"""A hundred times as many as the Internet has."""


@dataclass(frozen=True, eq=False, repr=False)
class AsGraph:
    """ASes sorted by number, and each link in both directions, sorted by (tail, head)."""

    name: str
    """The source of the graph, for messages."""
    numbers: Ints
    tail: Ints
    head: Ints
    relation: NDArray[np.int8]
    """UP, ACROSS or DOWN, from tail to head."""

    @classmethod
    def of(cls, name: str, provider: Ints, customer: Ints, peers: tuple[Ints, Ints]) -> "AsGraph":
        """Make a graph from AS numbers: ``provider[i]`` sells to ``customer[i]``; each link is given once."""
        ends = [customer, provider, peers[0], peers[1]], [provider, customer, peers[1], peers[0]]
        numbers, places = np.unique(np.concatenate([*ends[0], *ends[1]]), return_inverse=True)
        tail, head = places.reshape(2, -1)
        relation = np.repeat(np.array([UP, DOWN, ACROSS, ACROSS], np.int8), [len(end) for end in ends[0]])
        order = np.lexsort((head, tail))
        return cls(name, frozen(numbers), frozen(tail[order]), frozen(head[order]), frozen(relation[order]))

    def __repr__(self) -> str:
        sold, even = (int((self.relation == one).sum()) for one in (DOWN, ACROSS))
        links = f"{sold:,} links to customers, {even // 2:,} between peers"
        return f"AsGraph({self.name}: {len(self.numbers):,} ASes, {links})"

    def place(self, name: str, number: int) -> int:
        """The index of an AS number."""
        wanted = whole(name, number, 0)
        k = int(np.searchsorted(self.numbers, wanted))
        if k == len(self.numbers) or self.numbers[k] != wanted:
            raise InputError(name, f"AS{wanted}", f"one of the {len(self.numbers):,} ASes of {self.name}")
        return k

    def degrees(self, relation: int) -> Ints:
        """The number of links of one kind, for each AS."""
        return np.bincount(self.tail[self.relation == relation], minlength=len(self.numbers))

    @cached_property
    def ways(self) -> "Ways":
        n, down = len(self.numbers), np.flatnonzero(self.relation == DOWN)
        link = np.concatenate([np.arange(len(self.tail)), down])
        tail = np.concatenate([self.tail, self.tail[down] + n])
        head = self.head[link] + np.where(self.relation[link] == UP, 0, n)
        return Ways(n, frozen(running(np.bincount(tail, minlength=2 * n))), frozen(tail), frozen(head), frozen(link))


@dataclass(frozen=True, eq=False)
class Ways:
    """The graph of places of the module docstring.  The edges of place p are ptr[p] .. ptr[p + 1]."""

    ases: int
    ptr: Ints
    tail: Ints
    head: Ints
    link: Ints
    """The link of the AsGraph that each edge uses."""

    def distances(self, destination: int) -> FloatArray:
        """The hops of the shortest valley-free path from each place to the AS; inf if there is none."""
        with optional:
            from scipy.sparse import csr_array
            from scipy.sparse.csgraph import dijkstra

        count = 2 * self.ases
        backwards = csr_array((np.ones(len(self.tail)), (self.head, self.tail)), shape=(count, count))
        ends = [destination, destination + self.ases]
        found: FloatArray = dijkstra(backwards, indices=ends, unweighted=True, min_only=True)
        return found


def read_as_graph(path: str | PathLike[str]) -> AsGraph:
    """Read a file of AS relationships, plain or compressed.

    The format is serial-1, serial-2, or the older one with tabs; see the module docstring.

    Warns
    -----
    AdvMDPWarning
        If links between siblings are dropped; if most of the best-connected ASes have fewer customers than providers,
        a sign of swapped relations; or if ASes are providers of each other in a cycle.

    Raises
    ------
    InputError
        If a line is not a relation, or contradicts another line; the error names the line.
    """
    name = str(path_of("file", path))
    a, b, kind, line = _relations(name)
    siblings = kind == SIBLINGS
    if siblings.any():
        warn_caller(f"{name}: dropped {plural(int(siblings.sum()), 'link')} between siblings")
        a, b, kind, line = a[~siblings], b[~siblings], kind[~siblings], line[~siblings]
        if not len(a):
            raise InputError(name, "links between siblings only", "providers and customers, or peers")
    once = _distinct(name, a, b, kind, line)
    sells, peers = once[kind[once] == -1], once[kind[once] == 0]
    graph = AsGraph.of(name, a[sells], b[sells], (a[peers], b[peers]))
    _warn_if_odd(graph)
    return graph


def _relations(name: str) -> tuple[Ints, Ints, Ints, Ints]:
    """For each line the two ASes, the code (-1: the first is the provider) and the line number."""
    import polars as pl

    text = pl.col("text")
    lines = pl.DataFrame({"text": _text(name).split("\n")}).with_row_index("line", 1)
    lines = lines.select("line", text.str.strip_chars()).filter((text != "") & ~text.str.starts_with("#"))
    if lines.is_empty():
        raise InputError(name, "no links", "lines like 174|3356|0 (serial-1) or 174|3356|0|bgp (serial-2)")
    older = _is_older(str(lines["text"][0]))
    cells = pl.col("text").str.replace_all(r"\s+", " ").str.split(" ") if older else pl.col("text").str.split("|")
    numbers = [cells.list.get(k, null_on_oob=True).str.strip_chars().cast(pl.Int64, strict=False) for k in range(3)]
    rows = lines.select("line", "text", fields=cells.list.len(), a=numbers[0], b=numbers[1], kind=numbers[2])
    fields = 3 if older else int(rows["fields"][0])
    codes = [-1, 0, 1, SIBLINGS] if older else [-1, 0]
    good = pl.col("fields").is_in([fields] if fields in (3, 4) else []) & pl.col("kind").is_in(codes)
    good &= pl.col("a").is_between(1, LARGEST_AS) & pl.col("b").is_between(1, LARGEST_AS) & (pl.col("a") != pl.col("b"))
    if (bad := rows.filter(~good.fill_null(False))).height:
        _refuse(name, int(bad["line"][0]), str(bad["text"][0]), fields, older)
    a, b = rows["a"].to_numpy(), rows["b"].to_numpy()
    kind, line = rows["kind"].to_numpy(), rows["line"].to_numpy().astype(np.int64)
    if older:  # here -1 means that the first is the customer, and 1 that it is the provider
        a, b = np.where(kind == -1, b, a), np.where(kind == -1, a, b)
        kind = np.where(kind == 1, -1, kind)
    return a, b, kind, line


def _is_older(text: str) -> bool:
    """Whether a line has the older format, which has no bars."""
    return "|" not in text and len(text.split()) == 3


def _warn_if_odd(graph: AsGraph) -> None:
    """Warn if the graph does not look like the Internet."""
    links = np.bincount(graph.tail, minlength=len(graph.numbers))
    best = np.argsort(-links, kind="stable")[: max(1, min(10, len(links) // 10))]
    odd = best[graph.degrees(UP)[best] > graph.degrees(DOWN)[best]]
    if len(links) >= FEWEST and 2 * len(odd) > len(best):
        named = ", ".join(f"AS{number}" for number in graph.numbers[odd[:3]])
        says = f"{len(odd)} of the {len(best)} best-connected ASes have fewer customers than providers ({named})"
        warn_caller(f"{graph.name}: {says}; are providers and customers swapped?")
    if circle := provider_cycles(graph):
        shown = ", ".join(f"AS{number}" for number in circle[0][:5])
        size = sum(map(len, circle))
        warn_caller(f"{graph.name}: {size:,} ASes are their own indirect providers, in a cycle; the first: {shown}")


def provider_cycles(graph: AsGraph) -> list[list[int]]:
    """The groups of ASes that are, directly or indirectly, providers of each other; largest first.

    A hierarchy has none.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    up, n = graph.relation == UP, len(graph.numbers)
    matrix = csr_array((np.ones(int(up.sum())), (graph.tail[up], graph.head[up])), shape=(n, n))
    _, group = connected_components(matrix, directed=True, connection="strong")
    sizes = np.bincount(group)
    large = np.flatnonzero(sizes > 1)
    ordered = large[np.argsort(-sizes[large], kind="stable")]
    return [graph.numbers[group == k].tolist() for k in ordered]


def _text(name: str) -> str:
    """The text of a file, decompressed if its first bytes say so."""
    try:
        raw = Path(name).read_bytes()
        if raw.startswith(b"BZh"):
            raw = bz2.decompress(raw)
        elif raw.startswith(b"\x1f\x8b"):
            raw = gzip.decompress(raw)
        return _decoded(raw)
    except OSError as error:  # bz2 and gzip raise it too, for bad archives
        raise InputError(name, error.strerror or f"unreadable ({error})", "a file of AS relationships") from None
    except (EOFError, ValueError, zlib.error) as error:
        raise InputError(name, f"unreadable ({error})", "text, plain or compressed with gzip or bzip2") from None


def _decoded(raw: bytes) -> str:
    """Decode as UTF-8, or as Latin-1 if only comments are not ASCII."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        if b"\0" in raw or any(not row.isascii() for row in raw.split(b"\n") if not row.lstrip().startswith(b"#")):
            raise
        return raw.decode("latin-1")


def _refuse(name: str, line: int, text: str, fields: int, older: bool) -> NoReturn:
    """Raise an error that says what is wrong with a line."""
    where = f"{name}, line {line}"
    cells = text.split() if older else [cell.strip() for cell in text.split("|")]
    if older and len(cells) != 3:
        raise InputError(where, f"'{text}'", "AS, AS and relation separated by tabs, as in the first line")
    if len(cells) not in (3, 4):
        raise InputError(where, f"'{text}'", "AS|AS|relation (serial-1) or AS|AS|relation|source (serial-2)")
    if len(cells) != fields:
        raise InputError(where, f"{len(cells)} fields", f"{fields}, as in the first line")
    for cell in cells[:2]:
        if not (cell.isascii() and cell.isdigit() and len(cell) <= 10 and 1 <= int(cell) <= LARGEST_AS):
            raise InputError(where, f"'{cell}'", f"an AS number, 1 to {LARGEST_AS}")
    if older and cells[2] not in ("-1", "0", "1", "2"):
        expected = "-1 (is customer of), 0 (peers), 1 (is provider of) or 2 (siblings)"
        raise InputError(where, f"relation '{cells[2]}'", expected)
    if not older and cells[2] in ("1", "2"):
        given = f"relation '{cells[2]}', which only the older format has; there -1 means 'is customer of'"
        raise InputError(where, given, "-1 (provider|customer) or 0 (peers), or the older format with its tabs")
    if not older and cells[2] not in ("-1", "0"):
        raise InputError(where, f"relation '{cells[2]}'", "-1 (provider|customer) or 0 (peers)")
    raise InputError(where, f"a link from AS{cells[0]} to itself", "two ASes")


def _distinct(name: str, a: Ints, b: Ints, kind: Ints, line: Ints) -> Ints:
    """The lines without duplicates; two that contradict each other are an error."""
    low, high, said = np.minimum(a, b), np.maximum(a, b), np.where(kind == 0, 2, a < b)
    order = np.lexsort((line, high, low))
    again = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0)
    if (clash := again & (np.diff(said[order]) != 0)).any():
        k = int(np.argmax(clash))
        first, second = int(order[k]), int(order[k + 1])
        given = f"AS{a[second]} and AS{b[second]}, with another relation in line {line[first]}"
        raise InputError(f"{name}, line {line[second]}", given, "one relation for each pair of ASes")
    return np.sort(order[np.concatenate([[True], ~again])])


def generated_as_graph(ases: int, seed: int) -> AsGraph:
    """Generate an Internet-like graph: by networkx up to 10,000 ASes, by a similar model above.

    networkx is designed for up to 10,000 ASes, and its time is quadratic: two minutes for 30,000 ASes.  Ours takes a
    tenth of a second.
    """
    count = at_most("ases", ases, FEWEST, MOST)
    name = f"the generated graph (ases={count}, seed={seed})"
    return _by_networkx(name, count, seed) if count <= MOST_BY_NETWORKX else _by_age(name, count, seed)


def _by_networkx(name: str, count: int, seed: int) -> AsGraph:
    """The model of Elmokashfi et al. 2010, from networkx; AS k + 1 is its node k."""
    with optional:
        import networkx as nx
    links = nx.random_internet_as_graph(count, seed=whole("seed", seed, 0)).edges(data=True)
    sold = [(u, v) if data["customer"] == str(v) else (v, u) for u, v, data in links if data["type"] == "transit"]
    peers = [(u, v) for u, v, data in links if data["type"] == "peer"]
    (provider, customer), ends = (np.array(rows, np.int64).reshape(-1, 2).T + 1 for rows in (sold, peers))
    return AsGraph.of(name, provider, customer, (ends[0], ends[1]))


def _by_age(name: str, count: int, seed: int) -> AsGraph:
    """Ten ASes at the top, all peers; then 15% in the middle, which sell and buy; then those that only buy.

    This is preferential attachment in closed form.  If newcomers prefer ASes with many links, the degree of AS j after
    i arrivals grows as sqrt(i / j).  Newcomer i thus chooses j with probability proportional to 1 / sqrt(j), the law of
    floor(i u^2) with u uniform.  An AS in the middle has one to five providers, the others have one to three.  Peers
    follow the same law: twenty for each AS in the middle, one for each of the others.
    """
    random = generator(seed, "bgp", "graph")
    top, middle = 10, 10 + round(0.15 * count)
    newcomers = np.arange(top, count)
    bought = np.where(newcomers < middle, random.integers(1, 6, len(newcomers)), random.integers(1, 4, len(newcomers)))
    customer = np.repeat(newcomers, bought)
    provider = (np.minimum(customer, middle) * random.random(len(customer)) ** 2).astype(np.int64)
    one = np.concatenate([np.repeat(np.arange(top, middle), 20), np.arange(middle, count)])
    other = (middle * random.random(len(one)) ** 2).astype(np.int64)
    clique = np.triu_indices(top, 1)
    tail, head = np.concatenate([clique[0], provider, one]), np.concatenate([clique[1], customer, other])
    # If a link is drawn twice, the first draw counts.
    key = np.minimum(tail, head) * count + np.maximum(tail, head)
    _, first = np.unique(key, return_index=True)
    first = first[tail[first] != head[first]]
    sells = (first >= len(clique[0])) & (first < len(clique[0]) + len(provider))
    tail, head = tail[first] + 1, head[first] + 1
    return AsGraph.of(name, tail[sells], head[sells], (tail[~sells], head[~sells]))
