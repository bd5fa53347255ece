# SPDX-License-Identifier: MIT
import math
import statistics


def interval(ratios):
    """Of the median: the order statistics that hold it with at least 0.95, or the whole range."""
    x, n = sorted(ratios), len(ratios)
    rank = next((r for r in range(n // 2, -1, -1) if 1 - 2 * sum(math.comb(n, i) for i in range(r + 1)) / 2 ** n >= 0.95), 0)
    return f"{statistics.median(x):.3g} [{x[rank]:.3g} {x[n - 1 - rank]:.3g}]"
