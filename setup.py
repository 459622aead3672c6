"""Build the extension modules: which there are, and with which flags each is compiled.

Every ``src/advmdp/**/kernels/X.py`` that has an ``X.pxd`` beside it is one, in Cython's pure Python mode.

From source the code is for the processor at hand. ``ADVMDP_MARCH=x86-64-v3`` makes it for another, ``ADVMDP_MARCH=``
for any of its kind.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import PlatformError

SOURCE = Path("src")
# Sums of these run in vector registers, in another order than they are written in. All others are strict IEEE.
REORDERED = (
    "advmdp.projection.kernels.abreast",
    "advmdp.projection.kernels.certificate_sums",
    "advmdp.projection.kernels.direct",
    "advmdp.projection.kernels.dual",
    "advmdp.projection.kernels.newton",
    "advmdp.projection.kernels.rows",
    "advmdp.projection.kernels.sums",
)
PROCESSOR = "advmdp.core.cpu"  # runs before anyone knows which processor this is
SHARED = "advmdp.core.shared"  # Cython's code for memory views, which else every module would have a copy of

COMMON = ("-O3", "-g0", "-fno-trapping-math", "-fno-math-errno", "-Wno-unused-function")
STRICT = ("-ffp-contract=off",)
ANY_ORDER = ("-fassociative-math", "-fno-signed-zeros")  # never -ffast-math: infinities and NaN keep their meaning
# Vector loops that start at an aligned address would add up in an order that depends on where an array lies.
UNALIGNED = "--param=vect-max-peeling-for-alignment=0"
OPENMP, THREADED = "-fopenmp", "#include <omp.h>\nint probe(void) { return omp_get_max_threads(); }\n"
MICROSOFT = ("/O2", "/fp:precise")
DIRECTIVES = {
    "language_level": 3, "infer_types": True, "cdivision": True, "boundscheck": False, "initializedcheck": False,
    "wraparound": False,
}  # fmt: skip

NO_COMPILER = """no C compiler works here ({command}), and from source advmdp's kernels have to be compiled.
  Debian, Ubuntu   apt install gcc python3-dev
  Fedora           dnf install gcc python3-devel
  macOS            xcode-select --install
  Windows          "Desktop development with C++" in Microsoft's Build Tools for Visual Studio
Or install a wheel of advmdp, which needs none: where there is a compiler, make dist builds one.
The compiler said: {said}"""


def extensions() -> list[Extension]:
    """All extension modules; what they are compiled with depends on the compiler, which is not known yet."""
    kernels = sorted(path for path in SOURCE.glob("advmdp/**/kernels/*.py") if path.with_suffix(".pxd").exists())
    made = [Extension(PROCESSOR, [str(SOURCE / "advmdp/core/cpu.pyx")])]
    made += [Extension(".".join(path.relative_to(SOURCE).with_suffix("").parts), [str(path)]) for path in kernels]
    made.append(Extension(SHARED, []))
    unknown = set(REORDERED) - {one.name for one in made}
    if unknown:
        raise SystemExit(f"REORDERED in setup.py names modules that there are not: {sorted(unknown)}")
    return made


class BuildKernels(build_ext):
    """From Cython to C to extension modules, on all cores, and again only what changed."""

    def finalize_options(self) -> None:
        super().finalize_options()
        available = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
        self.parallel = self.parallel or len(available(0))
        if self.editable_mode:  # else it would compile into a folder of its own what 'build_ext --inplace' has already
            tag = f"{self.plat_name}-{sys.implementation.cache_tag}"
            self.build_lib, self.build_temp = f"build/lib.{tag}", f"build/temp.{tag}"

    def build_extensions(self) -> None:
        microsoft = self.compiler.compiler_type == "msvc"
        if not microsoft:
            self._check_compiler()
        common = [*MICROSOFT] if microsoft else [*COMMON, *self._accepted(UNALIGNED)]
        march = [] if microsoft else self._accepted(*self._processor())
        openmp = ["/openmp"] if microsoft else self._accepted(OPENMP)
        threaded = {one.name for one in self.extensions if "prange" in self._text(one)}
        for one in self.extensions:
            order = () if microsoft else ANY_ORDER if one.name in REORDERED else STRICT
            threads = openmp if one.name in threaded else []
            own = [] if one.name in (PROCESSOR, SHARED) else march
            one.extra_compile_args[:0] = [*common, *order, *own, *threads]
            one.extra_link_args[:0] = [] if microsoft else threads
        note = Path(self.build_temp, "how.txt")
        flags = [f"{one.name} {one.extra_compile_args}" for one in self.extensions]
        how = "\n".join([Cython.__version__, str(DIRECTIVES), *flags])
        self.force = self.force or not note.exists() or note.read_text() != how  # made in another way than last time
        self._translate()
        super().build_extensions()
        note.write_text(how)

    def _translate(self) -> None:
        """To C, in ``build/c``; what takes the C compiler longest comes first, so that no core waits at the end."""
        found = cythonize(
            # Cython writes the source of the shared module, and takes the module's name from that of the file.
            [Extension(one.name, one.sources or [f"{one.name}.c"]) for one in self.extensions],
            build_dir="build/c",
            include_path=[str(SOURCE)],
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            nthreads=self.parallel,
            force=self.force,
            quiet=not self.distribution.verbose,  # setup.py --quiet; errors and warnings are shown all the same
        )
        for one, translated in zip(self.extensions, found, strict=True):
            one.sources = translated.sources
        self.extensions.sort(key=lambda one: -Path(one.sources[0]).stat().st_size)

    @staticmethod
    def _text(one: Extension) -> str:
        return Path(one.sources[0]).read_text() if one.name != SHARED else ""

    @staticmethod
    def _processor() -> tuple[str, ...]:
        """The flags to try, the first that the compiler accepts is taken: Apple's has no -march=native."""
        march = os.environ.get("ADVMDP_MARCH", "native")
        return (f"-march={march}", *(["-mcpu=native"] if march == "native" else [])) if march else ()

    def _accepted(self, *flags: str) -> list[str]:
        """The first of the flags with which a program compiles and links, without a warning."""
        for flag in flags:
            if self._compiles(THREADED if flag == OPENMP else "int probe;\n", flag, "-Werror") is None:
                return [flag]
            print(f"advmdp: the C compiler does not take {flag}")
        return []

    def _check_compiler(self) -> None:
        said = self._compiles("#include <Python.h>\n")
        if said is not None:
            raise PlatformError(NO_COMPILER.format(command=" ".join(self.compiler.compiler_so[:1]), said=said))

    def _compiles(self, text: str, *flags: str) -> str | None:
        """None if a shared library of that text can be made; else what the compiler said."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "probe.c")
            path.write_text(text)
            include = [f"-I{one}" for one in self.compiler.include_dirs]
            command = [*self.compiler.compiler_so, *include, *flags, "-shared", str(path), "-o", f"{folder}/probe.so"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as error:
                return str(error)
        return done.stderr if done.returncode else None


if __name__ == "__main__":  # the processes that translate import this file, unless they are forked
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
