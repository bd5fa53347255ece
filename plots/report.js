// SPDX-License-Identifier: MIT
// The report's page: draws its tables from the CSV texts in its links, sorts and filters them, copies
// a command. What a table says is only ever set as text.
"use strict";

// ---- reading ---------------------------------------------------------------------------------

// RFC 4180; an array of arrays of texts.
function parseCsv(text) {
    const field = /(?:"([^"]*(?:""[^"]*)*)"|([^,\r\n]*))(,|\r?\n|$)/y;
    const rows = [];
    let row = [];
    while (field.lastIndex < text.length) {
        const found = field.exec(text);
        if (!found)
            break;
        row.push(found[1] === undefined ? found[2] : found[1].replaceAll('""', '"'));
        if (found[3] !== ",") {
            rows.push(row);
            row = [];
        }
    }
    return rows;
}

// The bytes of a data: address, as UTF-8.
function textOf(link) {
    const address = link.getAttribute("href");
    const bytes = address.slice(address.indexOf(",") + 1)
        .replace(/%(..)/g, (all, hex) => String.fromCharCode(parseInt(hex, 16)));
    return new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
}

// Rows as objects, by the names of the header.
function objectsOf(link) {
    const [head, ...rows] = parseCsv(textOf(link));
    return rows.filter((row) => row.length === head.length)
        .map((row) => Object.fromEntries(row.map((text, i) => [head[i], text])));
}

const allColumns = objectsOf(document.getElementById("columns"));
const columnsOf = (table) => allColumns.filter((column) => column.table === table);

// ---- writing ---------------------------------------------------------------------------------

function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
        element.setAttribute(name, value);
    element.append(...children);
    return element;
}

// Three digits, as the program prints them.
function digits(x, unit) {
    const size = Math.abs(x);
    if (size < 0.1)
        return Number(x.toPrecision(3)) + unit;
    return x.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3) + unit;
}

function scaled(x, units) {
    let value = Number(x.toPrecision(3)), u = 0;
    for (; u < units.length - 1 && Math.abs(value) >= 1000; u++)
        value /= 1000;
    return digits(value, units[u]);
}

function bytes(x) {
    const units = [" B", " KiB", " MiB", " GiB", " TiB", " PiB"];
    let u = 0;
    for (; u < units.length - 1 && Math.abs(x) >= (u ? 1023.95 : 1024); u++)
        x /= 1024;
    return x.toFixed(u > 0 ? 1 : 0) + units[u];
}

function rate(x) {
    const value = Number(x.toPrecision(3));
    return Math.abs(value) < 1000 ? digits(value, "")
        : value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, " ");
}

const ratio = (x) => digits(Number(x.toPrecision(3)), "x");

// A value for people, by its column's unit.
function shown(column, text) {
    const x = Number(text);
    if (column.type === "text" || text === "" || Number.isNaN(x))
        return text;
    switch (column.unit) {
    case "ns": return scaled(x, [" ns", " us", " ms", " s"]);
    case "bytes": return bytes(x);
    case "flop/s": return rate(x * 1e-9) + " GFLOP/s";
    case "bytes/s": return rate(x * 1e-9) + " GB/s";
    case "1/s": return rate(x);
    default: return column.type === "real" ? String(Number(x.toPrecision(4))) : text;
    }
}

function copyButton(text) {
    return make("button", {type: "button", class: "copy", "data-copy": text}, "copy");
}

const boxed = (table) => make("div", {class: "scroll", tabindex: "0"}, table);
const head = (names) => make("thead", {}, make("tr", {}, ...names));

// ---- verdict and machine ---------------------------------------------------------------------

const STATUSES = ["skipped", "failed", "wrong", "timeout", "interrupted"];
const isOk = (row) => row.status === "ok";
const sum = (rows, column) => rows.reduce((total, row) => total + Number(row[column] || 0), 0);

function drawVerdict(place, run) {
    const rows = run.latency;
    const unchecked = rows.filter((row) => isOk(row) && row.err_limit === "").length;
    const ok = rows.filter(isOk).length;
    const samples = sum(rows, "samples");
    const said = [];
    for (const status of STATUSES) {
        const n = rows.filter((row) => row.status === status).length;
        if (n > 0)
            said.push(` ${n} ${status}.`);
    }
    const good = !rows.some((row) => !isOk(row) && row.status !== "skipped");
    if (unchecked > 0)
        said.push(` ${unchecked} not checked against the reference.`);
    if (samples > 0)
        said.push(` ${sum(rows, "samples_disturbed")} of ${samples} samples were preempted by other processes.`);
    place.append(make("p", {class: "verdict " + (good ? "good" : "bad")},
        make("b", {}, `${ok} of ${rows.length} rows measured`
            + (ok > 0 && unchecked === 0 ? ", each checked against the reference before it was timed." : ".")),
        ...said));
}

// What the card says, and the column of env.csv that it comes from.
const FACTS = [
    ["CPU", "cpu_model"], ["instructions", "isa"], ["hypervisor", "hypervisor"], ["cores", "cores"],
    ["cores allowed", "allowed_cores"], ["CPUs", "cpus"], ["NUMA nodes", "numa_nodes"], ["L1d", "l1d_bytes"],
    ["L2", "l2_bytes"], ["L3", "l3_bytes"], ["memory", "memory_bytes"], ["system", "kernel"],
    ["governor", "governor"], ["boost", "boost"], ["load before", "load_1min"], ["steal, %", "steal_pct"],
    ["A/A noise, %", "aa_noise_pct"], ["peaks with threads", "peak_threads"],
    ["peak, baseline", "peak_flop_per_s_ref"], ["peak, AVX2", "peak_flop_per_s_avx2"],
    ["peak, AVX-512", "peak_flop_per_s_avx512"], ["read L1", "read_byte_per_s_l1"],
    ["read L2", "read_byte_per_s_l2"], ["read L3", "read_byte_per_s_l3"], ["read DRAM", "read_byte_per_s_dram"],
    ["compiler", "compiler"], ["commit", "git_commit"], ["work tree modified", "git_dirty"],
    ["OpenMP", "openmp"], ["OpenBLAS", "openblas_version"], ["OpenBLAS kernels", "openblas_core"],
    ["oneDNN", "onednn_version"], ["overrides", "env_overrides"], ["started", "started_at_utc"],
    ["finished", "finished_at_utc"], ["exit code", "exit_code"],
];

function drawMachine(place, run) {
    const machine = run.env[0];
    if (!machine) {
        place.append(make("p", {}, "env.csv has no row: the machine is not known."));
        return;
    }
    const card = make("dl", {class: "card"});
    for (const [label, name] of FACTS) {
        const column = columnsOf("env").find((c) => c.name === name);
        if (machine[name])
            card.append(make("div", {}, make("dt", {}, label), make("dd", {}, shown(column, machine[name]))));
    }
    place.append(card);
}

// ---- variants and backends -------------------------------------------------------------------

class Mean { // geometric
    logs = 0;
    n = 0;
    add(x) {
        this.logs += Math.log(x);
        this.n++;
    }
    get value() { return Math.exp(this.logs / this.n); }
}

const unique = (values) => Array.from(new Set(values));

// Times over the fastest backend's of the same case: by variant and backend, and by backend over the
// cases that every backend with a time has. Means of different cases would say nothing of each other.
function tally(timed, backends) {
    const key = columnsOf("latency").filter((c) => c.role !== "").map((c) => c.name).concat("variant", "seed");
    const cases = new Map();
    for (const row of timed) {
        const id = JSON.stringify(key.map((name) => row[name]));
        cases.set(id, (cases.get(id) ?? []).concat(row));
    }
    const of = new Map(), common = new Map();
    const add = (map, id, x) => map.set(id, map.get(id) ?? new Mean()).get(id).add(x);
    for (const rows of cases.values()) {
        const best = Math.min(...rows.map((row) => Number(row.median_ns)));
        const whole = unique(rows.map((row) => row.backend)).length === backends.length;
        for (const row of rows) {
            const slower = Number(row.median_ns) / best;
            add(of, JSON.stringify([row.variant, row.backend]), slower);
            if (whole)
                add(common, row.backend, slower);
        }
    }
    return {of, common};
}

function drawMatrix(place, run) {
    if (run.latency.length === 0) {
        place.append(make("p", {}, "latency.csv has no row."));
        return;
    }
    const timed = run.latency.filter((row) => isOk(row) && Number(row.median_ns) > 0);
    const compared = unique(timed.map((row) => row.backend));
    const backends = unique(run.latency.map((row) => row.backend));
    const {of, common} = tally(timed, compared);
    const [fastest, mean] = Array.from(common).sort((a, b) => a[1].value - b[1].value)[0] ?? [];
    if (mean && compared.length > 1)
        place.append(make("p", {class: "verdict good"},
            make("b", {}, "Fastest backend over all: " + fastest),
            `, ${ratio(mean.value)} of the best time of each case (geometric mean; ${mean.n} cases that all `
            + `${compared.length} backends have).`));
    place.append(make("p", {}, "Time over the time of the fastest backend of the same case, geometric mean; in "
        + "brackets how many cases. 1.00x is the fastest everywhere."));
    const body = make("tbody", {});
    for (const variant of unique(run.latency.map((row) => row.variant))) {
        const line = make("tr", {}, make("th", {scope: "row"}, variant));
        for (const backend of backends) {
            const cell = of.get(JSON.stringify([variant, backend]));
            line.append(cell ? make("td", {class: cell.value < 1.005 ? "n best" : "n"}, ratio(cell.value) + " ",
                make("small", {}, `(${cell.n})`)) : make("td", {class: "n"}, "-"));
        }
        body.append(line);
    }
    const names = backends.map((name) => make("th", {scope: "col", class: "n"}, name));
    place.append(boxed(make("table", {class: "matrix"},
        head([make("th", {scope: "col"}, "variant"), ...names]), body)));
}

// ---- rows ------------------------------------------------------------------------------------

// Empty numbers stay last, whichever way.
function compare(a, b, number, down) {
    if (!number)
        return down ? b.localeCompare(a) : a.localeCompare(b);
    if (a === "" || b === "")
        return (a === "") - (b === "");
    return down ? b - a : a - b;
}

function sortBy(table, at, column) {
    const heads = table.tHead.rows[0].cells;
    const down = heads[at].getAttribute("aria-sort") === "ascending";
    const value = (line) => line.cells[at].dataset.v ?? line.cells[at].textContent;
    const lines = Array.from(table.tBodies[0].rows, (line) => [value(line), line]);
    lines.sort((a, b) => compare(a[0], b[0], column.type !== "text", down));
    for (const cell of heads)
        cell.removeAttribute("aria-sort");
    heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...lines.map((pair) => pair[1]));
}

function filter(table, count, text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const lines = table.tBodies[0].rows;
    let visible = 0;
    for (const line of lines) {
        const texts = Array.from(line.cells, (cell) => cell.textContent.toLowerCase()).join(" ");
        line.hidden = !words.every((word) => texts.includes(word));
        visible += !line.hidden;
    }
    count.textContent = words.length ? `${visible} of ${lines.length} rows` : `${lines.length} rows`;
}

function cellOf(column, text) {
    if (column.name === "repro") {
        const line = "./bench " + text;
        return make("td", {class: "repro"}, copyButton(line), " ", make("code", {}, line));
    }
    if (column.type === "text")
        return make("td", {}, text);
    return make("td", {class: "n", "data-v": text}, shown(column, text));
}

// Columns to begin with, which are shown in any case; of latencies the results that are shown too.
const FIRST = {
    latency: ["variant", "backend", "median_ns"],
    memory: ["variant", "backend", "arena_peak_bytes"],
    perplexity: ["variant", "backend", "ppl"],
    train: ["variant", "step", "loss_nats"],
};
const LATENCY_RESULTS = ["ci95_low_ns", "ci95_high_ns", "tokens_per_s", "gflop_per_s", "peak_flops_pct",
    "peak_bw_pct", "bound", "samples", "samples_disturbed", "max_rel_err", "err_limit", "impl", "gemm_from",
    "rows_from", "isa_used", "status", "status_detail", "case_id", "repro"];

function columnsToShow(table) {
    const columns = columnsOf(table);
    const named = (names) => names.map((name) => columns.find((c) => c.name === name));
    const rest = table !== "latency" ? columns.filter((c) => c.name !== "schema")
        : columns.filter((c) => c.role !== "").concat(named(LATENCY_RESULTS));
    return [named(FIRST[table]), rest.filter((c) => !FIRST[table].includes(c.name))];
}

function drawTable(place, table, rows) {
    const [first, rest] = columnsToShow(table);
    const differs = (c) => rows.some((row) => row[c.name] !== rows[0][c.name]);
    const same = rest.filter((c) => !differs(c) && rows[0][c.name]);
    const columns = first.concat(rest.filter(differs));
    if (same.length > 0) {
        const said = make("p", {class: "same"}, "In all rows: ");
        same.forEach((c, i) =>
            said.append((i ? ", " : "") + c.name + " ", make("b", {}, shown(c, rows[0][c.name]))));
        place.append(said);
    }
    const heads = columns.map((c) => make("th",
        {scope: "col", title: c.meaning, class: c.type === "text" ? "" : "n"},
        make("button", {type: "button"}, c.name)));
    const body = make("tbody", {},
        ...rows.map((row) => make("tr", {}, ...columns.map((c) => cellOf(c, row[c.name])))));
    const drawn = make("table", {class: "rows"}, head(heads), body);
    const input = make("input", {type: "search", placeholder: "words, all must match"});
    const count = make("span", {class: "count"}, `${rows.length} rows`);
    heads.forEach((cell, at) => cell.firstChild.addEventListener("click", () => sortBy(drawn, at, columns[at])));
    input.addEventListener("input", () => filter(drawn, count, input.value));
    place.append(make("label", {class: "filter"}, "Filter ", input), count, boxed(drawn));
}

function drawRows(place, run) {
    const parts = [["Latency", "latency", run.latency], ["Memory", "memory", run.memory],
        ["Perplexity", "perplexity", run.perplexity],
        ...run.train.map(([name, rows]) => ["Training " + name, "train", rows])];
    for (const [title, table, rows] of parts) {
        if (rows.length === 0)
            continue;
        const part = make("details", {}, make("summary", {}, `${title}: ${rows.length} rows`));
        part.open = table === "latency";
        drawTable(part, table, rows);
        place.append(part);
    }
}

// ---- what was left out -----------------------------------------------------------------------

function reproLines(rows) {
    return rows.map((row) => make("code", {}, "./bench " + row.repro));
}

// Rows of one reason together.
function drawLeft(list, run) {
    for (const table of ["latency", "perplexity"]) {
        const reasons = new Map();
        for (const row of run[table]) {
            const why = row.status + (row.status_detail ? ", " + row.status_detail : "");
            if (why !== "ok")
                reasons.set(why, (reasons.get(why) ?? []).concat(row));
        }
        for (const [why, rows] of reasons)
            list.append(rows.length === 1
                ? make("li", {}, `${table}: ${why} `, ...reproLines(rows))
                : make("li", {}, `${table}: ${why}: ${rows.length} rows `, make("details", {},
                    make("summary", {}, "the lines that repeat them"),
                    make("ul", {}, ...reproLines(rows).map((line) => make("li", {}, line))))));
    }
    if (!list.firstElementChild)
        list.replaceWith(make("p", {}, "Nothing."));
}

// ---- copying ---------------------------------------------------------------------------------

// Without the clipboard of a secure page: a selection.
function copyBySelection(text) {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
}

async function copy(button) {
    let done = true;
    try {
        await navigator.clipboard.writeText(button.dataset.copy);
    } catch (refused) {
        done = copyBySelection(button.dataset.copy);
    }
    button.textContent = done ? "copied" : "select it";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
}

document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (button)
        copy(button);
});
window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details"))
        part.open = true;
});

// ---- the page --------------------------------------------------------------------------------

const DRAWN = {verdict: drawVerdict, machine: drawMachine, matrix: drawMatrix, rows: drawRows, left: drawLeft};

for (const section of document.querySelectorAll("section")) {
    const run = {latency: [], memory: [], perplexity: [], env: [], train: []};
    for (const link of section.querySelectorAll("a[data-table]"))
        if (link.dataset.table === "train")
            run.train.push([link.textContent.replace(/(\.safetensors)?\.train\.csv$/, ""), objectsOf(link)]);
        else
            run[link.dataset.table] = objectsOf(link);
    for (const place of section.querySelectorAll("[data-draw]"))
        DRAWN[place.dataset.draw](place, run);
}
