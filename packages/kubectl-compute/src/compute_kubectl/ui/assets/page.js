// Polls the state, draws it, and keeps focus, scroll and the open panel over every refresh.
import { age, badge, clock, el, keep, shape, since } from "./dom.js";
import { drawMap, loadLand } from "./map.js";
import { openPanel, refreshPanel } from "./panel.js";

const EVERY = 2000;
const byId = (id) => document.getElementById(id);
let known = "";
let page = null;
let readAt = null;
let offset = 0;
let lost = null;
let said = new Map();

async function poll() {
  try {
    const response = await fetch(`state?known=${known}`);
    if (!response.ok) throw new Error(await response.text());
    const state = await response.json();
    lost = null;
    offset = Date.parse(state.now) - Date.now();
    readAt = state.readAt;
    if (state.page) {
      page = state.page;
      known = state.digest;
      draw();
      announce();
    }
    fail(state.failure ? ["The planes cannot be read", state.failure.since, state.failure.message] : null);
    await refreshPanel();
  } catch (error) {
    lost = lost || new Date().toISOString();
    fail(["The server of this page does not answer", lost, "start kubectl compute ui again"]);
  }
  tick();
  setTimeout(poll, document.hidden ? EVERY * 5 : EVERY);
}

function fail(what) {
  const node = byId("failure");
  const text = what ? `${what[0]} since ${clock(what[1])}: ${what[2]}. Shown is what was last read.` : "";
  if (node.textContent !== text) node.textContent = text;
  node.hidden = !what;
}

function tick() {
  const now = Date.now() + offset;
  byId("freshness").textContent = readAt ? `Read ${clock(readAt)}, ${age(readAt, now)} ago` : "Reading the planes …";
  for (const node of document.querySelectorAll("[data-since]")) {
    const text = age(node.dataset.since, now);
    if (node.textContent !== text) node.textContent = text;
  }
}

// One sentence per city whose state changed, for those that do not see the map.
function announce() {
  const changed = page.cities.filter((one) => said.size && said.get(one.code) !== one.words);
  if (changed.length) byId("announcer").textContent = changed.map((one) => `${one.name}: ${one.words}`).join(". ");
  said = new Map(page.cities.map((one) => [one.code, one.words]));
}

function draw() {
  byId("where").replaceChildren(el("b", {}, page.project), " / ", page.namespace);
  const ready = page.cities.filter((one) => one.state === "ready").length;
  const busy = page.cities.filter((one) => one.state !== "empty").length;
  byId("summary").textContent = busy ? `${ready} of ${busy} ready` : page.unread.length ? "no Workload is visible" : "no Workload runs";
  document.title = busy ? `${ready}/${busy} cities ready · ${page.project}` : "Compute Federation";
  drawMap(byId("map"), page.cities, chooseCity);
  const states = [...new Map(page.cities.map((one) => [one.state, one])).values()];
  keep(byId("legend"), states.map((one) => one.state), (one) => one, (one) => el("li", {}, shape(one), LEGEND[one]));
  const unmapped = page.cities.filter((one) => one.latitude === null);
  byId("unmapped").hidden = !unmapped.length;
  byId("unmapped").replaceChildren("Not on the map: ", ...unmapped.map((one) => el("button", { type: "button", class: "link", on: { click: () => chooseCity(one.code) } }, shape(one.state), `${one.code} ${one.words}`)));
  keep(byId("planes"), page.planes, (one) => one.name, planeItem);
  keep(byId("unread"), page.unread.map((text) => ({ text })), (one) => one.text, (one) => el("li", {}, one.text));
  byId("contradictions").hidden = !page.contradictions.length;
  keep(byId("contradiction-list"), page.contradictions, (one) => one.workload + one.text, contradictionItem);
  const lone = page.unplaced.length ? [{ code: "", name: "Without a city", state: "waiting", words: "Waiting", ready: 0, total: 0, cells: [], workloads: page.unplaced, since: null }] : [];
  keep(byId("cities"), [...page.cities, ...lone], (one) => one.code, cityCard);
  if (page.more) byId("summary").textContent += ` · ${page.more} Workloads are not shown`;
}

const LEGEND = { ready: "Ready", waiting: "Waiting", unreachable: "Unreachable", deleting: "Being deleted", hidden: "Not visible", empty: "No Workload" };

function planeItem(one) {
  const state = { read: "ready", "not asked": "empty" }[one.state] || "unreachable";
  return el("li", { title: one.detail }, shape(state), el("b", {}, one.name), el("span", { class: "quiet" }, `${one.role === one.name ? "" : `${one.role} · `}${one.state}`),
    one.since ? el("span", { class: "quiet" }, "for ", since(one.since)) : null);
}

function contradictionItem(one) {
  return el("li", {}, el("button", { type: "button", class: "link", "data-focus": `contradiction/${one.workload}`, on: { click: () => openPanel({ workload: one.workload }, `contradiction/${one.workload}`) } }, one.workload), " ", one.text);
}

function chooseCity(code) {
  const card = byId("cities").querySelector(`[data-key="${CSS.escape(code)}"]`);
  if (!card) return;
  card.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  card.querySelector("h3").focus({ preventScroll: true });
}

function cityCard(city, before) {
  const wasOpen = new Set([...(before?.querySelectorAll("details[open]") || [])].map((one) => one.dataset.part));
  return el("article", { class: `city ${city.state}`, "aria-label": city.name },
    el("header", {},
      el("h3", { tabindex: -1, "data-focus": `city/${city.code}` }, city.name, city.code && city.name !== city.code ? el("span", { class: "code" }, city.code) : null),
      badge(city.state, city.words), city.since ? el("span", { class: "quiet" }, "for ", since(city.since)) : null,
      el("span", { class: "number" }, `${city.ready}/${city.total} Instances`)),
    el("ul", { class: "cells", "aria-label": "Cells" }, city.cells.map((cell) => el("li", {}, shape(cell.state), el("b", {}, cell.name), el("span", { class: "quiet" }, cell.words, cell.since ? [", for ", since(cell.since)] : null)))),
    city.workloads.length ? table(city, wasOpen) : el("p", { class: "quiet nothing" }, "No Workload of this namespace runs here."));
}

function table(city, wasOpen) {
  return el("table", { class: "workloads" },
    el("caption", { class: "unseen" }, `Workloads in ${city.name}`),
    el("thead", {}, el("tr", {}, ["Workload", "State", "Ready", "What blocks it", "For"].map((one) => el("th", { scope: "col" }, one)))),
    el("tbody", {}, city.workloads.map((one) => [workloadRow(city, one), instancesRow(city, one, wasOpen)])));
}

function workloadRow(city, one) {
  const focus = `workload/${city.code}/${one.cell}/${one.placement}/${one.name}`;
  return el("tr", { class: "workload" },
    el("th", { scope: "row" }, el("button", { type: "button", class: "open", "data-focus": focus, "aria-haspopup": "dialog", on: { click: () => openPanel({ workload: one.name, placement: one.placement, city: city.code, cell: one.cell }, focus) } }, one.name), el("span", { class: "quiet" }, one.placement)),
    el("td", {}, badge(one.state, one.words)),
    el("td", { class: "number" }, `${one.ready}/${one.total}`),
    el("td", { class: "blocker" }, one.blocker ? [el("span", {}, one.blocker), el("span", { class: "quiet" }, [one.stage ? `stage ${one.stage} of 12` : "", one.turn].filter(Boolean).join(" · "))] : el("span", { class: "quiet" }, "nothing")),
    el("td", { class: "number" }, since(one.since)));
}

function instancesRow(city, one, wasOpen) {
  if (!one.instances.length) return null;
  const bad = one.instances.filter((each) => each.state !== "ready");
  const part = `${one.name}/${one.placement}/${one.cell}`;
  const details = el("details", { "data-part": part, open: bad.length > 0 || wasOpen.has(part) },
    el("summary", {}, `${one.instances.length + one.more} Instances${bad.length ? `, ${bad.length} not ready` : ""}`),
    el("ul", { class: "instances" }, one.instances.map((each) => instanceItem(city, one, each))),
    one.more ? el("p", { class: "quiet" }, `${one.more} more are not shown`) : null);
  return el("tr", { class: "instances-row" }, el("td", { colspan: 5 }, details));
}

function instanceItem(city, workload, one) {
  const focus = `instance/${city.code}/${workload.cell}/${one.name}`;
  return el("li", {},
    el("button", { type: "button", class: "open", "data-focus": focus, "aria-haspopup": "dialog", on: { click: () => openPanel({ workload: workload.name, placement: workload.placement, city: city.code, cell: workload.cell, instance: one.name }, focus) } }, one.name),
    badge(one.state, one.words), el("span", { class: "quiet for" }, since(one.since)),
    one.reason || one.message ? el("p", {}, one.reason ? el("code", {}, one.reason) : null, " ", one.message) : null);
}

setInterval(tick, 1000);
loadLand().catch(() => {}).finally(() => { if (page) drawMap(byId("map"), page.cities, chooseCity); });
poll();
