// Elements made of text nodes only: no string from a plane is ever parsed as markup.

export function el(name, options = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") node.className = value;
    else if (key === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else node.setAttribute(key, value === true ? "" : value);
  }
  append(node, children);
  return node;
}

export function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  for (const child of children) node.append(child);
  return node;
}

// A shape per state: none is told by its colour alone.
const SHAPES = {
  ready: ["M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13Z", "M5 8.2 7.2 10.4 11.2 5.9"],
  waiting: ["M8 1 15.2 14H.8Z", "M8 6v3.4M8 11.6v.2"],
  unreachable: ["M1.8 1.8h12.4v12.4H1.8Z", "M5.2 5.2l5.6 5.6M10.8 5.2l-5.6 5.6"],
  deleting: ["M8 1.2 14.8 8 8 14.8 1.2 8Z", "M5.4 8h5.2"],
  hidden: ["M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13Z", "M6.2 6.3a1.9 1.9 0 1 1 2.6 1.8c-.6.3-.8.6-.8 1.2M8 11.4v.2"],
  empty: ["M8 3.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 1 1 0-9Z", ""],
};

export function shape(state) {
  const [outer, inner] = SHAPES[state] || SHAPES.hidden;
  return svg("svg", { viewBox: "0 0 16 16", class: `shape ${state}`, "aria-hidden": "true" },
    svg("path", { d: outer, class: "outer" }), svg("path", { d: inner, class: "inner" }));
}

export function badge(state, words) {
  return el("span", { class: `badge ${state}` }, shape(state), words);
}

// Keeps elements by key, so that focus, scroll and open parts survive a refresh.
export function keep(parent, items, keyOf, build) {
  const old = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const digest = JSON.stringify(item);
    let node = old.get(key);
    if (!node || node.dataset.digest !== digest) {
      const fresh = build(item, node);
      fresh.dataset.key = key;
      fresh.dataset.digest = digest;
      if (node && node !== fresh) {
        if (place === node) place = node.nextElementSibling;
        const focused = node.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
        node.replaceWith(fresh);
        if (focused) fresh.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
      }
      node = fresh;
    }
    old.delete(key);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  for (const node of old.values()) node.remove();
}

export function age(since, now) {
  let seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  const parts = [];
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const number = Math.floor(seconds / length);
    seconds -= number * length;
    if (number || (unit === "s" && !parts.length)) parts.push(`${number} ${unit}`);
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

export function clock(moment) {
  const text = new Date(moment).toISOString();
  const isToday = Math.abs(Date.now() - Date.parse(moment)) < 86400000;
  return isToday ? `${text.slice(11, 19)}Z` : `${text.slice(0, 10)} ${text.slice(11, 19)}Z`;
}

export function since(moment) {
  if (!moment) return "";
  return el("time", { class: "since", datetime: moment, title: moment, "data-since": moment },
    `${age(moment, Date.now())}`);
}
