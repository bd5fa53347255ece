// SPDX-License-Identifier: MIT
// What the report's page can do: sort and filter its tables, copy a command. It reads fine without.
"use strict";

function valueOf(row, column) {
    const cell = row.cells[column];
    if (cell.classList.contains("n"))
        return cell.dataset.v === "" ? NaN : Number(cell.dataset.v);
    return cell.textContent;
}

// Empty numbers stay last, whichever way.
function compare(a, b, down) {
    if (typeof a === "number") {
        if (Number.isNaN(a) || Number.isNaN(b))
            return Number.isNaN(a) - Number.isNaN(b);
        return down ? b - a : a - b;
    }
    return down ? b.localeCompare(a) : a.localeCompare(b);
}

function sortBy(table, column) {
    const head = table.tHead.rows[0].cells;
    const down = head[column].getAttribute("aria-sort") === "ascending";
    const rows = Array.from(table.tBodies[0].rows, (row) => [valueOf(row, column), row]);
    rows.sort((a, b) => compare(a[0], b[0], down));
    for (const cell of head)
        cell.removeAttribute("aria-sort");
    head[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...rows.map((pair) => pair[1]));
}

function filter(table, text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = table.tBodies[0].rows;
    let shown = 0;
    for (const row of rows) {
        const cells = Array.from(row.cells, (cell) => cell.textContent.toLowerCase()).join(" ");
        row.hidden = !words.every((word) => cells.includes(word));
        shown += !row.hidden;
    }
    document.querySelector('[data-count="' + table.id + '"]').textContent =
        words.length ? shown + " of " + rows.length + " rows" : rows.length + " rows";
}

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

for (const table of document.querySelectorAll("table.rows"))
    Array.from(table.tHead.rows[0].cells).forEach((cell, column) =>
        cell.firstElementChild.addEventListener("click", () => sortBy(table, column)));
for (const input of document.querySelectorAll("input[data-table]"))
    input.addEventListener("input", () => filter(document.getElementById(input.dataset.table), input.value));
document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (button)
        copy(button);
});
window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details"))
        part.open = true;
});
