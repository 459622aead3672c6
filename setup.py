"""Build the extension modules: which are compiled strictly, which may reorder sums, and for which processor.

From source the code is for the processor at hand. ``ADVMDP_MARCH=x86-64-v3 pip wheel .`` builds for others too.
"""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = "advmdp.projection.cython_kernels"
STRICT = ("exact", "log_rows", "weights", "answer", "far", "certificate", "solver", "memory")
SUMS = ("sums", "rows", "dual", "direct", "newton", "certificate_sums")
THREADED = ("weights", "answer", "certificate", "dual", "newton")

COMMON = [
    "-O3",
    f"-march={os.environ.get('ADVMDP_MARCH', 'native')}",
    # Vector loops that start at an aligned address would add up in an order that depends on where an array lies.
    "--param=vect-max-peeling-for-alignment=0",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-Wno-unused-function",
]
IEEE = ["-ffp-contract=off"]
REORDERED = ["-fassociative-math", "-fno-signed-zeros"]  # never -ffast-math: infinities and NaN keep their meaning


def extension(name: str) -> Extension:
    """The extension module of one kernel file, with the flags that it needs."""
    flags = [*COMMON, *(IEEE if name in STRICT else REORDERED)]
    threads = ["-fopenmp"] if name in THREADED else []
    path = f"src/{KERNELS.replace('.', '/')}/{name}.py"
    return Extension(f"{KERNELS}.{name}", [path], extra_compile_args=flags + threads, extra_link_args=threads)


setup(
    ext_modules=cythonize(
        [extension(name) for name in (*STRICT, *SUMS)],
        include_path=["src"],
        compiler_directives={
            "language_level": 3, "infer_types": True, "cdivision": True, "boundscheck": False,
            "initializedcheck": False,
        },
        nthreads=2,
    )
)  # fmt: skip
