# SPDX-License-Identifier: MIT
"""benchattn where other packages look for kernels. One file each; docs/pytorch.md shows them."""
