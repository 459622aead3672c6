# What the kernels share: structs of pointers, constants, and one-line accessors.
#
# `Structure` describes a skeleton, `Sets` a confidence set, `Work` the memory of one projection. `memory.py` has the
# Python objects that own the arrays behind the pointers.

from libc.stdint cimport int8_t, int32_t, int64_t

ctypedef Py_ssize_t Index
ctypedef double *Floats
ctypedef const double *Reals
ctypedef const int64_t *Ints
ctypedef const int32_t *Indices

cdef extern from *:
    """
    #define ADVMDP_UNIT 0x1p-500
    #define ADVMDP_LIFT 346.57359027997264
    #define ADVMDP_LIFT_REST 3.424378377158469e-14
    #define ADVMDP_EPSILON 0x1p-52
    #define ADVMDP_MARGIN 0.025
    #define ADVMDP_SMALLEST_MASS 1e-128
    #define ADVMDP_UNDER (1.0 - 0x1p-52)
    #define ADVMDP_OVER (1.0 + 0x1p-52)
    """
    const double UNIT "ADVMDP_UNIT"  # 2^-500: flows and masses are kept multiplied by 2^500
    const double LIFT "ADVMDP_LIFT"  # 500 ln 2: room for flows times 2^1000 above and for weights of exp(-1050) below
    const double LIFT_REST "ADVMDP_LIFT_REST"  # 500 ln 2 - LIFT, which a factor of 2^500 includes
    const double EPSILON "ADVMDP_EPSILON"
    const double MARGIN "ADVMDP_MARGIN"  # the least distance of a free row from the boundary of its ball; see weights.py
    const double SMALLEST_MASS "ADVMDP_SMALLEST_MASS"  # times 2^500; rows are exact down to exp(-708), below exp(-640)
    const double UNDER "ADVMDP_UNDER"  # times a number: the one before it, or two
    const double OVER "ADVMDP_OVER"  # times a number: the one after it, or two

cdef enum:  # the statuses of a pair
    FREE = 0
    WATCHED = 1
    IMPOSSIBLE = 2

cdef enum:  # the status of a projection
    SOLVED = 0
    NO_PATH = 1
    STALLED = 2
    UNFIT = 3
    UNEVEN = 4

cdef enum:
    LANES = 4  # numbers that `direct.py` processes at once; rows have room for as many behind them
    RUN = 512  # transitions in one run of exponentials
    ROOM = 64  # entries between arrays, as in `advmdp.core.arrays.apart`

cdef struct Structure:
    # A skeleton, and the edges (x,x') that its transitions (x,a,x') share between actions.
    #
    # If all actions of a state have the same successors in the same order, the j-th transition of every pair lies on
    # the j-th edge of the state, and base_of is the place of the sums over actions in `base`. In other states every
    # transition is its own edge, and base_of is -1. Either way the j-th edge and the j-th transition lead to the same
    # state. first_of_state is the first successor of x if its successors are consecutive states, else -1; first_of_pair
    # is the same for a pair. Consecutive entries need no gather and run in vector registers.
    Index steps  # layers with actions: all but the last
    Index states
    Index pairs
    Index transitions
    Index parts
    Index longest  # the largest number of transitions of a pair
    Index widest  # the largest number of states of a layer
    bint connected  # whether every state is reachable
    Ints layer_ptr
    Ints pair_ptr
    Ints transition_ptr
    Indices successor
    Ints edge_ptr
    Ints first_of_state
    Ints base_of
    Indices first_of_pair
    Indices state_of
    const int8_t *reached  # whether x is reachable from the first state
    Ints part_ptr  # the layer with which each part begins, and the number of steps

cdef struct Sets:
    # C(x,a) for every pair; see `advmdp.confidence.sets.RowSets`.
    bint is_box
    bint blocking
    Reals radius
    Reals low
    Reals high
    Reals log_low
    Reals log_high

cdef struct Work:
    # The problem and its answer. "In the place of" marks arrays that share memory at different times.
    Reals log_w
    Floats log_q
    Floats q
    Floats log_pair
    Floats policy
    Floats flow  # log_q: per edge, the probability of x' after x, times 2^500
    Floats row  # q: p, for watched pairs
    Floats share  # policy: q(x,a) times 2^500, one for each entry of `watched`
    bint holes  # whether some log weight is -inf
    bint plain  # whether every path is feasible: nothing is forbidden, and no set forces an entry to zero
    # Per transition, and per shared edge
    Floats weight  # exp(log w + beta_base(x') - offset(x,a)), at most 2^500
    Floats base  # the sum over free pairs of their weights, relative to exp(scale(x))
    # Per pair
    Floats offset
    int8_t *status
    int8_t *tight
    int8_t *able  # in the place of tight, which the certificate does not read: whether some row avoids forbidden entries
    # The watched pairs of alive states, in order, and numbers for each of them
    int32_t *watched
    Index num_watched
    int64_t *watched_ptr  # where the pairs of each part begin
    Floats log_mass  # -kappa
    Floats log_a  # the logarithms relative to the offset
    Floats log_b
    Floats mass_a
    Floats mass_b
    Floats cost  # in the place of mass: the cost of the entries that do not move, at beta_base; NaN if unknown
    int8_t *ready  # whether log_a and log_b are logarithms, or still a and b
    # Per state
    Floats beta
    Floats beta_base
    Floats growth  # exp(beta - beta_base)
    Floats shift  # beta - beta_base
    bint at_base  # whether that is zero
    Floats scale
    Floats top  # the scale of the flow out of x before it is normalised
    Floats log_total  # ln sum_a exp(-kappa(x,a)), relative to top + 500 ln 2
    Floats log_out
    Floats outflow
    Floats inflow
    Floats before  # beta at the start of a line search
    Floats defect  # ln outflow - ln inflow
    Floats step
    Floats product
    Floats pull  # the factor on the sum of all that comes to x'
    Floats push  # the factor on v(x) on its way there
    Floats pinned  # the part of the inflow that does not respond to beta
    Floats inverse  # in the place of before, which only a line search needs: 1/D of newton.py
    Floats log_in  # in the place of push, which only Newton's step needs
    Floats lift  # in the place of pinned: ln of rebuilt over dual mass
    Floats swept  # in the place of top, which Newton's step does not need: M^-1 v
    Floats open_  # in the place of product: the feasible states, as the certificate finds them
    Floats violation  # in the place of outflow: the violation of the rows of a state
    Floats apart  # in the place of step: sum q |ln q - log_q|
    int8_t *alive
    # Per layer, and per part
    Floats log_z
    int8_t *forbidden  # whether some entry of the part may be forbidden
    # Memory for some rows, for each part
    Floats scratch
    Index stride  # from one row of it to the next
    # Memory of the certificate for each part: some arrays as long as a run, and the sums over its rows
    Floats run
    Index run_stride
    Tally *tallies
    # And for each pair; all but the mass are in the place of arrays that the certificate no longer needs
    Floats bound
    Floats excess
    Floats doubt
    Floats dual
    Floats mass
    # Newton's step: the matrix, where layers are narrow, or the directions of GMRES in its place
    bint narrow
    Floats band
    Index band_width
    Floats basis
    Index directions
    Floats hessenberg
    Floats back  # backward probabilities, once masses are out of range; see far.py

cdef struct Part:
    # The layers of a thread, their states first .. end, the states into .. into_end that they lead to, and their place
    # among the watched pairs.
    Index number
    Index layer
    Index layer_end
    Index first
    Index end
    Index into
    Index into_end
    Index watched
    Index watched_end

cdef struct Row:
    # The projection of one row onto its set.
    bint settled
    bint tight
    bint ready  # whether a and b are logarithms
    double cost  # of the entries at a bound or at the centre; kappa = cost + mass_a ln a + mass_b ln b
    double a
    double b
    double mass_a
    double mass_b

cdef struct Split:
    # Sums over the entries of a row above and below the centre.
    double u_a
    double center_a
    double u_b
    double center_b

cdef struct Clip:
    # A row of a box: its multiplier, and sums over the free entries and over those at a bound.
    double s
    double free
    double clipped
    double count

cdef struct Tally:
    # What the certificate sums over one row.
    double total  # u
    double size  # u times the magnitude of its logarithm
    double cost  # q ln(p/u)
    double weight  # the magnitude of the cost
    double stray  # invalid entries
    double apart  # q |ln q - log_q|
    double tilted  # u e^t
    double tilted_size
    double linear
    double linear_size
    double distance

cdef struct Outcome:
    int status
    double value  # F; the dual bound is - value
    double gap
    double residual
    double defect
    Index iterations


cdef inline Index first_entry(const Structure *sk, Index x) noexcept nogil:
    # The first transition that leaves x, where the list of its edges' successors begins.
    return sk.transition_ptr[sk.pair_ptr[x]]


cdef inline Index first_edge(const Structure *sk, Index x, Index begin) noexcept nogil:
    # The edge of the first transition of a pair of x; its other transitions lie on the next edges.
    if sk.base_of[x] < 0:
        return sk.edge_ptr[x] + begin - first_entry(sk, x)
    return sk.edge_ptr[x]


cdef inline Part part_of(const Structure *sk, const Work *w, Index number) noexcept nogil:
    cdef Part part
    part.number = number
    part.layer = sk.part_ptr[number]
    part.layer_end = sk.part_ptr[number + 1]
    part.first = sk.layer_ptr[part.layer]
    part.end = sk.layer_ptr[part.layer_end]
    part.into = sk.layer_ptr[part.layer + 1]
    part.into_end = sk.layer_ptr[part.layer_end + 1]
    part.watched = w.watched_ptr[number]
    part.watched_end = w.watched_ptr[number + 1]
    return part


cdef inline Floats scratch_row(const Work *w, Index number, Index row) noexcept nogil:
    # One of the six rows of memory that a part has.
    return w.scratch + (6 * number + row) * w.stride


cdef inline Floats run_row(const Work *w, Index number, Index row) noexcept nogil:
    # One of the six arrays for a run that a part has.
    return w.run + (6 * number + row) * w.run_stride
