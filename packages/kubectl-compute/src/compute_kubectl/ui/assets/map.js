// The cities on a world of dots; buttons above the drawing, so that keyboard and screen reader reach them.
import { el, keep, shape, svg } from "./dom.js";

const STEP = 2, TOP = 80, STRETCH = 1.22;
const FULL = { west: -172, east: 180, north: 76, south: -56 };
let land = null;
let last = null;

const yOf = (latitude) => (TOP - latitude) * STRETCH;

export async function loadLand() {
  land = (await (await fetch("land.txt")).text()).trim().split("\n");
}

// The part of the world with every city, not narrower than a continent.
function frameOf(cities, ratio) {
  if (!cities.length) return box(FULL, ratio);
  const east = cities.map((one) => one.longitude), north = cities.map((one) => one.latitude);
  const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2;
  const span = (values) => Math.max(...values) - Math.min(...values);
  const wide = Math.max(span(east) * 1.35 + 12, 76), high = Math.max(span(north) * 1.5 + 10, 30);
  const x = middle(east), y = middle(north);
  return box({ west: x - wide / 2, east: x + wide / 2, north: y + high / 2, south: y - high / 2 }, ratio);
}

function box(part, ratio) {
  let width = part.east - part.west, height = yOf(part.south) - yOf(part.north);
  let x = part.west, y = yOf(part.north);
  if (width / height < ratio) { x -= (height * ratio - width) / 2; width = height * ratio; }
  else { y -= (width / ratio - height) / 2; height = width / ratio; }
  if (width > 360) { const less = 360 / width; y += height * (1 - less) / 2; height *= less; width = 360; }
  x = Math.min(Math.max(x, -180), 180 - width);
  return { x, y, width, height };
}

function dots() {
  let path = "";
  land.forEach((row, line) => {
    for (let column = 0; column < row.length; column += 1) {
      if (row[column] === "#") path += `M${-180 + (column + 0.5) * STEP} ${(line + 0.5) * STEP * STRETCH}h0`;
    }
  });
  return svg("path", { d: path, class: "land" });
}

export function drawMap(root, cities, choose) {
  const placed = cities.filter((one) => one.latitude !== null);
  const width = root.clientWidth || 800;
  const height = root.clientHeight || 400;
  const frame = frameOf(placed, width / height);
  if (land) {
    let drawing = root.querySelector("svg.world");
    if (!drawing) {
      drawing = svg("svg", { class: "world", "aria-hidden": "true", preserveAspectRatio: "none" }, dots());
      root.append(drawing, el("div", { class: "markers" }));
    }
    drawing.setAttribute("viewBox", `${frame.x} ${frame.y} ${frame.width} ${frame.height}`);
  }
  const markers = root.querySelector(".markers");
  if (!markers) return;
  keep(markers, placed, (one) => one.code, (one) => marker(one, choose));
  arrange(markers, placed, frame, width, height);
  last = { root, cities, choose };
}

function marker(one, choose) {
  const words = `${one.name}, ${one.code}: ${one.words}, ${one.ready} of ${one.total} Instances ready`;
  return el("button", { type: "button", class: `marker ${one.state}`, "aria-label": words, "data-focus": "marker",
    on: { click: () => choose(one.code) } },
  shape(one.state),
  el("span", { class: "label" }, el("b", {}, one.name), el("span", {}, `${one.words} · ${one.ready}/${one.total}`)));
}

// Labels go where no other is: right, left, below, above; one without room shows on focus and hover.
function arrange(markers, cities, frame, width, height) {
  const taken = [];
  cities.forEach((one) => {
    const node = markers.querySelector(`[data-key="${CSS.escape(one.code)}"]`);
    const x = (one.longitude - frame.x) / frame.width * width;
    const y = (yOf(one.latitude) - frame.y) / frame.height * height;
    node.style.left = `${x}px`;
    node.style.top = `${y}px`;
    const label = node.querySelector(".label");
    const wide = label.offsetWidth, high = label.offsetHeight;
    const places = { right: [x + 16, y - high / 2], left: [x - 16 - wide, y - high / 2], below: [x - wide / 2, y + 16], above: [x - wide / 2, y - 16 - high] };
    taken.push([x - 11, y - 11, 22, 22]);
    const free = Object.keys(places).find((side) => {
      const [left, top] = places[side];
      const inside = left >= 2 && left + wide <= width - 2 && top >= 2 && top + high <= height - 2;
      return inside && !taken.some(([a, b, c, d]) => left < a + c && a < left + wide && top < b + d && b < top + high);
    });
    node.dataset.side = free || "hidden";
    if (free) taken.push([...places[free], wide, high]);
  });
}

addEventListener("resize", () => { if (last) drawMap(last.root, last.cities, last.choose); });
