// The panel with why, timeline and tree of a Workload, a city or an Instance.
import { age, badge, clock, el, since } from "./dom.js";

const panel = document.getElementById("panel");
const body = document.getElementById("panel-body");
const title = document.getElementById("panel-title");
const kind = document.getElementById("panel-kind");
const tabs = [...document.querySelectorAll("#panel-tabs [role=tab]")];
const STAGES = ["planned", "placed", "federated", "claimed", "scheduled", "applied", "delivered", "acted on", "released", "running", "reported", "shown"];
const OF_VERDICT = { ready: "ready", waiting: "waiting", deleting: "deleting", "not visible": "hidden", "not found": "hidden" };
let open = null;
let tab = "why";
let shown = "";
let opener = "";

export function openPanel(subject, from) {
  open = subject;
  opener = from;
  tab = "why";
  shown = "";
  kind.textContent = subject.instance ? "Instance" : subject.city ? `Workload in ${subject.city}` : "Workload";
  title.textContent = subject.instance || subject.workload;
  body.replaceChildren(el("p", { class: "quiet" }, "Reading …"));
  panel.hidden = false;
  document.body.classList.add("has-panel");
  title.focus();
  return refreshPanel();
}

export function closePanel() {
  panel.hidden = true;
  document.body.classList.remove("has-panel");
  open = null;
  document.querySelector(`[data-focus="${CSS.escape(opener)}"]`)?.focus();
}

export async function refreshPanel() {
  for (const one of tabs) {
    const isChosen = one.dataset.tab === tab;
    one.setAttribute("aria-selected", String(isChosen));
    one.tabIndex = isChosen ? 0 : -1;
    if (isChosen) body.setAttribute("aria-labelledby", one.id);
  }
  if (!open) return;
  const asked = address();
  let response;
  try { response = await fetch(asked); } catch { return; }  // the header tells that the server is away
  const text = await response.text();
  if (!open || asked !== address() || asked + text === shown) return;
  shown = asked + text;
  const top = body.scrollTop;
  body.replaceChildren(response.ok ? DRAW[tab](JSON.parse(text)) : el("p", { class: "quiet" }, text));
  body.scrollTop = top;
}

const address = () => `${tab}?${new URLSearchParams(open)}`;

function choose(name) {
  tab = name;
  body.scrollTop = 0;
  refreshPanel();
  document.getElementById(`tab-${name}`).focus();
}

tabs.forEach((one, place) => {
  one.addEventListener("click", () => choose(one.dataset.tab));
  one.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) choose(tabs[(place + step + tabs.length) % tabs.length].dataset.tab);
  });
});
document.getElementById("panel-close").addEventListener("click", closePanel);
addEventListener("keydown", (event) => { if (event.key === "Escape" && open) closePanel(); });

const DRAW = { why: drawWhy, timeline: drawTimeline, tree: drawTree };

function drawWhy(one) {
  return el("div", { class: "why" },
    el("p", { class: "headline" }, badge(OF_VERDICT[one.verdict] || "hidden", one.headline)),
    one.instance && drawInstance(one.instance),
    one.cities.map(drawCity),
    one.contradictions.length ? el("section", {}, el("h3", {}, "Contradictions"), el("ul", {}, one.contradictions.map((each) => el("li", {}, each.text)))) : null,
    el("p", { class: "command" }, el("span", {}, "The same in a terminal"), el("code", {}, one.command)));
}

function drawCity(city) {
  const state = OF_VERDICT[city.verdict] || "hidden";
  return el("section", { class: "city-why" },
    el("h3", {}, city.cityCode, " ", el("span", { class: "quiet" }, city.cell)),
    el("p", { class: "row" }, badge(state, city.verdict), el("span", { class: "number" }, `${city.instances.ready} of ${city.instances.total} Instances ready`)),
    track(city, state),
    city.stage ? [
      el("p", { class: "stage" }, `Stage ${city.stage} of 12: ${city.stageName}`, city.since ? [" · since ", clock(city.since), " (", since(city.since), ")"] : null),
      el("p", { class: "cause" }, city.text, city.reason ? el("code", {}, city.reason) : null),
      city.message && city.message !== city.text ? el("blockquote", {}, city.message) : null,
      city.details.map((each) => el("p", {}, each)),
      el("p", { class: "remedy" }, el("b", {}, city.turn || "Next"), " ", city.remediation),
      el("p", { class: "quiet" }, `Up to ${city.owner}`),
      city.evidence.length ? el("details", {}, el("summary", {}, "Seen"), el("ul", { class: "evidence" }, city.evidence.map((each) => el("li", {}, `${each.plane} ${each.kind} ${each.name} `, el("code", {}, `${each.field}=${each.value}`))))) : null,
    ] : null,
    city.notVisible.length ? el("p", { class: "quiet" }, `Not visible from here: ${city.notVisible.join("; ")}`) : null,
    city.notes.map((each) => el("p", { class: "quiet" }, `Note: ${each}`)));
}

function track(city, state) {
  const at = city.stage || 13;
  return el("ol", { class: "track", "aria-label": city.stage ? `Stands at stage ${city.stage} of 12` : "All 12 stages passed" },
    STAGES.map((name, place) => el("li", { class: place + 1 < at ? "passed" : place + 1 === at ? `here ${state}` : "ahead", title: `${place + 1} ${name}` })));
}

function drawInstance(one) {
  return el("section", {}, el("h3", {}, "Conditions ", el("span", { class: "quiet" }, `on ${one.plane}`)),
    one.gates.length ? el("p", {}, `Gates: ${one.gates.join(", ")}`) : null,
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["Type", "Status", "Reason", "Since"].map((each) => el("th", { scope: "col" }, each)))),
      el("tbody", {}, one.conditions.map((each) => [el("tr", {}, el("th", { scope: "row" }, each.type), el("td", {}, each.status), el("td", {}, each.reason), el("td", {}, since(each.since))),
        each.message && each.status !== "True" ? el("tr", { class: "message" }, el("td", { colspan: 4 }, each.message)) : null])))));
}

function drawTimeline(one) {
  const gap = (seconds) => seconds ? `+${age(new Date(0).toISOString(), seconds * 1000)}` : "";
  return el("div", { class: "timeline" },
    one.missing.map((each) => el("p", { class: "quiet" }, each)),
    one.moments.length ? el("ol", {}, one.moments.map((each) => el("li", { class: each.slowest ? "slowest" : null },
      el("time", { datetime: each.at }, clock(each.at)), el("span", { class: "gap" }, gap(each.delta), each.slowest ? " ◀ slowest" : ""),
      el("div", {}, el("b", {}, each.what), each.count > 1 ? ` × ${each.count}` : "", el("span", { class: "quiet" }, `${each.plane} · ${each.object.kind} ${each.object.name}${each.by ? ` · by ${each.by}` : ""}`))))) : el("p", { class: "quiet" }, "Nothing is recorded."));
}

function drawTree(one) {
  return one.root ? el("ul", { class: "tree" }, node(one.root)) : el("p", { class: "quiet" }, "No object can be seen.");
}

function node(one) {
  const state = one.status === "True" ? "ready" : one.status ? "waiting" : "empty";
  return el("li", {}, el("div", { class: "node" }, badge(state, one.status === "True" ? one.conditionType : one.reason || one.status || "–"),
    el("div", {}, el("b", {}, one.kind), " ", one.name, el("span", { class: "quiet" }, one.plane))),
  one.children.length ? el("ul", {}, one.children.map(node)) : null);
}
