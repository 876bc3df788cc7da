"use strict";
(() => {
  const { cases, contexts } = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 100;
  const RANK = ["regressed", "below bar", "unscored", "missing"];
  const KINDS = [...RANK, "undecided", "improved", "within noise", "new", "left out", "same", "passed", "expected to fail", "no bar"];
  const LOOK = "to look at";
  const compared = cases.some((each) => each.change);
  const state = { key: "", down: false, page: 0, found: cases };

  const at = (id) => document.getElementById(id);
  const make = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  // The digits of the terminal: Python rounds a tie to the even one, toFixed up. From 0 to 1 they differ at these two.
  const rounded = (number) => ([0.125, 0.625].includes(number) ? number - 1e-9 : number).toFixed(2);
  const figure = (number) => (number === undefined ? "" : rounded(number));
  const signed = (number) => (number === undefined ? "" : (number < 0 ? "\u2212" : "+") + rounded(Math.abs(number)));
  const count = (number) => number.toLocaleString("en");
  const metricOf = (each) => each.metric.replaceAll("_", " ");
  const kindsOf = (each) => new Set([each.status, each.change, each.undecided && "undecided"].filter(Boolean));
  const statusOf = (each) => [...kindsOf(each)].filter((kind) => kind !== "same").join(", ");
  const rankOf = (each) => {
    const rank = RANK.findIndex((kind) => each.change === kind || each.status === kind);
    return rank < 0 ? RANK.length : rank;
  };
  const isBad = (each) => rankOf(each) < RANK.length;

  const columns = [
    { name: "Case", key: "case", of: (each) => each.qa_id },
    { name: "Session", key: "session", of: (each) => each.session_id },
    { name: "Metric", key: "metric", of: metricOf },
    { name: "Score", key: "score", of: (each) => each.score, show: (each) => figure(each.score) },
    ...(compared ? [{ name: "Change", key: "change", of: (each) => each.difference,
      show: (each) => (each.change === "same" ? "" : signed(each.difference)) }] : []),
    { name: "Status", key: "status", of: statusOf },
  ];

  cases.forEach((each, number) => {
    const texts = [each.qa_id, each.session_id, each.node_id, each.query, each.assistant, each.reason, each.unscored,
      each.ground_truth_assistant, ...(each.retrieval_context || []), ...(each.statements || []).flat().filter((part) => part.length)];
    each.number = number;
    each.text = texts.filter(Boolean).join("\n").toLowerCase();
  });

  function order(one, other) {
    return typeof one === "number" ? one - other : one.localeCompare(other, "en", { numeric: true });
  }

  function worstFirst(one, other) {
    const [rank, than] = [rankOf(one), rankOf(other)];
    const lowest = rank === than && rank < RANK.length ? (one.score || 0) - (other.score || 0) : 0;
    return rank - than || lowest || one.number - other.number;
  }

  function sorted(found) {
    const column = columns.find((each) => each.key === state.key);
    if (!column) return [...found].sort(worstFirst);
    const known = found.filter((each) => column.of(each) !== undefined);
    const unknown = found.filter((each) => column.of(each) === undefined);
    known.sort((one, other) => (state.down ? -1 : 1) * order(column.of(one), column.of(other)) || one.number - other.number);
    return [...known, ...unknown];
  }

  function choose() {
    const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const [session, metric, status] = ["session", "metric", "status"].map((id) => at(id).value);
    const found = cases.filter((each) =>
      (!session || each.session_id === session) &&
      (!metric || metricOf(each) === metric) &&
      (!status || (status === LOOK ? isBad(each) : kindsOf(each).has(status))) &&
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
      const text = column.show ? column.show(each) : column.of(each) || "";
      if (column.key === "case") {
        const button = cell.appendChild(make("button", text || "(no id)"));
        button.type = "button";
        button.setAttribute("aria-expanded", "false");
        cell.append(make("small", `${each.session_id || ""} \u00b7 ${metricOf(each)}`), markOf(each, "small"));  // where it is narrow
      } else if (column.key === "status") {
        cell.append(markOf(each, "span"));
      } else {
        cell.textContent = text;
      }
    }
    row.addEventListener("click", (event) => {
      const isSelecting = !getSelection().isCollapsed && !event.target.closest("button");
      if (!isSelecting) toggle(row, each);
    });
    return row;
  }

  function markOf(each, tag) {
    const [mark, kind] = isBad(each) ? ["\u2717 ", " bad"] : each.status === "passed" ? ["\u2713 ", " good"] : ["", ""];
    return make(tag, mark + statusOf(each), `status${kind}`);
  }

  function toggle(row, each) {
    const isOpen = row.classList.toggle("open");
    row.querySelector("button").setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) {
      row.nextElementSibling.remove();
      return;
    }
    const cell = make("td", undefined, "detail");
    cell.append(factsOf(each));
    const detail = make("tr");
    detail.append(cell);
    row.after(detail);
    span(cell);
  }

  function span(cell) {  // a narrow window hides columns
    cell.colSpan = [...at("cases").tHead.rows[0].cells].filter((head) => head.offsetWidth).length;
  }

  function factsOf(each) {
    const list = make("dl");
    const add = (name, value, className) => {
      if (!value) return;
      const entry = make("dd", undefined, className || (value.length > 600 ? "long" : ""));
      entry.append(value);  // text becomes a text node
      list.append(make("dt", name), entry);
    };
    const old = each.old || {};
    add("query", each.query);
    add("assistant", each.assistant);
    add("assistant before", old.assistant);
    if (each.score !== undefined) {
      const bar = each.min === undefined ? "no bar" : `bar ${figure(each.min)}`;
      const spread = each.undecided ? ", within the spread of the bar" : "";
      add("score", (each.fault || `${figure(each.score)}, ${bar}`) + spread, each.fault ? "verdict bad" : "verdict");
    }
    add("unscored", each.unscored, "verdict bad");
    add("reason", each.statements ? "" : each.reason);
    if (each.old) add("before", beforeOf(old, each));
    add("ground truth", each.ground_truth_assistant);
    if (each.statements) add("chunks", chunksOf(each), "chunks");
    else add("retrieved", (each.retrieval_context || []).map((chunk, number) => `${number + 1}. ${chunk}`).join("\n"));
    if (each.samples) {
      const told = each.samples.map(([of, reason]) => `${figure(of)}  ${reason}`).join("\n");
      add("samples", `${each.samples.length}, from ${each.spread.map(figure).join(" to ")}\n${told}`);
    }
    add("context", contexts[each.context]);
    add("session", [each.session_id, metricOf(each), each.assistant_id, each.weight !== undefined && `weight ${each.weight}`]
      .filter(Boolean).join(", "), "fact");
    const judged = [each.prompt_version && `prompt ${each.prompt_version}`,
      each.temperature !== undefined && `temperature ${each.temperature}`,
      each.tokens !== undefined && `${count(each.tokens)} tokens`, each.source !== "none" && each.source];
    if (each.judge) add("judge", [each.judge, ...judged].filter(Boolean).join(", "), "fact");
    if (each.reruns) add("reruns", String(each.reruns), "fact");
    add("cassette", each.cassette, "fact");
    add("test", each.node_id, "fact");
    return list;
  }

  function beforeOf(old, each) {
    const score = old.score === undefined ? "unscored" : figure(old.score);
    const same = old.score === undefined || each.score === undefined ? "" : ", for the same reason";
    const why = old.unscored || old.reason;
    return score + (why ? `: ${why}` : same);
  }

  function chunksOf(each) {
    const all = make("div");
    const chunks = each.retrieval_context || [];
    const last = Math.max(chunks.length, ...each.statements.map(([of]) => of));
    for (let number = 1; number <= last; number += 1) {
      const part = all.appendChild(make("div", undefined, "chunk"));
      part.append(make("div", `${number}. ${chunks[number - 1] || ""}`));
      const list = part.appendChild(make("ul"));
      for (const [of, statement, relevant, reason] of each.statements) {
        if (of !== number) continue;
        const told = `${relevant ? "\u2713 relevant" : "\u2717 not relevant"}: ${statement || reason || ""}`;
        const why = statement && reason ? `\n${reason}` : "";
        list.append(make("li", told + why, relevant ? "" : "no"));
      }
    }
    return all;
  }

  function fill(id, of, values) {
    const counts = new Map();
    for (const each of cases) for (const kind of of(each)) counts.set(kind, (counts.get(kind) || 0) + 1);
    const named = (values || [...counts.keys()].sort(order)).filter((value) => value && counts.has(value));
    at(id).append(new Option("all", ""), ...named.map((value) => new Option(`${value} (${count(counts.get(value))})`, value)));
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
  fill("session", (each) => [each.session_id]);
  fill("metric", (each) => [metricOf(each)]);
  fill("status", (each) => [...kindsOf(each), isBad(each) ? LOOK : ""], [LOOK, ...KINDS]);
  let waiting = 0;
  at("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(choose, 120);
  });
  const turn = (by) => () => {
    state.page += by;
    show();
    at("shown").scrollIntoView();
  };
  at("previous").addEventListener("click", turn(-1));
  at("next").addEventListener("click", turn(1));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-session]");
    if (!link) return;
    at("search").value = at("status").value = "";
    at("session").value = link.dataset.session;
    at("metric").value = link.dataset.metric;
    choose();
  });
  matchMedia("(max-width: 720px)").addEventListener("change", () => document.querySelectorAll("td.detail").forEach(span));

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
