// SPDX-License-Identifier: MIT
// The report's answer, above everything else: was it measured, which variant and backend is fastest by
// how much, and the time of each variant in each shape. Then the machine.

// ---- verdict ---------------------------------------------------------------------------------

const BAD = ["wrong", "failed", "timeout", "interrupted", "suspect"];
const sum = (rows, column) => rows.reduce((total, row) => total + Number(row[column] || 0), 0);

// Good: every row was measured, checked, and mostly undisturbed.
function drawVerdict(place, run, several) {
    const rows = run.latency.length > 0 ? run.latency : run.perplexity;
    const ok = rows.filter(isOk);
    const unchecked = run.latency.filter((row) => isOk(row) && row.err_limit === "").length;
    const samples = sum(run.latency, "samples"), preempted = sum(run.latency, "samples_disturbed");
    const code = run.env[0]?.exit_code ?? "";
    const count = (status) => rows.filter((row) => row.status === status).length;
    const line = make("p", {});
    if (several)
        line.append(run.name + ": ");
    line.append(make("b", {}, rows.length === 0
        ? (run.train.length + run.changes.length > 0 ? "No times here: curves and comparisons only."
            : "Nothing was measured.")
        : `${ok.length} of ${rows.length} rows ` + (run.latency.length === 0 ? "scored."
            : ok.length > 0 && unchecked === 0
                ? "measured, each checked against the reference before it was timed." : "measured.")));
    for (const status of BAD.filter(count))
        line.append(make("strong", {}, ` ${count(status)} ${status}.`));
    if (count("skipped") > 0)
        line.append(` ${count("skipped")} skipped.`);
    if (unchecked > 0)
        line.append(` ${unchecked} not checked against the reference.`);
    if (samples > 0)
        line.append(preempted === samples
            ? ` Every one of ${samples} samples was preempted by other processes: times are those of a busy machine.`
            : ` ${preempted} of ${samples} samples were preempted by other processes.`);
    if (code !== "" && code !== "0")
        line.append(` The run ended with exit code ${code}.`);
    const mood = BAD.some(count) ? "bad"
        : ok.length === 0 || unchecked > 0 || 2 * preempted > samples ? "doubtful" : "good";
    line.className = "verdict " + mood;
    const answer = run.section.dataset.answer === "" ? [] : [make("p", {class: "answer"}, run.section.dataset.answer)];
    place.append(...run.verdicts.length > 0 ? [...answer, line] : [line, ...answer]);
}

// ---- rankings --------------------------------------------------------------------------------

// As on the terminal: "1.24x [1.20 1.28]", or "1.24x (1.20 to 1.28)", the range of few samples.
function ratioText(row) {
    const number = (text) => ratio(Number(text)).slice(0, -1), low = number(row.low), high = number(row.high);
    return row.ratio === "" ? "-" : ratio(Number(row.ratio))
        + (row.low === "" ? "" : row.few === "1" ? ` (${low} to ${high})` : ` [${low} ${high}]`);
}

// Of the first: shown to be faster than each of the others, or not.
const LEADS = ["fastest", "first"];
const said = (row) => row.verdict + (row.remark ? ` (${row.remark})` : "");

function rankingTable(run, lines, places) {
    const variants = lines[0].subject === "variants", scored = lines.find((line) => line.bits !== "");
    const clock = lines[0].clock === "CPU" ? "CPU time" : "time";
    const heads = [variants ? "variant" : "backend", ...(variants ? ["backend"] : []), clock + " vs best",
        ...(scored ? [`bits per ${scored.unit}, less is better`] : []), ""];
    const body = make("tbody", {}, ...lines.map((line) => {
        const own = places.filter((row) => row.name === line.name), leads = LEADS.includes(line.verdict);
        const cells = [make("th", {scope: "row"}, line.name)];
        if (variants)
            cells.push(make("td", {}, unique(own.map((row) => row.backend)).join("/")));
        cells.push(make("td", {class: "n"}, !leads ? ratioText(line) : line.time_ns ? timeTexts(line.time_ns, "", "")[0] : "1"));
        if (scored)
            cells.push(make("td", {class: "n"}, line.bits === "" ? "-" : Number(line.bits).toFixed(3)));
        cells.push(make("td", {}, leads ? "" : said(line)));
        return make("tr", {class: leads ? "best" : ""}, ...cells);
    }));
    return boxed(make("table", {class: "ranking"}, head(heads.map((text) => make("th", {scope: "col"}, text))), body));
}

// Those of one setting and several runs next to each other.
function drawRankings(place, runs) {
    const rows = runs.flatMap((run) => run.ranking.map((row) => ({...row, run})));
    for (const its of groupBy(rows, (row) => keyOf(row, ["subject", "setting"])).values())
        for (const [run, own] of groupBy(its, (row) => row.run)) {
            const lines = own.filter((row) => row.mean !== ""), variants = lines[0].subject === "variants";
            place.append(make("div", {class: "ranked"},
                make("h3", {}, variants ? "Variants by time" : "Backends by time", " ", make("small", {}, `${lines[0].setting}, ${lines[0].mean}`),
                    ...(runs.length > 1 ? [make("small", {}, run.name)] : [])),
                rankingTable(run, lines, own.filter((row) => row.mean === ""))));
        }
}

// ---- studies and scores ----------------------------------------------------------------------

const bracket = (low, high) => low === "" || high === "" ? "" : ` [${low} ${high}]`;

// A table of texts, each column a head and its values: the first names its row. Columns without any
// value are left out, and a `condition` that all rows share is said in the heading.
function drawFacts(place, title, note, columns) {
    const shared = (c) => c.condition && c.values.length > 1 && unique(c.values).length === 1;
    const used = columns.filter((c) => c.values.some((text) => text !== ""));
    const kept = used.filter((c) => !shared(c)), said = used.filter(shared).map((c) => `${c.head} ${c.values[0]}`);
    const isNumber = (c) => c.values.every((text) => text === "" || /^[-+\d]/.test(text));
    const looks = (c) => ({class: isNumber(c) ? "n" : ""});
    place.append(make("h3", {}, title + " ", make("small", {}, [note, ...said].join("; "))),
        boxed(make("table", {class: "facts"},
            head(kept.map((c) => make("th", {scope: "col", ...looks(c)}, c.head))),
            make("tbody", {}, ...kept[0].values.map((name, row) => make("tr", {}, make("th", {scope: "row"}, name),
                ...kept.slice(1).map((c) => make("td", looks(c), c.values[row]))))))));
}

// What `bench study` prints: each contender against the baseline, or its own control.
function drawVerdicts(place, run) {
    if (run.verdicts.length === 0)
        return;
    const column = (name, text, condition) => ({head: name, values: run.verdicts.map(text), condition});
    const tasks = "return" in run.verdicts[0];
    const what = tasks ? "mean return of a task, more is better" : "nats on the test text, less is better";
    drawFacts(place, "Contenders against the baseline, or their controls",
        what + "; [95 % interval]; verdicts corrected for all comparisons", [
            column("contender", (row) => row.contender),
            column("control", (row) => row.control, true),
            column("skeleton", (row) => row.skeleton, true),
            column(tasks ? "task" : "corpus", (row) => row.corpus, true),
            column("size", (row) => row.size, true),
            column("tokens", (row) => row.budget_tokens, true),
            column("seeds", (row) => row.seeds, true),
            ...tasks ? [
                column("return", (row) => row.return + bracket(row.return_low, row.return_high)),
                column("seeds that solve it", (row) => row.solved)
            ] : [column("test nats", (row) => row.test_nats)],
            column("difference", (row) => (tasks ? row.gain : row.diff_nats) + bracket(row.ci95_low, row.ci95_high)),
            column("quality", (row) => row.verdict || row.note),
            column("time ratio", (row) => row.time_ratio + bracket(row.time_low, row.time_high)),
            column("time", (row) => row.time_verdict),
            column("note", (row) => row.verdict ? row.note : "")]);
}

// What `bench eval` prints.
function drawScores(place, run) {
    const rows = run.perplexity.filter(isOk);
    if (rows.length === 0 || run.latency.length > 0)
        return;
    const names = naming("perplexity", rows), three = (x) => x === "" ? "" : digits(Number(x), "");
    const column = (name, text, condition) => ({head: name, values: rows.map(text), condition});
    const file = (row) => row.checkpoint.split("/").pop();
    drawFacts(place, "Perplexity", "less is better; [95 % interval]", [
        column("model", names.model),
        column("checkpoint", (row) => names.model(row).endsWith(file(row)) ? "" : file(row), true),
        column("text", (row) => row.corpus.split("/").pop(), true),
        column("backend", (row) => row.backend, true),
        column("seq", (row) => row.seq_tokens, true),
        column("mem", memOf, true),
        column("bits", (row) => three(row.bits_per_unit)),
        column("per", (row) => row.unit, true),
        column("perplexity", (row) => three(row.ppl) + bracket(three(row.ppl_ci95_low), three(row.ppl_ci95_high))),
        column("floor", (row) => three(row.ppl_floor), true),
        column("scored", (row) => row.tokens_scored, true)]);
}

// ---- times -----------------------------------------------------------------------------------

// Rows of all of the past have no number of tokens, and come last.
const memOf = (row) => row.mem_tokens === "" ? "all" : row.mem_tokens;
const memOrder = (row) => row.mem_tokens === "" ? Number.MAX_VALUE : Number(row.mem_tokens);
const shapeOf = (row) => `seq ${row.seq_tokens} mem ${memOf(row)}`;

// The verdict of the ranking on a row, and its place; -1 where there was nothing to rank.
const placed = (row) => row.run.ranking.find((r) => r.subject === "variants" && r.case_id === row.case_id);
const rankOf = (row) => row.run.ranking.filter((r) => r.subject === "variants" && r.mean !== "")
    .findIndex((r) => r.name === placed(row)?.name);

function timeCell(row) {
    if (!row)
        return make("td", {class: "n"}, "-");
    const its = placed(row), leads = LEADS.includes(its?.verdict), cpu = its?.clock === "CPU";
    const best = Number(its?.time_ns) / Number(its?.ratio), end = (text) => text === "" ? "" : best * Number(text);
    const [time, interval] = !its?.time_ns || (leads && !cpu) ? timeTexts(row.median_ns, row.ci95_low_ns, row.ci95_high_ns)
        : timeTexts(its.time_ns, ...(leads ? ["", ""] : [end(its.low), end(its.high)]));
    return make("td", {class: leads ? "n best" : "n", title: row.backend}, (isNoisy(row) ? "~" : "") + time + (cpu ? " CPU " : " "),
        make("small", {}, interval));
}

function drawTimes(place, runs) {
    const rows = fastestOf(runs.flatMap((run) => run.latency).filter(isTimed));
    const names = naming("latency", rows);
    for (const [setting, its] of groupBy(rows, (row) => names.setting(row, ["seq_tokens", "mem_tokens"]))) {
        const shapes = Array.from(groupBy(its, shapeOf).values(), (same) => same[0]);
        shapes.sort((a, b) => a.seq_tokens - b.seq_tokens || memOrder(a) - memOrder(b));
        const heads = shapes.map((shape) => make("th", {scope: "col", class: "n"}, "seq " + shape.seq_tokens,
            make("br", {}), "mem " + memOf(shape)));
        const models = Array.from(groupBy(its, names.model));
        models.sort((a, b) => rankOf(a[1][0]) - rankOf(b[1][0]));
        const body = make("tbody", {}, ...models.flatMap(([model, ofModel]) =>
            Array.from(groupBy(ofModel, (row) => row.run), ([run, own]) => make("tr", {},
                make("th", {scope: "row"}, model, ...(runs.length > 1 ? [make("small", {}, run.name)] : [])),
                ...shapes.map((shape) => timeCell(own.find((row) => shapeOf(row) === shapeOf(shape))))))));
        place.append(make("h3", {}, "Median times ", make("small", {},
            `${setting}, on the fastest backend, [95 % interval]; bold: first of its column, the others: its median `
                + "times their ratios" + (its.some(isNoisy) ? "; ~: noisy" : ""))),
            boxed(make("table", {class: "times"}, head([make("th", {scope: "col"}, "variant"), ...heads]), body)));
    }
}

// On what, when, and how.
function drawOrigin(place, run) {
    const machine = run.env[0];
    if (!machine)
        return;
    const facts = [machine.cpu_model, machine.cpus && `${machine.cpus} CPUs`, machine.started_at_utc,
        machine.git_commit && `commit ${machine.git_commit}${machine.git_dirty === "1" ? ", modified" : ""}`];
    const line = make("p", {class: "origin"}, facts.filter(Boolean).join(", "));
    if (machine.argv)
        line.append(make("br", {}), make("code", {}, machine.argv));
    place.append(line);
}

function drawAnswer(place, runs) {
    const ranked = make("div", {class: "ranks"});
    for (const run of runs) {
        drawVerdict(place, run, runs.length > 1);
        drawOrigin(place, run);
        drawVerdicts(place, run);
        drawScores(place, run);
    }
    drawRankings(ranked, runs);
    place.append(ranked);
    drawTimes(place, runs);
}

// ---- machine ---------------------------------------------------------------------------------

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
        if (machine[name])
            card.append(make("div", {}, make("dt", {}, label), make("dd", {}, shown(columnOf("env", name), machine[name]))));
    }
    place.append(card);
}
