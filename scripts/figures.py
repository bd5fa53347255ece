#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""figures.py [--bench FILE] [--list] [--into OTHER.svg] [FILE.svg...]: draw the figures that pages show again, from the
rows beside them.

Without names all of them; --list prints their names; --into writes the one elsewhere. The program draws what it has a figure for. The others are points
that are made here, drawn by a script of plots/ in the same look. A figure says which program measured its rows, and in its
description which version has drawn it; nothing else depends on when or where it is drawn."""
import argparse
import csv
import io
import os
import re
import shutil
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REFERENCE = os.path.join(HERE, "results", "reference")
POINT = ("row", "column", "panel", "index", "series", "colour", "marker", "dash", "kind", "x", "y", "low", "high", "z", "label")


def read(*path):
    with open(os.path.join(REFERENCE, *path), newline="") as f:
        return list(csv.DictReader(f))


def write(path, names, rows):
    """`names`: the columns, or a table of the same kind, whose columns and version it gets."""
    if isinstance(names, str):
        like = read(names)[0]
        names, rows = list(like), [dict(row, schema=like["schema"]) for row in rows]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, names, restval="", lineterminator="\n", extrasaction="ignore")
        w.writeheader()
        w.writerows(rows)


# ---- figures of the program ------------------------------------------------------------------

def plotted(o, out, folder, figure, *words):
    subprocess.run([o.bench, "plot", folder, "--figure", figure, "-o", o.tmp, "--force", "-q", *words], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.copyfile(os.path.join(o.tmp, figure + ".svg"), out)


def of_rows(folder, figure, *words):
    return lambda o, out: plotted(o, out, os.path.join(REFERENCE, folder), figure, *words)


def of_curves(text, size, unit):
    """Trainings whose rows are in curves.csv: as a study."""
    def draw(o, out):
        folder = os.path.join(o.tmp, text)
        jobs, study = {}, []
        for r in read("study", "curves.csv"):
            if r["checkpoint"].startswith(text + "/"):
                jobs.setdefault(os.path.basename(r["checkpoint"]), []).append(
                    {"step": r["step"], "tokens": r["tokens"], "loss_nats": r["train_nats"], "valid_nats": r["valid_nats"],
                     "valid_floor_nats": r["valid_floor_nats"]})
        for name, rows in jobs.items():
            contender, seed = re.fullmatch(r"(.+)\.seed(\d+)\.safetensors", name).groups()
            variant = contender.partition("-")[0]
            study.append({"case_id": name, "status": "ok", "role": "final", "size": size,
                          "contender": contender.partition("-")[2] or contender, "variant": variant, "corpus": text,
                          "seed": seed, "unit": unit, "test_nats": rows[-1]["valid_nats"], "checkpoint": "jobs/" + name})
            write(os.path.join(folder, "jobs", name + ".train.csv"), "recipes/xl-adamw-1.train.csv",
                  [dict(r, variant=variant) for r in rows])
        write(os.path.join(folder, "study.csv"), "leaderboard/study.csv", study)
        write(os.path.join(folder, "env.csv"), "leaderboard/env.csv",
              [{"bench_version": "0.1.0", "git_commit": "c8a4dc4"}])
        plotted(o, out, folder, "training")
    return draw


# ---- figures of points -----------------------------------------------------------------------

def measured(*env):
    """What the program says of a machine (harness/figure/caption.c), of all rows."""
    rows = read(*env)

    def said(text):
        return " and ".join(dict.fromkeys(text(r) for r in rows))
    return ", ".join((said(lambda r: r["cpu_model"]), said(lambda r: r["started_at_utc"][:10]),
                      said(lambda r: f"bench {r['bench_version']} {'after ' if r['git_dirty'] == '1' else ''}{r['git_commit'][:12]}")))


def pointed(o, out, script, rows, **settings):
    """A gnuplot script of plots/ over points; the description as harness/figure/draw.c."""
    version = subprocess.run([o.bench, "--version"], check=True, text=True, capture_output=True).stdout.split()[1]
    table, drawn = os.path.join(o.tmp, "points.csv"), os.path.join(o.tmp, "points.svg")
    write(table, POINT, rows)
    words = {"data": table, "out": drawn, "here": os.path.join(HERE, "plots/"), **settings}
    quoted = ";".join(k + "=" + ("'" + v.replace("'", "''") + "'" if isinstance(v, str) else str(v)) for k, v in words.items())
    subprocess.run(["gnuplot", "-d", "-e", quoted, os.path.join(HERE, "plots", script + ".gp")], check=True,
                   stderr=subprocess.DEVNULL)  # of panels without a scale of their own
    with open(drawn, encoding="utf-8") as f:
        svg = f.read()
    head = f"<title>{settings['title']}</title>\n<desc>drawn by bench {version}</desc>"
    with open(out, "w", encoding="utf-8") as f:
        f.write(re.sub(r"<title>.*?</title>\s*<desc>.*?</desc>", head, svg, count=1, flags=re.S))


def returns(o, out):
    """The curves of these trainings were not kept, the points of their figure were."""
    pointed(o, out, "returns", read("rl", "returns.csv"), title="Returns of tasks while they are learnt",
            where=measured("rl", "env.csv"))


def look(i, series):
    return {"index": i, "series": series, "colour": i, "marker": i, "dash": i}


def state(o, out):
    """How much of the way from blind to the floor of mqar, over the bytes of the state."""
    size = {r["contender"]: float(r["memory_state_bytes"]) / 1024 for r in read("abilities", "state", "memory.csv")}
    table = subprocess.run([o.bench, "study", os.path.join(REFERENCE, "abilities", "state"), "--format", "csv"], check=True,
                           text=True, capture_output=True).stdout
    rows, names = [], {}
    for r in csv.DictReader(io.StringIO(table)):
        series = re.sub(r"-?\d+$", "", r["contender"])
        rows.append({"row": 0, "column": 0, "kind": 0, "x": size[r["contender"]], "y": r["way"], "low": r["way_least"],
                     "high": r["way_most"], **look(names.setdefault(series, len(names)), series)})
    pointed(o, out, "points", sorted(rows, key=lambda r: (r["index"], r["x"])), log_x=1,
            title="Recall of eight pairs over the state of the model", x_title="state after 44 tokens (KiB)",
            y_title="way from blind (0) to the floor (1)", bar_name="least to most of five seeds",
            what="mqar, two layers of width 64, heads of several sizes", where=measured("abilities", "state", "env.csv"))


def attention(o, out):
    """Each head of each of three seeds, and their mean, layer by layer."""
    panels = {"keys90": "keys that hold 90 % of the probability of 64.5", "jsd_before_bits": "bits to the likest head of the layer before",
              "rank90": "rank of probabilities (90 % of energy of 128)", "values_rank90": "rank of values (90 % of energy of 64)"}
    heads, models, rows = read("claims", "attention.csv"), ("vanilla", "rope", "rope --ffn none"), []
    for p, (column, panel) in enumerate(panels.items()):
        for i, model in enumerate(models):
            at = {"row": p // 2, "column": p % 2, "panel": panel, **look(i, model)}
            layers = {}
            for r in heads:
                if r["model"] == model and r[column]:
                    layers.setdefault(int(r["layer"]), []).append(float(r[column]))
            for layer, values in sorted(layers.items()):
                x = layer + 0.12 * (i - 1)
                rows += [dict(at, kind=1, x=x, y=v) for v in values] + [dict(at, kind=0, x=x, y=statistics.fmean(values))]
    rows.sort(key=lambda r: (r["row"], r["column"], r["index"], r["kind"]))  # lines are of rows in turn
    pointed(o, out, "points", rows, title="What heads of trained models attend to", x_title="layer", x_step=1, y_title="",
            free_y=1, point_name="a head of a seed", what="six layers, 1.5 million bytes of novels, three seeds",
            where="AMD EPYC, 2026-11-28, bench 0.3.0 a924882")


def ranks(o, out, sizes, latency, bandwidth, most):
    """Of models of so many bytes, whose step takes so many seconds, of which a share hides sums: efficiency.py."""
    import efficiency
    link = argparse.Namespace(latency=latency, bandwidth=bandwidth)
    rows = []
    for i, (n, t, b) in enumerate(sizes):
        name = f"weights of {n / 2**20:.1f} MiB; {1e3 * t:.3g} ms a step"
        rows += [{"row": 0, "column": 0, "kind": 0, "x": r, "y": 100 * efficiency.efficiency(r, n, t, b, link), **look(i, name)}
                 for r in (2**k for k in range(most.bit_length()))]
    pointed(o, out, "points", rows, title="Efficiency of data-parallel training", x_title="ranks", y_title="efficiency (%)",
            log_x=1, what=f"weak scaling, a model: gradients added in a ring over links of {latency:g} us and {bandwidth:g} GB/s")


def modelled(o, out):
    """Of the sizes in the table of docs/cluster.md."""
    with open(os.path.join(HERE, "docs", "cluster.md"), encoding="utf-8") as f:
        table = re.findall(r"^\| \d+, \d+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", f.read(), re.M)
    ranks(o, out, [(float(n) * 2**20, float(t) / 1e3, float(b)) for n, t, b in table], 50, 1.25, 64)


# ---- all of them -----------------------------------------------------------------------------

MACHINE = "amd-epyc-2vcpu"
SMALL = "2 layers of width 64"
FIGURES = {
    "abilities/abilities.svg": of_rows("abilities", "abilities"),
    "abilities/state/state.svg": state,
    f"{MACHINE}/figures/backends.svg": of_rows(f"{MACHINE}/default", "backends"),
    f"{MACHINE}/figures/eval-speed.svg": of_rows(f"{MACHINE}/eval-speed", "eval-speed", "--filter", "!variant:shaw",
                                                 "--filter", "!variant:gtrxl"),
    f"{MACHINE}/figures/latency-seq.svg": of_rows(f"{MACHINE}/default", "latency-seq"),
    f"{MACHINE}/figures/memory-parts.svg": of_rows(f"{MACHINE}/default", "memory-parts"),
    f"{MACHINE}/figures/perplexity-time.svg": of_rows(f"{MACHINE}/default", "perplexity-time"),
    "claims/attention.svg": attention,
    "crossover/latency-mem.svg": of_rows("crossover", "latency-mem"),
    "dtypes/perplexity-time.svg": of_rows("dtypes/small", "perplexity-time"),
    "efficiency-ranks.svg": modelled,
    "hours/training.svg": of_rows("hours", "training"),
    "leaderboard/quality.svg": of_rows("leaderboard", "quality"),
    "recipes/study.svg": of_rows("recipes", "study"),
    "rl/returns.svg": returns,
    "study/books.svg": of_curves("books", "4 layers of width 128", "byte"),
    "study/copy128.svg": of_curves("copy128", SMALL, "symbol"),
    "study/copy32.svg": of_curves("copy32", SMALL, "symbol"),
    "study/copy512.svg": of_curves("copy512", SMALL, "symbol"),
    "study/gates.svg": of_curves("gates", SMALL, "byte"),
    "study/longer.svg": of_curves("longer", "4 layers of width 192", "byte"),
}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default=os.path.join(HERE, "bench"))
    p.add_argument("--list", action="store_true")
    p.add_argument("--into", metavar="OTHER.svg")
    p.add_argument("file", nargs="*")
    o = p.parse_args()
    names = {os.path.join("results", "reference", name): draw for name, draw in FIGURES.items()}
    wanted = [os.path.relpath(os.path.abspath(name), HERE) for name in o.file] or list(names)
    unknown = [name for name in wanted if name not in names]
    if o.into and len(wanted) != 1:
        p.error("--into is of one figure  -> name it")
    if unknown:
        p.error(f"no figure {unknown[0]}  -> see --list")
    if o.list:
        print("\n".join(names))
        return
    with tempfile.TemporaryDirectory() as o.tmp:
        for name in wanted:
            names[name](o, o.into or os.path.join(HERE, name))
            print(o.into or name, flush=True)


if __name__ == "__main__":
    main()
