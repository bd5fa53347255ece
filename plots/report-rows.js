// SPDX-License-Identifier: MIT
// The report's tables of rows: heads for people, what is the same in all rows folded, sorted by a click
// on a head, filtered by words, saved as CSV; and what was left out.

const matches = (text, words) => words.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));

// ---- columns ---------------------------------------------------------------------------------

// What a table begins with; then the settings they differ in, results, and the choices of the models.
const FIRST = {
    latency: ["variant", "backend", "workload", "seq_tokens", "mem_tokens"],
    memory: ["variant", "backend", "workload", "seq_tokens", "mem_tokens", "arena_peak_bytes"],
    perplexity: ["variant", "backend", "workload", "seq_tokens", "mem_tokens"],
    train: ["file", "step", "loss_nats", "valid_nats"],
};
const RESULTS = {
    latency: ["status", "tokens_per_s", "gflop_per_s", "peak_flops_pct", "peak_bw_pct", "bound", "samples",
        "samples_disturbed", "max_rel_err", "err_limit", "impl", "gemm_from", "rows_from", "isa_used"],
    perplexity: ["status", "bits_per_unit", "tokens_scored", "tokens_per_s", "train_step"],
};
const LAST = ["status_detail", "case_id", "repro"];
const INTERVALS = {latency: ["median_ns", "ci95_low_ns", "ci95_high_ns"], perplexity: ["ppl", "ppl_ci95_low", "ppl_ci95_high"]};

function reproCell(text) {
    const line = "./bench " + text;
    return make("td", {class: "repro"}, copyButton(line), " ", make("code", {}, line));
}

// A column of the page: its head, and the value and the cell of a row.
function plainColumn(column) {
    const isText = column.type === "text";
    return {name: column.name, head: humanName(column.name), title: column.meaning, number: !isText,
        value: (row) => row[column.name],
        cell: (row) => column.name === "repro" ? reproCell(row.repro) : make("td", isText ? {} : {class: "n"},
            shown(column, row[column.name]))};
}

// The middle, and its 95 % interval right beside it, in the same unit.
function intervalColumns(table) {
    const [mid, low, high] = INTERVALS[table];
    const texts = (row) => table === "latency" ? timeTexts(row[mid], row[low], row[high])
        : [digits(Number(row[mid]), ""), row[low] === "" ? "" : `[${digits(Number(row[low]), "")} ${digits(Number(row[high]), "")}]`];
    const text = (row, i) => row[mid] === "" ? "" : texts(row)[i];
    return [{name: mid, head: humanName(mid), title: columnOf(table, mid).meaning, number: true, value: (row) => row[mid],
        cell: (row) => make("td", {class: "n"}, text(row, 0))},
    {name: low, head: "95 % interval", title: `${columnOf(table, low).meaning}, and the upper end`, number: true,
        value: (row) => row[low], cell: (row) => make("td", {class: "n interval"}, text(row, 1))}];
}

function columnsToShow(table, rows, several) {
    const known = (names) => names.map((name) => columnOf(table, name)).filter(Boolean);
    const isResult = (c) => c.role === "" && !FIRST[table].includes(c.name) && !LAST.includes(c.name);
    const results = RESULTS[table] ? known(RESULTS[table])
        : columnsOf(table).filter((c) => isResult(c) && !["schema", "run_id", "host_id", "started_at_utc"].includes(c.name));
    const rest = columnsOf(table).filter((c) => c.role !== "" && !FIRST[table].includes(c.name));
    const differs = (c) => rows.some((row) => row[c.name] !== rows[0][c.name]);
    const drawn = (columns) => columns.map(plainColumn);
    const by = (roles) => rest.filter((c) => roles.includes(c.role) && differs(c));
    const first = known(FIRST[table]).filter((c) => c.name !== "workload" || differs(c));
    const columns = [
        ...(several ? [{name: "run", head: "run", title: "", number: false, value: (row) => row.run.name,
            cell: (row) => make("td", {}, row.run.name)}] : []),
        ...(table === "train" ? [{name: "file", head: "file", title: "", number: false, value: (row) => row.file,
            cell: (row) => make("td", {}, row.file)}] : []),
        ...drawn(first), ...drawn(by(SETTING)), ...(INTERVALS[table] ? intervalColumns(table) : []),
        ...[...results, ...by(MODEL), ...known(LAST)].filter(differs).map((c) => ({...plainColumn(c),
            screenOnly: !["status", "repro"].includes(c.name)}))];
    const same = rest.concat(results, known(LAST), known(["workload"]))
        .filter((c) => rows[0][c.name] && !differs(c));
    return [columns, same];
}

// ---- sorting and filtering -------------------------------------------------------------------

// Empty numbers stay last, whichever way.
function compare(a, b, number, down) {
    if (!number)
        return down ? b.localeCompare(a) : a.localeCompare(b);
    if (a === "" || b === "")
        return (a === "") - (b === "");
    return down ? b - a : a - b;
}

function sortBy(table, lines, at, column) {
    const heads = table.tHead.rows[0].cells;
    const down = heads[at].getAttribute("aria-sort") === "ascending";
    lines.sort((a, b) => compare(column.value(a.row), column.value(b.row), column.number, down));
    for (const cell of heads)
        cell.removeAttribute("aria-sort");
    heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...lines.map((line) => line.element));
}

function filter(lines, count, words) {
    let visible = 0;
    for (const {element} of lines) {
        element.hidden = !matches(Array.from(element.cells, (cell) => cell.textContent).join(" "), words);
        visible += !element.hidden;
    }
    count.textContent = words.trim() ? `${visible} of ${lines.length} rows` : `${lines.length} rows`;
}

// ---- the tables ------------------------------------------------------------------------------

function drawTable(place, table, rows, runs) {
    const [columns, same] = columnsToShow(table, rows, runs.length > 1);
    const screenOnly = (column, cell) => {
        cell.classList.toggle("screen", column.screenOnly === true);
        return cell;
    };
    const heads = columns.map((c) => screenOnly(c, make("th", {scope: "col", title: c.title, "data-column": c.name,
        class: c.number ? "n" : ""}, make("button", {type: "button"}, c.head))));
    const lines = rows.map((row) => ({row, element: make("tr", {class: BAD.includes(row.status) ? "bad" : ""},
        ...columns.map((c) => screenOnly(c, c.cell(row))))}));
    const drawn = make("table", {class: "rows"}, head(heads), make("tbody", {}, ...lines.map((line) => line.element)));
    const input = make("input", {type: "search", placeholder: "words, all must match"});
    const count = make("span", {class: "count"}, `${rows.length} rows`);
    const links = runs.flatMap((run) => run.links.filter((link) => link.dataset.table === table)
        .map((link) => make("a", {class: "save", download: link.download, href: link.href},
            "download " + (runs.length > 1 || table === "train" ? link.download : "CSV"))));
    heads.forEach((cell, at) => cell.firstChild.addEventListener("click", () => sortBy(drawn, lines, at, columns[at])));
    input.addEventListener("input", () => filter(lines, count, input.value));
    place.append(make("label", {class: "filter"}, "Filter ", input), count, " ", ...links);
    if (same.length > 0)
        place.append(make("details", {class: "same"}, make("summary", {}, `The same in all rows: ${same.length} columns`),
            ...same.flatMap((c, i) => [i ? ", " : "", humanName(c.name) + " ", make("b", {}, shown(c, rows[0][c.name]))])));
    place.append(boxed(drawn));
}

function drawRows(place, runs) {
    const TITLES = {latency: "Times", memory: "Memory", perplexity: "Perplexity", train: "Training"};
    for (const [table, title] of Object.entries(TITLES)) {
        const rows = runs.flatMap((run) => run[table]);
        if (rows.length === 0)
            continue;
        const part = make("details", {}, make("summary", {}, `${title}: ${rows.length} rows`));
        drawTable(part, table, rows, runs);
        place.append(part);
    }
    if (place.childElementCount === 0)
        place.append(make("p", {}, "No table has a row."));
}

// ---- what was left out -----------------------------------------------------------------------

const reproLines = (rows) => rows.map((row) => make("code", {}, "./bench " + row.repro));

// Rows that are not ok, those of one reason together.
function drawLeft(list, run) {
    for (const table of ["latency", "perplexity"]) {
        const left = run[table].filter((row) => !isOk(row));
        const why = (row) => row.status + (row.status_detail ? ", " + row.status_detail : "");
        for (const [reason, rows] of groupBy(left, why))
            list.append(rows.length === 1
                ? make("li", {}, `${table}: ${reason} `, ...reproLines(rows))
                : make("li", {}, `${table}: ${reason}: ${rows.length} rows `, make("details", {},
                    make("summary", {}, "the lines that repeat them"),
                    make("ul", {}, ...reproLines(rows).map((line) => make("li", {}, line))))));
    }
    if (!list.firstElementChild)
        list.replaceWith(make("p", {}, "Nothing."));
}
