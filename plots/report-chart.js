// SPDX-License-Identifier: MIT
// Charts as SVG: panels of lines with intervals, a legend whose entries hide series, and a box that says
// what the point under the pointer is. Colours come from the style sheet, so that they follow the scheme
// and the paper. What is drawn, and of which rows, is others' business. Drawn here and not by a library:
// small ones (uPlot, Chart.js) paint on a canvas, which keeps its colours when the scheme changes, prints as
// pixels and has no intervals; and so the page needs nothing that must be installed.

const WIDE = 480, HIGH = 290, LEFT = 66, RIGHT = 12, TOP = 26, BOTTOM = 42;

function draw(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes))
        element.setAttribute(name, value);
    element.append(...children);
    return element;
}

// ---- axes ------------------------------------------------------------------------------------

// 1, 2 or 5 times a power of ten, about `count` of them.
function linearTicks(from, to, count) {
    const raw = (to - from) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find((k) => k * power >= raw) * power;
    const ticks = [];
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9 * step; i++)
        ticks.push(Number((i * step).toPrecision(12)));
    return ticks;
}

// Powers of ten, with 2 and 5 in between where they alone would be few.
function logTicks(from, to) {
    const ticks = [], least = Math.floor(Math.log10(from)), most = Math.ceil(Math.log10(to));
    const every = Math.max(1, Math.ceil((most - least) / 8));
    for (let d = least; d <= most; d += every)
        for (const k of to / from < 200 ? [1, 2, 5] : [1])
            ticks.push(Number((k * 10 ** d).toPrecision(12)));
    const inside = ticks.filter((x) => x >= from * 0.999 && x <= to * 1.001);
    return inside.length > 1 ? inside : linearTicks(from, to, 4).filter((x) => x > 0);
}

// A scale from values to pixels. On a logarithmic axis 0 stands below the least positive value, half as
// far as a factor of four.
function makeScale(values, log, from, to) {
    const known = values.filter((x) => Number.isFinite(x) && (!log || x >= 0));
    const positive = known.filter((x) => x > 0);
    const least = positive.length ? Math.min(...positive) : 1;
    const place = (x) => log ? (x > 0 ? Math.log(x) : Math.log(least / 2)) : x;
    let a = Math.min(...known.map(place)), b = Math.max(...known.map(place));
    if (!(b > a)) {
        a -= log ? 0.5 : Math.abs(a) * 0.1 || 1;
        b += log ? 0.5 : Math.abs(b) * 0.1 || 1;
    }
    const margin = (b - a) * 0.06;
    a = !log && a >= 0 && a - margin < 0 ? 0 : a - margin;
    b += margin;
    const at = (x) => from + (place(x) - a) / (b - a) * (to - from);
    at.ticks = log ? logTicks(Math.exp(a), Math.exp(b)) : linearTicks(a, b, 5);
    at.covers = (x) => Number.isFinite(x) && (!log || x >= 0);
    at.inside = (x) => Math.min(Math.max(at(x), Math.min(from, to)), Math.max(from, to));
    return at;
}

// Values of the data as ticks, if they are few.
function ticksOf(scale, values) {
    const own = unique(values.filter(scale.covers)).sort((a, b) => a - b);
    return own.length <= 8 ? own : scale.ticks;
}

// Without those whose labels would touch the ones before.
function apart(ticks, scale, room) {
    const kept = [];
    for (const tick of ticks)
        if (kept.length === 0 || Math.abs(scale(tick) - scale(kept[kept.length - 1])) >= room(tick))
            kept.push(tick);
    return kept;
}

// A label under a tick: in its middle, or up to the edge of the picture, which would cut it.
function inside(at, text) {
    const half = 4.5 * text.length;
    return at + half > WIDE ? {x: WIDE, "text-anchor": "end"} : {x: at, "text-anchor": "middle"};
}

function drawAxes(svg, spec, xScale, yScale, xs) {
    const {x, y} = spec;
    for (const tick of apart(yScale.ticks, yScale, () => 16)) {
        const at = yScale(tick);
        svg.append(draw("line", {class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: at, y2: at}),
            draw("text", {class: "tick", x: LEFT - 6, y: at + 4, "text-anchor": "end"}, y.format(tick)));
    }
    for (const tick of apart(ticksOf(xScale, xs), xScale, (t) => 9 * x.format(t).length + 8)) {
        const at = xScale(tick);
        svg.append(draw("line", {class: "grid", x1: at, x2: at, y1: TOP, y2: HIGH - BOTTOM}),
            draw("text", {class: "tick", y: HIGH - BOTTOM + 16, ...inside(at, x.format(tick))}, x.format(tick)));
    }
    svg.append(draw("path", {class: "axis", d: `M${LEFT} ${TOP}V${HIGH - BOTTOM}H${WIDE - RIGHT}`}),
        draw("text", {class: "label", x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 6, "text-anchor": "middle"}, x.label),
        draw("text", {class: "label", x: 4, y: 13}, y.label));
}

// ---- series ----------------------------------------------------------------------------------

// As in plots/style.gp: eight colours, nine markers, five dashes.
const COLOURS = 8, MARKS = 9, DASHES = ["", "8 4", "2 3", "9 3 2 3", "9 3 2 3 2 3"];
const SIZE = 4;
const SHAPES = ["M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z", "M-4 -4H4V4H-4Z", "M0 -5L5 4H-5Z", "M0 -5L5 0L0 5L-5 0Z",
    "M0 5L5 -4H-5Z"];

const colourClass = (style) => "c" + style % COLOURS;

function marker(style, x, y) {
    const k = style % MARKS;
    return draw("path", {class: k < SHAPES.length ? "mark" : "mark open", d: SHAPES[k % SHAPES.length],
        transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`});
}

function drawSeries(svg, series, xScale, yScale) {
    const group = draw("g", {class: "series " + colourClass(series.style), "data-series": series.name});
    const spots = series.points.map((p) => [xScale(p.x), yScale(p.y)]);
    group.append(draw("path", {class: "line", "stroke-dasharray": DASHES[(series.style + series.dash) % DASHES.length],
        d: spots.map(([x, y], i) => (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("")}));
    series.points.forEach((p, i) => {
        const [x, y] = spots[i];
        if (Number.isFinite(p.low) && Number.isFinite(p.high)) {
            const low = yScale.inside(p.low), high = yScale.inside(p.high);
            group.append(draw("path", {class: "whisker", d: `M${(x - 3).toFixed(1)} ${low.toFixed(1)}h6m-3 0V`
                + `${high.toFixed(1)}m-3 0h6`}));
        }
        group.append(marker(series.style, x, y));
    });
    svg.append(group);
    return spots;
}

// ---- the box at the pointer ------------------------------------------------------------------

const tip = make("div", {class: "tip", hidden: "", role: "status"});
let pinned = false;

function hideTip() {
    pinned = false;
    tip.hidden = true;
}

function showTip(children, left, top) {
    tip.replaceChildren(...children);
    tip.hidden = false;
    tip.classList.toggle("pinned", pinned);
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(8, Math.min(left + 14, room)) + window.scrollX + "px";
    tip.style.top = top + 14 + window.scrollY + "px";
}

// The nearest point within reach follows the pointer; a click keeps its box, so that its text can be
// copied, until the next click.
function follow(svg, spots, describe) {
    const REACH = 26;
    const ring = draw("circle", {class: "ring", r: SIZE + 4, visibility: "hidden"});
    const nearest = (event) => {
        const box = svg.getBoundingClientRect(), zoom = WIDE / box.width;
        const x = (event.clientX - box.left) * zoom, y = (event.clientY - box.top) * zoom;
        return spots.map((spot) => ({spot, far: Math.hypot(spot.x - x, spot.y - y)}))
            .filter(({far}) => far <= REACH).sort((a, b) => a.far - b.far)[0]?.spot;
    };
    const point = (event) => {
        const spot = nearest(event);
        ring.setAttribute("visibility", spot ? "visible" : "hidden");
        if (!spot)
            return hideTip();
        ring.setAttribute("cx", spot.x);
        ring.setAttribute("cy", spot.y);
        const box = svg.getBoundingClientRect(), zoom = box.width / WIDE;
        showTip(describe(spot), box.left + spot.x * zoom, box.top + spot.y * zoom);
    };
    svg.append(ring);
    svg.addEventListener("pointermove", (event) => pinned || point(event));
    svg.addEventListener("pointerleave", () => pinned || (hideTip(), ring.setAttribute("visibility", "hidden")));
    svg.addEventListener("click", (event) => {
        pinned = nearest(event) !== undefined;
        point(event);
        event.stopPropagation();
    });
}

document.addEventListener("click", (event) => tip.contains(event.target) || hideTip());
document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());

// ---- panels and legend -----------------------------------------------------------------------

// spec: {title, x, y: {label, log, format}, ys: values that the scale must hold, describe(point, series),
// series: [{name, style, dash, points: [{x, y, low, high, ...}]}]}
function drawPanel(spec) {
    const svg = draw("svg", {viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label":
        `${spec.title}: ${spec.y.label} against ${spec.x.label}`});
    const xs = spec.series.flatMap((s) => s.points.map((p) => p.x));
    const xScale = makeScale(xs, spec.x.log, LEFT, WIDE - RIGHT);
    const yScale = makeScale(spec.ys, spec.y.log, HIGH - BOTTOM, TOP);
    const spots = [];
    drawAxes(svg, spec, xScale, yScale, xs);
    for (const series of spec.series) {
        const points = series.points.filter((p) => xScale.covers(p.x) && yScale.covers(p.y));
        drawSeries(svg, {...series, points}, xScale, yScale)
            .forEach(([x, y], i) => spots.push({x, y, point: points[i], series}));
    }
    follow(svg, spots, (spot) => spec.describe(spot.point, spot.series));
    return make("figure", {class: "panel"}, make("figcaption", {}, spec.title), svg);
}

// A click hides or shows a series; a double click shows it alone, or all again.
function drawLegend(all, hidden, changed) {
    const button = (series) => make("button", {type: "button"},
        draw("svg", {viewBox: "0 0 34 12", class: colourClass(series.style), "aria-hidden": "true"},
            draw("path", {class: "line", d: "M0 6H34", "stroke-dasharray":
                DASHES[(series.style + series.dash) % DASHES.length]}), marker(series.style, 17, 6)),
        " " + series.name);
    const buttons = all.map(button);
    const show = () => buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(!hidden.has(all[i].name))));
    buttons.forEach((b, i) => {
        const {name} = all[i];
        b.addEventListener("click", () => {
            if (!hidden.delete(name))
                hidden.add(name);
            show();
            changed();
        });
        b.addEventListener("dblclick", () => {
            const others = all.filter((series) => series.name !== name);
            const alone = others.every((series) => hidden.has(series.name));
            hidden.delete(name);
            others.forEach((series) => alone ? hidden.delete(series.name) : hidden.add(series.name));
            show();
            changed();
        });
    });
    show();
    return make("div", {class: "legend", role: "group", "aria-label": "series"}, ...buttons);
}
