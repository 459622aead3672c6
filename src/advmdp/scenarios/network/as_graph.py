"""The Internet as autonomous systems (ASes) and what they are to each other: read from a file, or generated.

Two ASes that are linked are provider and customer, or peers.  Seen from one end, a link leads

    UP to a provider        ACROSS to a peer        DOWN to a customer

and a path is valley-free (Gao 2001) if it goes up any number of times, then across at most once, then down any number
of times: nobody carries traffic between two of its providers or peers for nothing.  So what matters of a path is
where it is and whether it may still climb.  :class:`Ways` is the graph of these places: AS u while climbing is place
u, AS u while descending is place n + u, and

    u -UP-> v        u -ACROSS-> n + v        u -DOWN-> n + v        n + u -DOWN-> n + v.

Walks in it are the valley-free walks, and distances in it are the lengths of the shortest.

Files are CAIDA's AS relationships.  A line of the format serial-1 is provider|customer|-1 or peer|peer|0; serial-2
has a fourth field that says where the link was seen, which is not used.  Lines that begin with # are comments.  Files
may be packed with gzip or bzip2, and their comments may be in Latin-1.

An older format is separated by tabs or spaces and has other codes, of which the first has the opposite meaning:

    AS  AS  -1      the first is a customer of the second       AS  AS  1       the first is a provider of the second
    AS  AS  0       they are peers                              AS  AS  2       they are siblings

It is known by its separator.  Siblings carry everything for each other, for which there is no place in valley-free
paths; such links are left out, and a warning says how many.  Relations with bars and code 1 or 2 are refused: they are
of that format with another separator, and read as serial-1 all of their providers would be customers.
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
from advmdp.model.tables import running
from advmdp.scenarios.base import at_most

Ints = NDArray[np.int64]
UP, ACROSS, DOWN = 0, 1, 2
SIBLINGS = 2
"""The code of siblings in the older format."""
LARGEST_AS = 2**32 - 1
FEWEST, MOST_BY_NETWORKX = 20, 10_000
"""From how many ASes on a graph is Internet-like at all, and up to how many networkx's generator is made for."""
MOST = 10_000_000
"""A hundred times the Internet."""


@dataclass(frozen=True, eq=False)
class AsGraph:
    """ASes in the order of their numbers, and each link from both of its ends, in the order of (tail, head)."""

    name: str
    """Where it comes from, for messages."""
    numbers: Ints
    tail: Ints
    head: Ints
    relation: NDArray[np.int8]
    """UP, ACROSS or DOWN, from tail to head."""

    @classmethod
    def of(cls, name: str, provider: Ints, customer: Ints, peers: tuple[Ints, Ints]) -> "AsGraph":
        """From AS numbers: ``provider[i]`` sells to ``customer[i]``, the ``peers`` exchange; each link once."""
        ends = [customer, provider, peers[0], peers[1]], [provider, customer, peers[1], peers[0]]
        numbers, places = np.unique(np.concatenate([*ends[0], *ends[1]]), return_inverse=True)
        tail, head = places.reshape(2, -1)
        relation = np.repeat(np.array([UP, DOWN, ACROSS, ACROSS], np.int8), [len(end) for end in ends[0]])
        order = np.lexsort((head, tail))
        return cls(name, frozen(numbers), frozen(tail[order]), frozen(head[order]), frozen(relation[order]))

    def place(self, name: str, number: int) -> int:
        """Where the AS of that number is among all."""
        wanted = whole(name, number, 0)
        k = int(np.searchsorted(self.numbers, wanted))
        if k == len(self.numbers) or self.numbers[k] != wanted:
            raise InputError(name, f"AS{wanted}", f"one of the {len(self.numbers):,} ASes of {self.name}")
        return k

    def degrees(self, relation: int) -> Ints:
        """How many links of the kind each AS has."""
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
    """The graph of places; see the head of this module.  The edges of place p are ptr[p] .. ptr[p + 1]."""

    ases: int
    ptr: Ints
    tail: Ints
    head: Ints
    link: Ints
    """Which link of the AsGraph an edge goes along."""

    def distances(self, destination: int) -> FloatArray:
        """For every place the hops of the shortest valley-free way to the AS; inf where there is none."""
        with optional:
            from scipy.sparse import csr_array
            from scipy.sparse.csgraph import dijkstra

        count = 2 * self.ases
        backwards = csr_array((np.ones(len(self.tail)), (self.head, self.tail)), shape=(count, count))
        ends = [destination, destination + self.ases]
        found: FloatArray = dijkstra(backwards, indices=ends, unweighted=True, min_only=True)
        return found


def read_as_graph(path: str | PathLike[str]) -> AsGraph:
    """Read a file of AS relationships, plain or packed.

    The format is serial-1, serial-2, or the older one with tabs; see the head of this module.

    Warns
    -----
    AdvMDPWarning
        If siblings are left out; if most of the best-connected ASes have fewer customers than providers, or none, a
        sign of relations that are upside down; or if ASes are providers of each other in a circle.

    Raises
    ------
    InputError
        If a line is no relation, or contradicts another one; it names the line.
    """
    name = str(path_of("file", path))
    a, b, kind, line = _relations(name)
    siblings = kind == SIBLINGS
    if siblings.any():
        warn_caller(f"{name}: {int(siblings.sum()):,} links between siblings are left out")
        a, b, kind, line = a[~siblings], b[~siblings], kind[~siblings], line[~siblings]
        if not len(a):
            raise InputError(name, "links between siblings only", "providers and customers, or peers")
    once = _distinct(name, a, b, kind, line)
    sells, peers = once[kind[once] == -1], once[kind[once] == 0]
    graph = AsGraph.of(name, a[sells], b[sells], (a[peers], b[peers]))
    _warn_if_odd(graph)
    return graph


def _relations(name: str) -> tuple[Ints, Ints, Ints, Ints]:
    """Of every line the two ASes, the code (-1: the first is the provider) and the number of the line."""
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
    if older:  # -1 says that the first is the customer, 1 that it is the provider
        a, b = np.where(kind == -1, b, a), np.where(kind == -1, a, b)
        kind = np.where(kind == 1, -1, kind)
    return a, b, kind, line


def _is_older(text: str) -> bool:
    """Whether a line is of the older format, which has no bars."""
    return "|" not in text and len(text.split()) == 3


def _warn_if_odd(graph: AsGraph) -> None:
    """Warn of what the Internet does not look like."""
    links = np.bincount(graph.tail, minlength=len(graph.numbers))
    best = np.argsort(-links, kind="stable")[: max(1, min(10, len(links) // 10))]
    odd = best[graph.degrees(UP)[best] > graph.degrees(DOWN)[best]]
    if len(links) >= FEWEST and 2 * len(odd) > len(best):
        named = ", ".join(f"AS{number}" for number in graph.numbers[odd[:3]])
        says = f"{len(odd)} of the {len(best)} best-connected ASes have fewer customers than providers ({named})"
        warn_caller(f"{graph.name}: {says}; are providers and customers the wrong way round?")
    if circle := provider_cycles(graph):
        shown = ", ".join(f"AS{number}" for number in circle[0][:5])
        size = sum(map(len, circle))
        warn_caller(f"{graph.name}: {size:,} ASes are their own indirect providers, in a circle; the first: {shown}")


def provider_cycles(graph: AsGraph) -> list[list[int]]:
    """The groups of ASes that are, directly or not, providers of each other, by number; largest first.

    In a hierarchy there are none.
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
    """What a file says, unpacked where its first bytes say that it is packed."""
    try:
        raw = Path(name).read_bytes()
        if raw.startswith(b"BZh"):
            raw = bz2.decompress(raw)
        elif raw.startswith(b"\x1f\x8b"):
            raw = gzip.decompress(raw)
        return _decoded(raw)
    except OSError as error:  # bz2 and gzip raise it too, for what is no archive
        raise InputError(name, error.strerror or f"unreadable ({error})", "a file of AS relationships") from None
    except (EOFError, ValueError, zlib.error) as error:
        raise InputError(name, f"unreadable ({error})", "text, plain or packed with gzip or bzip2") from None


def _decoded(raw: bytes) -> str:
    """UTF-8, or Latin-1 where only comments are not."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        if b"\0" in raw or any(not row.isascii() for row in raw.split(b"\n") if not row.lstrip().startswith(b"#")):
            raise
        return raw.decode("latin-1")


def _refuse(name: str, line: int, text: str, fields: int, older: bool) -> NoReturn:
    """Say what is wrong with a line."""
    where = f"{name}, line {line}"
    cells = text.split() if older else [cell.strip() for cell in text.split("|")]
    if older and len(cells) != 3:
        raise InputError(where, f"'{text}'", "AS, AS and relation with tabs between, as in the first line")
    if len(cells) not in (3, 4):
        raise InputError(where, f"'{text}'", "AS|AS|relation (serial-1) or AS|AS|relation|source (serial-2)")
    if len(cells) != fields:
        raise InputError(where, f"{len(cells)} fields", f"{fields}, as in the first line")
    for cell in cells[:2]:
        if not (cell.isascii() and cell.isdigit() and len(cell) <= 10 and 1 <= int(cell) <= LARGEST_AS):
            raise InputError(where, f"'{cell}'", f"the number of an AS, 1 to {LARGEST_AS}")
    if older and cells[2] not in ("-1", "0", "1", "2"):
        expected = "-1 (is customer of), 0 (peers), 1 (is provider of) or 2 (siblings)"
        raise InputError(where, f"relation '{cells[2]}'", expected)
    if not older and cells[2] in ("1", "2"):
        given = f"relation '{cells[2]}', which only the older format has; there -1 means 'is customer of'"
        raise InputError(where, given, "-1 (provider|customer) or 0 (peers), or the older format as it was, with tabs")
    if not older and cells[2] not in ("-1", "0"):
        raise InputError(where, f"relation '{cells[2]}'", "-1 (provider|customer) or 0 (peers)")
    raise InputError(where, f"a link from AS{cells[0]} to itself", "two ASes")


def _distinct(name: str, a: Ints, b: Ints, kind: Ints, line: Ints) -> Ints:
    """The lines that say something new; two that contradict each other are an error."""
    low, high, said = np.minimum(a, b), np.maximum(a, b), np.where(kind == 0, 2, a < b)
    order = np.lexsort((line, high, low))
    again = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0)
    if (clash := again & (np.diff(said[order]) != 0)).any():
        k = int(np.argmax(clash))
        first, second = int(order[k]), int(order[k + 1])
        given = f"AS{a[second]} and AS{b[second]}, whose relation is another in line {line[first]}"
        raise InputError(f"{name}, line {line[second]}", given, "one relation for two ASes")
    return np.sort(order[np.concatenate([[True], ~again])])


def generated_as_graph(ases: int, seed: int) -> AsGraph:
    """An Internet-like graph: networkx's up to 10,000 ASes, for which it is made; above, one of the same kind.

    networkx takes time that grows with the square (two minutes for 30,000 ASes); ours takes a tenth of a second.
    """
    count = at_most("ases", ases, FEWEST, MOST)
    name = f"the generated graph (ases={count}, seed={seed})"
    return _by_networkx(name, count, seed) if count <= MOST_BY_NETWORKX else _by_age(name, count, seed)


def _by_networkx(name: str, count: int, seed: int) -> AsGraph:
    """Elmokashfi et al. 2010, as networkx has it; AS k + 1 is its node k."""
    with optional:
        import networkx as nx
    links = nx.random_internet_as_graph(count, seed=whole("seed", seed, 0)).edges(data=True)
    sold = [(u, v) if data["customer"] == str(v) else (v, u) for u, v, data in links if data["type"] == "transit"]
    peers = [(u, v) for u, v, data in links if data["type"] == "peer"]
    (provider, customer), ends = (np.array(rows, np.int64).reshape(-1, 2).T + 1 for rows in (sold, peers))
    return AsGraph.of(name, provider, customer, (ends[0], ends[1]))


def _by_age(name: str, count: int, seed: int) -> AsGraph:
    """Ten ASes at the top, all peers; then 15 % in the middle, which sell and buy, and last those that only buy.

    Where newcomers prefer who has many links already, the degree of AS j after i have come grows as sqrt(i / j); so
    they choose j with a probability that falls as 1 / sqrt(j), which is the law of floor(i u^2), u uniform.  An AS
    in the middle buys from one to five, the others from one to three; peers are chosen by the same law, twenty for
    each AS in the middle and one for each of the others.
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
    # A link that is drawn twice counts once, as what it was first.
    key = np.minimum(tail, head) * count + np.maximum(tail, head)
    _, first = np.unique(key, return_index=True)
    first = first[tail[first] != head[first]]
    sells = (first >= len(clique[0])) & (first < len(clique[0]) + len(provider))
    tail, head = tail[first] + 1, head[first] + 1
    return AsGraph.of(name, tail[sells], head[sells], (tail[~sells], head[~sells]))
