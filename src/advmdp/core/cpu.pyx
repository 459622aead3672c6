"""A check of what the processor supports, compiled to run on any processor."""

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    static int advmdp_runs_v3(void) {
        __builtin_cpu_init();
        /* A processor with these has the rest of x86-64-v3; not all compilers know that name. */
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi")
            && __builtin_cpu_supports("bmi2");
    }
    #else
    static int advmdp_runs_v3(void) { return 0; }
    #endif
    """
    bint advmdp_runs_v3()


def runs_v3():
    """Whether it runs code for x86-64-v3: AVX2, fused multiply-add, and bit manipulation."""
    return advmdp_runs_v3()
