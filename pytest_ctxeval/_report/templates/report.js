"use strict";
(() => {
  const { cases, contexts } = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 100;
  const BAD = new Set(["below bar", "unscored", "missing"]);
  const compared = cases.some((each) => each.change);
  const state = { key: "", down: false, page: 0, found: cases };

  const at = (id) => document.getElementById(id);
  const make = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const figure = (number) => (number === undefined ? "" : number.toFixed(2));
  const signed = (number) => (number === undefined ? "" : (number < 0 ? "\u2212" : "+") + Math.abs(number).toFixed(2));
  const count = (number) => number.toLocaleString("en");
  const metricOf = (each) => each.metric.replaceAll("_", " ");
  const statusOf = (each) =>
    each.change && !["same", each.status].includes(each.change) ? `${each.status}, ${each.change}` : each.status;
  const isBad = (each) => BAD.has(each.status) || each.change === "regressed";

  const columns = [
    { name: "Case", key: "case", of: (each) => each.qa_id },
    { name: "Session", key: "session", of: (each) => each.session_id },
    { name: "Metric", key: "metric", of: metricOf },
    { name: "Score", key: "score", of: (each) => each.score, show: figure },
    ...(compared ? [{ name: "Change", key: "change", of: (each) => each.difference, show: signed, blank: (each) => each.change === "same" }] : []),
    { name: "Status", key: "status", of: statusOf },
  ];

  cases.forEach((each, number) => {
    const texts = [each.qa_id, each.session_id, each.node_id, each.query, each.assistant, each.reason, each.unscored,
      each.ground_truth_assistant, ...(each.retrieval_context || [])];
    each.number = number;
    each.text = texts.filter(Boolean).join("\n").toLowerCase();
  });

  function order(one, other) {
    return typeof one === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
  }

  function sorted(found) {
    const column = columns.find((each) => each.key === state.key);
    if (!column) return [...found.filter(isBad), ...found.filter((each) => !isBad(each))];
    const keyed = found.map((each) => [column.of(each), each]);
    const [known, unknown] = [keyed.filter(([key]) => key !== undefined), keyed.filter(([key]) => key === undefined)];
    known.sort(([one, a], [other, b]) => (state.down ? -1 : 1) * order(one, other) || a.number - b.number);
    return [...known, ...unknown].map(([, each]) => each);
  }

  function choose() {
    const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const [session, metric, status] = ["session", "metric", "status"].map((id) => at(id).value);
    const found = cases.filter((each) =>
      (!session || each.session_id === session) &&
      (!metric || metricOf(each) === metric) &&
      (!status || [each.status, each.change, each.undecided && "undecided"].includes(status)) &&
      words.every((word) => each.text.includes(word)));
    state.found = sorted(found);
    state.page = 0;
    show();
  }

  function show() {
    const { found, page } = state;
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    const rows = found.slice(page * PAGE, (page + 1) * PAGE);
    at("cases").tBodies[0].replaceChildren(...rows.map(rowOf));
    const all = found.length < cases.length ? `, ${count(cases.length)} in all` : "";
    at("shown").textContent = found.length
      ? `${count(page * PAGE + 1)} to ${count(page * PAGE + rows.length)} of ${count(found.length)}${all}`
      : `No case is like that${all}.`;
    at("pages").hidden = pages === 1;
    at("page").textContent = `page ${page + 1} of ${pages}`;
    at("previous").disabled = page === 0;
    at("next").disabled = page === pages - 1;
  }

  function rowOf(each) {
    const row = make("tr", undefined, "case");
    for (const column of columns) {
      const cell = row.appendChild(make("td", undefined, `c-${column.key}`));
      const value = column.of(each);
      const shown = column.show ? column.show(value) : value || "";
      const text = column.blank && column.blank(each) ? "" : shown;
      if (column.key === "case") {
        const button = cell.appendChild(make("button", text || "(no id)"));
        button.type = "button";
        button.setAttribute("aria-expanded", "false");
      } else if (column.key === "status") {
        const [mark, kind] = isBad(each) ? ["\u2717 ", " bad"] : each.status === "passed" ? ["\u2713 ", " good"] : ["", ""];
        cell.append(make("span", mark + text, `status${kind}`));
      } else {
        cell.textContent = text;
      }
    }
    row.addEventListener("click", () => toggle(row, each));
    return row;
  }

  function toggle(row, each) {
    const button = row.querySelector("button");
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) {
      row.nextElementSibling.remove();
      return;
    }
    const detail = make("tr", undefined, "detail");
    const cell = detail.appendChild(make("td"));
    cell.colSpan = [...row.cells].filter((each) => each.offsetWidth).length;  // a narrow window hides some
    cell.append(factsOf(each));
    row.after(detail);
  }

  function factsOf(each) {
    const list = make("dl");
    const old = each.old || {};
    const add = (name, value) => {
      if (!value) return;
      const entry = value instanceof Node ? make("dd") : make("dd", value, value.length > 600 ? "long" : "");
      if (value instanceof Node) entry.append(value);
      list.append(make("dt", name), entry);
    };
    add("query", each.query);
    add("assistant", each.assistant);
    if (old.assistant !== each.assistant) add("assistant before", old.assistant);
    add("ground truth", each.ground_truth_assistant);
    add("context", contexts[each.context || 0]);
    if (each.score !== undefined) {
      const bar = each.min === undefined ? "" : `, bar ${figure(each.min)}`;
      add("score", figure(each.score) + bar + (each.undecided ? ", within the spread of the bar" : ""));
    }
    add("unscored", each.unscored);
    add("reason", each.statements ? "" : each.reason);
    if (each.old) {
      add("before", old.score === undefined ? `unscored: ${old.unscored || ""}` : `${figure(old.score)}: ${old.reason || ""}`);
    }
    if (each.statements) add("chunks", chunksOf(each));
    else add("retrieved", (each.retrieval_context || []).map((chunk, number) => `${number + 1}. ${chunk}`).join("\n"));
    if ((each.samples || []).length > 1) {
      add("samples", each.samples.map(([score, reason]) => `${figure(score)}  ${reason}`).join("\n"));
    }
    const judge = [each.judge, each.prompt_version && `prompt ${each.prompt_version}`,
      each.temperature !== undefined && `temperature ${each.temperature}`,
      each.tokens !== undefined && `${count(each.tokens)} tokens`, each.source, each.reruns && `${each.reruns} reruns`];
    if (each.judge) add("judge", judge.filter(Boolean).join(", "));
    add("cassette", each.cassette);
    add("test", each.node_id);
    return list;
  }

  function chunksOf(each) {
    const all = make("div");
    (each.retrieval_context || []).forEach((chunk, number) => {
      const part = all.appendChild(make("div", undefined, "chunk"));
      part.append(make("p", `${number + 1}. ${chunk}`));
      const list = part.appendChild(make("ul"));
      for (const [of, statement, relevant, reason] of each.statements) {
        if (of !== number + 1) continue;
        const told = `${relevant ? "\u2713 relevant" : "\u2717 not relevant"}: ${statement}${reason ? ` (${reason})` : ""}`;
        list.append(make("li", told, relevant ? "" : "no"));
      }
    });
    return all;
  }

  function fill(id, of) {
    const values = [...new Set(cases.flatMap(of))].filter(Boolean).sort();
    at(id).append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
    at(id).addEventListener("change", choose);
  }

  function addHead(column) {
    const head = at("cases").tHead.rows[0].appendChild(make("th", undefined, `c-${column.key}`));
    const button = head.appendChild(make("button", column.name));
    button.type = "button";
    head.scope = "col";
    button.addEventListener("click", () => {
      state.down = state.key === column.key && !state.down;
      state.key = column.key;
      for (const other of at("cases").tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      choose();
    });
  }

  columns.forEach(addHead);
  fill("session", (each) => each.session_id);
  fill("metric", metricOf);
  fill("status", (each) => [each.status, each.change, each.undecided ? "undecided" : ""]);
  let waiting = 0;
  at("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(choose, 120);
  });
  const turn = (by) => () => {
    state.page += by;
    show();
  };
  at("previous").addEventListener("click", turn(-1));
  at("next").addEventListener("click", turn(1));

  const root = document.documentElement;
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => {
    at("theme").textContent = isDark() ? "Light" : "Dark";
  };
  at("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  label();
  at("theme").hidden = false;
  at("controls").hidden = at("cases").hidden = cases.length === 0;
  choose();
})();
