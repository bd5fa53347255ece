// SPDX-License-Identifier: MIT
// The report's page: which runs are shown, what is drawn of them, copying, printing.

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
    hideTip();
    for (const part of document.querySelectorAll("details"))
        part.open = true;
});

// ---- the page --------------------------------------------------------------------------------

const runs = readRuns();
const SHARED = {answer: drawAnswer, figures: drawFigures, rows: drawRows};

function drawShared() {
    const chosen = runs.filter((run) => run.shown);
    for (const [name, drawIt] of Object.entries(SHARED)) {
        const place = document.getElementById(name);
        place.replaceChildren();
        drawIt(place, chosen);
    }
    for (const run of runs)
        run.section.hidden = !run.shown;
}

function drawPicker(place) {
    if (runs.length < 2)
        return;
    place.append(make("fieldset", {class: "picker"}, make("legend", {}, "Runs"), ...runs.map((run) =>
        tick(run.name, true, (shown) => {
            run.shown = shown;
            drawShared();
        }))));
}

document.body.append(tip);
drawPicker(document.getElementById("picker"));
drawShared();
for (const run of runs) {
    drawMachine(run.section.querySelector("[data-draw=machine]"), run);
    drawLeft(run.section.querySelector("[data-draw=left]"), run);
}
