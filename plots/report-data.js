// SPDX-License-Identifier: MIT
// The report's data: tables from the CSV texts in the page's links, names of rows, and values for
// people. What a table says is only ever set as text. No drawing.
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
const columnOf = (table, name) => columnsOf(table).find((column) => column.name === name);

// The runs of the page: rows by table, each with the run that it is of; links to the tables.
function readRuns() {
    const seen = new Map(); // the same run may be given twice
    return Array.from(document.querySelectorAll("section.run"), (section, index) => {
        const {run: id} = section.dataset, n = (seen.get(id) ?? 0) + 1;
        seen.set(id, n);
        const run = {index, section, name: n > 1 ? `${id} (${n})` : id, shown: true, links: [],
            latency: [], memory: [], perplexity: [], env: [], ranking: [], changes: [], train: [], study: [], verdicts: [], scores: []};
        for (const link of section.querySelectorAll("a[data-table]")) {
            const table = link.dataset.table;
            const rows = objectsOf(link);
            run.links.push(link);
            if (table === "train")
                for (const row of rows)
                    row.file = link.textContent.replace(/(\.safetensors)?\.train\.csv$/, "");
            run[table] = run[table].concat(rows);
        }
        for (const row of [].concat(run.latency, run.memory, run.perplexity, run.train, run.scores))
            row.run = run;
        return run;
    });
}

// ---- what tells rows apart -------------------------------------------------------------------

const unique = (values) => Array.from(new Set(values));
const isOk = (row) => row.status === "ok";
const isNoisy = (row) => (row.status_detail ?? "").split(" ").includes("noisy");
const isTimed = (row) => isOk(row) && Number(row.median_ns) > 0;

function groupBy(rows, key) {
    const groups = new Map();
    for (const row of rows) {
        const id = key(row);
        if (!groups.has(id))
            groups.set(id, []);
        groups.get(id).push(row);
    }
    return groups;
}

const keyOf = (row, names) => JSON.stringify(names.map((name) => row[name]));
const varying = (rows, names) => names.filter((name) => rows.some((row) => row[name] !== rows[0][name]));
const namesOf = (table, roles) => columnsOf(table).filter((c) => roles.includes(c.role)).map((c) => c.name);
const SETTING = ["task", "size", "condition"];
const MODEL = ["memory", "model"];

const styles = objectsOf(document.getElementById("styles"));
const isReference = (name) => styles.some((s) => s.column === "backend" && s.name === name && s.reference === "1");

// Functions from a row to names, which say no more than what tells rows of its workload apart. What a variant, or a
// contender of a study, brings along, such as the size of its heads, is no setting: it tells its own rows apart.
function naming(table, rows) {
    const differing = (key, names) => new Map(Array.from(groupBy(rows, key), ([id, its]) => [id, varying(its, names)]));
    const ofWorkload = (row) => row.workload, ofVariant = (row) => keyOf(row, ["workload", "variant"]);
    const ofModel = (row) => keyOf(row, ["workload", "variant", "checkpoint"]);
    const all = namesOf(table, SETTING), own = all.filter((name) => columnOf(table, name).own === "1");
    const settings = differing(ofWorkload, all.filter((name) => !own.includes(name)));
    for (const [row, names] of Array.from(groupBy(rows, ofModel).values(), (its) => [its[0], varying(its, own)]))
        settings.set(ofWorkload(row), unique(settings.get(ofWorkload(row)).concat(names)));
    const choices = differing(ofVariant, namesOf(table, MODEL));
    const words = (row, names) => names.filter((name) => row[name] !== "").map((name) =>
        name === "mem_kind" || name === "checkpoint" ? row[name].split("/").pop() : `${humanName(name)}=${row[name]}`);
    return {
        setting: (row, but) => [row.workload].concat(words(row, settings.get(ofWorkload(row))
            .filter((name) => !but.includes(name)))).join(" "),
        model: (row) => [row.variant].concat(words(row, choices.get(ofVariant(row)))).join(" "),
    };
}

// Of each case, the row of its fastest backend, by the ranking where there is one; the reference only
// where nothing else ran.
function fastestOf(rows) {
    const names = columnsOf("latency").filter((c) => c.role !== "").map((c) => c.name).concat("variant", "seed");
    return Array.from(groupBy(rows, (row) => row.run.index + keyOf(row, names)).values(), (same) => {
        const others = same.filter((row) => !isReference(row.backend));
        const of = others.length ? others : same;
        return of.find(placed) ?? of.reduce((best, row) => Number(row.median_ns) < Number(best.median_ns) ? row : best);
    });
}

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

// Times with their interval: "177 ms [170 184]", in the unit of the time.
const TIME_UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];

function timeTexts(ns, low, high) {
    const [size, unit] = TIME_UNITS.find(([least]) => Number(Number(ns).toPrecision(3)) >= least) ?? [1, "ns"];
    const text = (x) => digits(Number((x / size).toPrecision(3)), "");
    return [text(ns) + " " + unit, !(low > 0 && high > 0) ? "" : `[${text(low)} ${text(high)}]`];
}

// The head of a column for people.
const HUMAN = {seq_tokens: "seq", mem_tokens: "mem", batch_size: "batch", gflop_per_s: "GFLOP/s",
    gbyte_per_s: "GB/s", tokens_per_s: "tokens/s", peak_flops_pct: "% of peak", peak_bw_pct: "% of bandwidth",
    samples_disturbed: "preempted", max_rel_err: "error", err_limit: "error limit", arena_peak_bytes: "memory",
    status_detail: "remarks", case_id: "case", impl: "implementation", gemm_from: "products by",
    rows_from: "rows by", isa_used: "instructions", ppl: "perplexity", bits_per_unit: "bits per unit",
    loss_nats: "training loss, nats", valid_nats: "validation loss, nats", repro: "repeat with"};
// Names of options stay as they are typed.
const humanName = (name) => HUMAN[name] ?? (/_(ns|bytes|pct)$/.test(name)
    ? name.replace(/_(ns|bytes|pct)$/, (unit) => unit === "_pct" ? ", %" : "").replaceAll("_", " ") : name);

const boxed = (table) => make("div", {class: "scroll", tabindex: "0"}, table);
const head = (names) => make("thead", {}, make("tr", {}, ...names));
