// SPDX-License-Identifier: MIT
// The report's figures: any result of a table against any of its sizes, with a panel for each setting and
// a line for each variant or backend. Here stands what can be drawn of which table; how, in the charts.

const PANELS_MAX = 24;

// The first are the ones to begin with; those without two values are not offered as x.
const SIZES = ["seq_tokens", "mem_tokens", "threads", "batch_size", "layers", "d_model", "heads"];
const FIGURES = [
    {table: "latency", title: "Time", x: SIZES, y: ["median_ns", "tokens_per_s", "gflop_per_s", "peak_flops_pct",
        "arena_peak_bytes"], lines: ["variants", "backends"], log: true},
    {table: "perplexity", title: "Perplexity", x: ["mem_tokens", "seq_tokens", "tokens_per_s", "train_step"],
        y: ["ppl", "bits_per_unit"], lines: ["variants"], log: false},
    {table: "train", title: "Training", x: ["step", "tokens"], y: ["loss_nats", "valid_nats", "bits_per_token",
        "grad_norm", "lr"], lines: ["runs"], log: false},
];

const number = (text) => text === "" || text === undefined ? NaN : Number(text);
const columnIn = (table, name) => columnOf(table, name) ?? columnOf("memory", name);

// A rate's interval follows from that of the time.
function intervalOf(row, name) {
    const [low, high] = [number(row.ci95_low_ns), number(row.ci95_high_ns)];
    if (name === "median_ns")
        return [low, high];
    if (name === "ppl")
        return [number(row.ppl_ci95_low), number(row.ppl_ci95_high)];
    const rate = ["tokens_per_s", "gflop_per_s", "peak_flops_pct"].includes(name);
    return rate ? [number(row[name]) * row.median_ns / high, number(row[name]) * row.median_ns / low] : [NaN, NaN];
}

// Rows of a table that can be drawn; of latencies with the bytes of the same case.
function rowsOf(table, runs) {
    // Of a study one row a contender, merged over its seeds.
    if (table === "perplexity")
        return runs.flatMap((run) => run.scores.length ? run.scores.map((row) => ({...row, contender: row.checkpoint}))
            : run.perplexity).filter(isOk);
    if (table !== "latency")
        return runs.flatMap((run) => run[table]).filter((row) => table === "train" || isOk(row));
    return runs.flatMap((run) => {
        const bytes = new Map(run.memory.map((row) => [row.case_id, row.arena_peak_bytes]));
        return run.latency.filter(isTimed).map((row) => ({...row, arena_peak_bytes: bytes.get(row.case_id) ?? ""}));
    });
}

// ---- what is chosen --------------------------------------------------------------------------

function choose(label, values, value, changed, texts = values) {
    const select = make("select", {name: label}, ...values.map((v, i) => make("option", {value: v}, texts[i])));
    select.value = value;
    select.addEventListener("change", () => changed(select.value));
    return make("label", {}, label + " ", select);
}

function tick(label, on, changed) {
    const box = make("input", {type: "checkbox", name: label});
    box.checked = on;
    box.addEventListener("change", () => changed(box.checked));
    return make("label", {}, box, " " + label);
}

// From 8 times the least on, values crowd at the end of a linear axis.
function isWide(values) {
    const positive = values.filter((x) => x > 0);
    return positive.length > 0 && Math.max(...positive) >= 8 * Math.min(...positive);
}

// ---- one figure ------------------------------------------------------------------------------

class Explorer {
    constructor(place, figure, rows, several) {
        const usable = (names, least) => names.filter((name) =>
            unique(rows.map((row) => row[name] ?? "").filter(Boolean)).length >= least);
        Object.assign(this, {place, figure, rows, several, hidden: new Set(), on: "fastest", together: true, words: ""});
        this.xs = usable(figure.x, 2);
        if (this.xs.length === 0)
            this.xs = usable(figure.x, 1).slice(0, 1);
        this.ys = usable(figure.y, 1);
        this.x = this.xs[0];
        this.y = this.ys[0];
        this.lines = figure.lines[0];
        this.setLogs();
    }

    isOneShape() {
        return unique(this.rows.map((row) => row[this.x])).length < 2;
    }

    setLogs() {
        this.logX = this.figure.log && isWide(this.rows.map((row) => number(row[this.x])));
        this.logY = this.figure.log && isWide(this.rows.map((row) => number(row[this.y])));
    }

    set(what) {
        Object.assign(this, what);
        if ("x" in what || "y" in what)
            this.setLogs();
        const control = document.activeElement.name;
        this.draw();
        if (control)
            this.place.querySelector(`[name="${CSS.escape(control)}"]`)?.focus();
    }

    controls() {
        const names = (list) => list.map((name) => humanName(name));
        const backends = unique(this.rows.map((row) => row.backend));
        const words = make("input", {type: "search", placeholder: "words, all must match", value: this.words});
        words.addEventListener("input", () => {
            this.words = words.value;
            this.drawPanels();
        });
        const parts = [choose("x", this.xs, this.x, (x) => this.set({x}), names(this.xs)),
            choose("y", this.ys, this.y, (y) => this.set({y}), names(this.ys)),
            tick("log x", this.logX, (logX) => this.set({logX})),
            tick("log y", this.logY, (logY) => this.set({logY})),
            tick("same y axis", this.together, (together) => this.set({together}))];
        if (this.figure.lines.length > 1 && backends.length > 1) {
            parts.splice(2, 0, choose("lines", this.figure.lines, this.lines,
                (lines) => this.set({lines, hidden: new Set()})));
            if (this.lines === "variants")
                parts.splice(3, 0, choose("backend", ["fastest", ...backends], this.on, (on) => this.set({on})));
        }
        return make("div", {class: "controls"}, ...parts, make("label", {}, "Filter ", words));
    }

    // Rows by panel and series.
    panels() {
        const train = this.figure.table === "train";
        const rows = this.lines !== "variants" || this.figure.table !== "latency" ? this.rows
            : this.on === "fastest" ? fastestOf(this.rows) : this.rows.filter((row) => row.backend === this.on);
        const names = train ? undefined : naming(this.figure.table, rows);
        const ofRun = (row) => this.several ? " \u00b7 " + row.run.name : "";
        const series = (row) => (train ? row.file : this.lines === "backends" ? row.backend : row.contender ?? names.model(row)) + ofRun(row);
        const panel = (row) => train ? "" : (this.lines === "backends" ? names.model(row) + " " : "")
            + names.setting(row, [this.x]);
        const style = (row) => this.lines === "backends" ? styleOf("backend", row.backend)
            : styleOf("variant", row.variant);
        const all = new Map();
        for (const row of rows)
            if (row[this.y] !== "" && !all.has(series(row)))
                all.set(series(row), {name: series(row), style: style(row), dash: row.run.index});
        // Up to eight variants or backends have colours of their own, in the program's order: as looks.c.
        const order = unique(Array.from(all.values(), (one) => one.style)).sort((a, b) => a - b);
        for (const one of order.length <= COLOURS ? all.values() : [])
            one.style = order.indexOf(one.style);
        const used = new Map(); // no two series look the same
        for (const one of all.values()) {
            const look = one.style + "/" + one.dash;
            one.dash += used.get(look) ?? 0;
            used.set(look, (used.get(look) ?? 0) + 1);
        }
        return {all: Array.from(all.values()), panels: Array.from(groupBy(rows, panel), ([title, its]) =>
            ({title, series: Array.from(groupBy(its, series), ([name, own]) => ({...all.get(name), rows: own}))}))};
    }

    point(row) {
        const [low, high] = intervalOf(row, this.y);
        return {x: number(row[this.x]), y: number(row[this.y]), low, high, row};
    }

    axis(name, log) {
        const column = columnIn(this.figure.table, name);
        return {label: humanName(name), log, format: (x) => shown(column, String(x)).replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "")};
    }

    describe(point, series) {
        const {row} = point, y = columnIn(this.figure.table, this.y), x = columnIn(this.figure.table, this.x);
        const text = (value) => shown(y, String(value));
        const [mid, interval] = y.unit === "ns" ? timeTexts(point.y, point.low, point.high)
            : [text(point.y), Number.isFinite(point.low) ? `[${text(point.low)} ${text(point.high)}]` : ""];
        const said = [make("b", {}, series.name), make("div", {}, `${humanName(this.x)} ${shown(x, row[this.x])}: `,
            make("b", {}, mid), " " + interval)];
        if (this.figure.table === "latency")
            said.push(make("div", {}, `${row.backend}, ${row.samples} samples, ${row.samples_disturbed || 0} preempted`
                + (row.status_detail ? "; " + row.status_detail : "")));
        if (row.repro)
            said.push(make("div", {class: "line-of-case"}, copyButton("./bench " + row.repro), " ",
                make("code", {}, "./bench " + row.repro)));
        return said;
    }

    drawPanels() {
        const {panels} = this.panels();
        const seen = panels.map((panel) => ({title: panel.title, series: panel.series
            .filter((s) => !this.hidden.has(s.name) && matches(panel.title + " " + s.name, this.words))
            .map((s) => ({...s, points: s.rows.map((row) => this.point(row)).sort((a, b) => a.x - b.x)
                .filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y))}))
            .filter((s) => s.points.length > 0)})).filter((panel) => panel.series.length > 0);
        const values = (panel) => panel.series.flatMap((s) => s.points.flatMap((p) => [p.y, p.low, p.high]));
        const common = seen.flatMap(values);
        const grid = make("div", {class: "panels"}, ...seen.slice(0, PANELS_MAX).map((panel) => drawPanel({...panel,
            x: this.axis(this.x, this.logX), y: this.axis(this.y, this.logY),
            ys: this.together ? common : values(panel), describe: (p, s) => this.describe(p, s)})));
        hideTip();
        this.body.replaceChildren(grid);
        if (seen.length === 0)
            grid.append("Nothing to draw of these.");
        if (seen.length > PANELS_MAX)
            this.body.append(make("p", {}, `${seen.length - PANELS_MAX} more panels are not drawn: filter, or choose other lines.`));
    }

    draw() {
        this.body = make("div", {});
        this.place.replaceChildren(this.controls(),
            drawLegend(this.panels().all, this.hidden, () => this.drawPanels()), this.body);
        this.drawPanels();
    }
}

function styleOf(column, name) {
    const known = styles.filter((s) => s.column === column);
    const own = known.find((s) => s.name === name);
    const code = Array.from(name).reduce((sum, c) => (31 * sum + c.codePointAt(0)) % 997, 7);
    return own ? Number(own.style) : known.length + code;
}

function drawFigures(place, runs) {
    for (const figure of FIGURES) {
        const rows = rowsOf(figure.table, runs);
        const body = make("div", {});
        const explorer = new Explorer(body, figure, rows, runs.length > 1);
        // One shape: the bars above say it.
        const said = figure.table === "latency" && runs.length === 1 && document.querySelector('figure[id$="-variants"]');
        if (!explorer.x || !explorer.y || (said && explorer.isOneShape()))
            continue;
        place.append(make("h2", {}, figure.title), body);
        explorer.draw();
    }
    if (place.childElementCount > 0)
        place.append(make("p", {class: "hint"}, "Bars at points are 95 % intervals. Point at a mark for its row, click to "
            + "keep it; click an entry of the legend to hide or show it."));
}
