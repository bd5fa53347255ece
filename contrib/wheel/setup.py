# SPDX-License-Identifier: MIT
"""The wheel of benchattn: Python files and one library, which is $BENCHATTN or is built here by make and a C
compiler. scripts/wheel.sh lays out the folder that this file is in."""
import os
import platform
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

NAME = "libbenchattn.so.1"


def library():
    """The path of the library; without $BENCHATTN it is built of the sources beside this file, and nothing else."""
    given = os.environ.get("BENCHATTN")
    if given:
        return os.path.abspath(given)
    line = ["make", "library", "REQUIRED=", "INCDIRS=", "OPENBLAS_INC=", "MODE=release"]
    try:
        subprocess.run(line, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        sys.exit(f"the library cannot be built: {e}  -> install gcc and make, or a wheel of this platform")
    return os.path.join("build", "release", NAME)


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        to = os.path.join(self.build_lib, "benchattn", NAME)
        shutil.copyfile(library(), to)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", to], check=True)


class OfPlatform(bdist_wheel):
    """For every Python 3, and for the C libraries that have all symbols which the library asks for."""

    def get_tag(self):
        with open(os.path.join(self.bdist_dir, "benchattn", NAME), "rb") as f:
            asked = [(int(a), int(b)) for a, b in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", f.read())]
        kind = "manylinux_{}_{}".format(*max(asked)) if asked else "linux"
        return "py3", "none", f"{kind}_{platform.machine()}"


class WithLibrary(Distribution):
    def has_ext_modules(self):  # it goes where libraries go
        return True


with open("benchattn/__init__.py") as source:
    version = re.search(r'^__version__ = "(.*)"', source.read(), re.M).group(1)
setup(version=version, distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": OfPlatform})
