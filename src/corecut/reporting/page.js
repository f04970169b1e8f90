"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const clusters = data.clusters;
  const count = clusters.name.length;
  const shapes = ["circle", "square", "triangle"];
  const rowOf = new Map(clusters.number.map((number, row) => [number, row]));
  const byId = (id) => document.getElementById(id);
  const plain = new Intl.NumberFormat("en-US");
  let selected = -1;
  let shownRows = 100;
  let rows = [];
  const sorting = { key: "size", down: true };

  // Everything from data becomes text, never markup.
  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const name = (text) => make("bdi", text);
  const listed = (cell, names) => names.forEach((text, i) => { if (i) cell.append(", "); cell.append(name(text)); });
  const colour = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  // Ties among thousands of clusters are small: one digit that says something, and no power of ten.
  const shortly = (value) => (value >= 0.1 || value <= 0 ? value.toFixed(2) : String(Number(value.toPrecision(1))));
  const nearest = (row) => (clusters.nearest[row] < 0 ? "" : clusters.name[clusters.nearest[row]]);

  // --- the table -----------------------------------------------------------------------------------------------------------

  const natural = new Intl.Collator("en", { numeric: true });
  const columns = [
    { key: "name", title: "Cluster", order: (a, b) => natural.compare(clusters.name[a], clusters.name[b]), cell: (cell, row) => {
      const button = make("button", null, { type: "button" });
      const swatch = make("span", null, { class: "swatch " + shapes[clusters.shape[row]], "aria-hidden": "true" });
      swatch.style.background = data.colours[clusters.colour[row]];
      button.append(swatch, name(clusters.name[row]));
      cell.append(button);
    } },
    { key: "size", title: "Nodes", number: (row) => plain.format(clusters.size[row]) },
    { key: "volume", title: "Volume", number: (row) => (100 * clusters.volume[row]).toFixed(2) + " %" },
    { key: "conductance", title: "Conductance", number: (row) => clusters.conductance[row].toFixed(3) },
    { key: "confidence", title: "Confidence", number: (row) => clusters.confidence[row].toFixed(2) },
    { key: "nearest", title: "Nearest cluster", order: (a, b) => natural.compare(nearest(a), nearest(b)), cell: (cell, row) => {
      if (clusters.nearest[row] >= 0) cell.append(name(nearest(row)), ` (tie ${shortly(clusters.tie[row])})`);
    } },
    { key: "status", title: "Verdict", words: true, cell: (cell, row) => cell.append(data.statuses[clusters.status[row]]) },
    { key: "central", title: "Most central nodes", names: true, cell: (cell, row) => listed(cell, clusters.central[row]),
      order: (a, b) => natural.compare(clusters.central[a][0], clusters.central[b][0]) },
    { key: "doubtful", title: "Most doubtful nodes", names: true, cell: (cell, row) => listed(cell, clusters.doubtful[row]),
      order: (a, b) => natural.compare(clusters.doubtful[a][0], clusters.doubtful[b][0]) },
  ];
  const headings = columns.map((column) => {
    const heading = make("th", null, { scope: "col" });
    const button = make("button", column.title, { type: "button" });
    button.addEventListener("click", () => {
      sorting.down = sorting.key === column.key ? !sorting.down : Boolean(column.number);
      sorting.key = column.key;
      refresh();
    });
    heading.append(button);
    return heading;
  });
  document.querySelector("#clusters thead tr").append(...headings);
  data.statuses.forEach((text, value) => {
    const many = clusters.status.filter((status) => status === value).length;
    if (many) byId("status").append(make("option", `${text} (${plain.format(many)})`, { value }));
  });

  const texts = clusters.name.map((text, row) =>
    [text, ...clusters.central[row], ...clusters.doubtful[row]].join("\n").toLowerCase());
  const refresh = () => {
    const wanted = byId("search").value.trim().toLowerCase();
    const status = byId("status").value;
    const least = Number(byId("least").value) || 0;
    rows = [];
    for (let row = 0; row < count; row++) {
      const fits = clusters.size[row] >= least && (status === "" || clusters.status[row] === Number(status));
      if (fits && (!wanted || texts[row].includes(wanted))) rows.push(row);
    }
    const column = columns.find((one) => one.key === sorting.key);
    const order = column.order || ((a, b) => clusters[column.key][a] - clusters[column.key][b]);
    rows.sort((a, b) => (sorting.down ? -order(a, b) : order(a, b)) || a - b);
    columns.forEach((one, at) => {
      const sorted = one.key === sorting.key;
      headings[at].setAttribute("aria-sort", sorted ? (sorting.down ? "descending" : "ascending") : "none");
      headings[at].firstChild.textContent = one.title + (sorted ? (sorting.down ? " \u25bc" : " \u25b2") : "");
    });
    render();
  };
  const render = () => {
    const body = document.querySelector("#clusters tbody");
    const part = document.createDocumentFragment();
    for (const row of rows.slice(0, shownRows)) {
      const line = make("tr", null, { "data-row": row });
      if (row === selected) line.setAttribute("aria-current", "true");
      for (const column of columns) {
        const kind = column.number ? "number" : column.names ? "names" : column.words ? "words" : "";
        const cell = make("td", column.number ? column.number(row) : null, kind ? { class: kind } : {});
        if (column.cell) column.cell(cell, row);
        line.append(cell);
      }
      part.append(line);
    }
    body.replaceChildren(part);
    byId("count").textContent = `${plain.format(rows.length)} of ${plain.format(data.total)} clusters`;
    byId("more").hidden = rows.length <= shownRows;
    byId("more").textContent = `Show ${plain.format(Math.min(400, rows.length - shownRows))} more`;
  };
  document.querySelector("#clusters tbody").addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (line) select(Number(line.dataset.row), false);
  });
  for (const id of ["search", "status", "least"]) byId(id).addEventListener("input", () => { shownRows = 100; refresh(); });
  const clear = () => { for (const id of ["search", "status", "least"]) byId(id).value = ""; };
  byId("clear").addEventListener("click", () => { clear(); refresh(); });
  byId("more").addEventListener("click", () => { shownRows += 400; render(); });

  // --- one cluster is selected everywhere ------------------------------------------------------------------------------------

  const sentence = (row) => {
    const parts = [`${plain.format(clusters.size[row])} nodes, conductance ${clusters.conductance[row].toFixed(3)}, `
      + `${data.statuses[clusters.status[row]]}`];
    if (clusters.nearest[row] >= 0) parts.push(`nearest is ${nearest(row)}`);
    return parts.join("; ");
  };
  const describe = (element, row, beginning) => {
    element.replaceChildren(beginning, name(clusters.name[row]), ": " + sentence(row));
    if (clusters.central[row].length) {
      element.append("; most central: ");
      listed(element, clusters.central[row]);
    }
  };
  const select = (row, jump) => {
    selected = row;
    if (jump) {
      if (!rows.includes(row)) { clear(); refresh(); }
      shownRows = Math.max(shownRows, rows.indexOf(row) + 1);
      render();
    } else {
      document.querySelectorAll("#clusters tbody tr").forEach((line) => {
        if (Number(line.dataset.row) === row) line.setAttribute("aria-current", "true");
        else line.removeAttribute("aria-current");
      });
    }
    describe(byId("selected"), row, "Selected: cluster ");
    if (jump) {
      const line = document.querySelector("#clusters tbody tr[aria-current]");
      const box = line.closest(".wide");
      box.scrollTop = line.offsetTop - box.clientHeight / 2;
    }
    planes.forEach((plane) => plane.draw());
  };
  document.querySelectorAll(".chip").forEach((chip) => chip.addEventListener("click", () => {
    const row = rowOf.get(Number(chip.dataset.cluster));
    if (row !== undefined) select(row, true);
  }));

  // --- drawings ----------------------------------------------------------------------------------------------------------------

  class Plane {
    // items: x, y in the unit square, r in its units (radius) or in pixels (size), row of the table
    constructor(id, items, ties, fixed) {
      this.canvas = byId(id);
      this.items = items;
      this.ties = ties;
      this.fixed = fixed;
      this.zoom = 1;
      this.left = this.top = 0;
      this.hovered = -1;
      this.listen();
      new ResizeObserver(() => this.draw()).observe(this.canvas);
    }
    size() { return Math.min(this.canvas.clientWidth, this.canvas.clientHeight) - 24; }
    x(value) { return this.canvas.clientWidth / 2 + (value - 0.5) * this.width() * this.zoom + this.left; }
    y(value) { return this.canvas.clientHeight / 2 + (0.5 - value) * this.height() * this.zoom + this.top; }
    width() { return this.fixed ? this.canvas.clientWidth - 30 : this.size(); }
    height() { return this.fixed ? this.canvas.clientHeight - 30 : this.size(); }
    radius(i) { return this.fixed ? this.items.r[i] * Math.sqrt(this.zoom) : Math.max(this.items.r[i] * this.size() * this.zoom, 1.5); }
    draw() {
      // However often it is asked for, once for each picture on the screen.
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.paint(); });
    }
    paint() {
      const { canvas, items } = this;
      const scale = window.devicePixelRatio || 1;
      const [wide, high] = [Math.round(canvas.clientWidth * scale), Math.round(canvas.clientHeight * scale)];
      if (!wide || !high) return;
      if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
      const pen = canvas.getContext("2d");
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
      if (this.ties) this.lines(pen);
      pen.globalAlpha = 1;
      const order = items.row.map((_, i) => i);
      const grey = colour("--tie");
      const front = (i) => (items.row[i] === selected ? 1 : 0);
      if (selected >= 0) order.sort((a, b) => front(a) - front(b));
      for (const i of order) {
        const row = items.row[i];
        pen.globalAlpha = this.fixed ? (selected < 0 ? 0.65 : row === selected ? 1 : 0.18) : 0.95;
        pen.fillStyle = row < 0 ? grey : data.colours[clusters.colour[row]];
        this.shape(pen, this.x(items.x[i]), this.y(items.y[i]), this.radius(i), row < 0 ? 0 : clusters.shape[row]);
        pen.fill();
        if (row >= 0 && (i === this.hovered || (row === selected && !this.fixed))) {
          pen.globalAlpha = 1;
          pen.strokeStyle = colour("--text");
          pen.lineWidth = 2.5;
          pen.stroke();
        }
      }
      pen.globalAlpha = 1;
      if (!this.fixed) this.names(pen);
    }
    lines(pen) {
      // Lines of like width in one stroke: thousands of single ones would be slow.
      const { items, ties } = this;
      const most = count > 300 ? 2.2 : 6;
      const widths = new Map();
      let many = 0;
      ties.from.forEach((from, at) => {
        const own = selected >= 0 && (items.row[from] === selected || items.row[ties.to[at]] === selected);
        const key = Math.round(12 * ties.weight[at]) + (own ? 100 : 0);
        many += own;
        if (!widths.has(key)) widths.set(key, new Path2D());
        const path = widths.get(key);
        path.moveTo(this.x(items.x[from]), this.y(items.y[from]));
        path.lineTo(this.x(items.x[ties.to[at]]), this.y(items.y[ties.to[at]]));
      });
      pen.strokeStyle = colour("--tie");
      for (const [key, path] of widths) {
        // Those of the selected cluster stand out, unless they would cover everything.
        const front = key >= 100 && many <= 60;
        pen.globalAlpha = front ? 0.95 : key >= 100 ? 0.5 : count > 300 ? 0.3 : 0.4;
        pen.lineWidth = (0.4 + most * (key % 100) / 12) * Math.min(Math.sqrt(this.zoom), 3) + (front ? 0.8 : 0);
        pen.stroke(path);
      }
    }
    shape(pen, x, y, r, kind) {
      pen.beginPath();
      if (kind === 1) {
        const half = r * 0.886;
        pen.rect(x - half, y - half, 2 * half, 2 * half);
      } else if (kind === 2) {
        const reach = r * 1.555;
        pen.moveTo(x, y - reach);
        pen.lineTo(x + reach * 0.866, y + reach / 2);
        pen.lineTo(x - reach * 0.866, y + reach / 2);
        pen.closePath();
      } else {
        pen.arc(x, y, r, 0, 2 * Math.PI);
      }
    }
    names(pen) {
      // Names where there is room for them, and of what is selected.
      pen.font = "600 12px system-ui, sans-serif";
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      const [page, ink] = [colour("--page"), colour("--text")];
      this.items.row.forEach((row, i) => {
        const text = clusters.name[row];
        const chosen = row === selected || i === this.hovered;
        if (!chosen && this.radius(i) < 6) return;
        const fits = pen.measureText(text).width <= 2.1 * this.radius(i);
        if (!chosen && !fits) return;
        // Above a mark that the name would cover.
        const [x, y] = [this.x(this.items.x[i]), this.y(this.items.y[i]) - (fits ? 0 : this.radius(i) + 10)];
        pen.lineWidth = 3;
        pen.strokeStyle = page;
        pen.strokeText(text, x, y);
        pen.fillStyle = ink;
        pen.fillText(text, x, y);
      });
    }
    at(x, y) {
      let best = -1;
      let least = Infinity;
      this.items.row.forEach((row, i) => {
        const distance = Math.hypot(this.x(this.items.x[i]) - x, this.y(this.items.y[i]) - y) - this.radius(i);
        if (row >= 0 && distance < 5 && distance < least) [best, least] = [i, distance];
      });
      return best;
    }
    hover(i, x, y) {
      const tip = byId("tip");
      if (i !== this.hovered) {
        this.hovered = i;
        this.draw();
      }
      this.canvas.style.cursor = i < 0 ? "grab" : "pointer";
      tip.hidden = i < 0;
      if (i < 0) return;
      describe(tip, this.items.row[i], "Cluster ");
      tip.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8)) + "px";
      tip.style.top = Math.max(4, Math.min(y + 14, window.innerHeight - tip.offsetHeight - 8)) + "px";
    }
    scale(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
      const zoom = Math.min(Math.max(this.zoom * factor, 0.5), 60);
      const [dx, dy] = [x - this.canvas.clientWidth / 2, y - this.canvas.clientHeight / 2];
      this.left = dx - (dx - this.left) * zoom / this.zoom;
      this.top = dy - (dy - this.top) * zoom / this.zoom;
      this.zoom = zoom;
      this.draw();
    }
    whole() {
      [this.zoom, this.left, this.top] = [1, 0, 0];
      this.draw();
    }
    step(by) {
      // From cluster to cluster, the largest first.
      if (!this.order) {
        const first = new Map();
        this.items.row.forEach((row, i) => { if (row >= 0 && !first.has(row)) first.set(row, i); });
        this.order = [...first.entries()].sort((a, b) => clusters.size[b[0]] - clusters.size[a[0]]).map((pair) => pair[1]);
        this.place = by > 0 ? -1 : 0;
      }
      this.place = (this.place + by + this.order.length) % this.order.length;
      const i = this.order[this.place];
      const box = this.canvas.getBoundingClientRect();
      this.hover(i, box.left + this.x(this.items.x[i]), box.top + this.y(this.items.y[i]));
      describe(byId("selected"), this.items.row[i], "Cluster ");
    }
    listen() {
      const { canvas } = this;
      let from = null;
      let moved = false;
      const local = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
      canvas.addEventListener("pointerdown", (event) => {
        from = [event.clientX - this.left, event.clientY - this.top, event.clientX, event.clientY];
        moved = false;
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointermove", (event) => {
        if (from && (moved || Math.hypot(event.clientX - from[2], event.clientY - from[3]) > 4)) {
          moved = true;
          [this.left, this.top] = [event.clientX - from[0], event.clientY - from[1]];
          this.hover(-1);
          this.draw();
        } else if (!from) {
          this.hover(this.at(...local(event)), event.clientX, event.clientY);
        }
      });
      canvas.addEventListener("pointerup", (event) => {
        const i = moved ? -1 : this.at(...local(event));
        from = null;
        if (i >= 0) select(this.items.row[i], true);
      });
      canvas.addEventListener("pointercancel", () => { from = null; });
      canvas.addEventListener("pointerleave", () => this.hover(-1));
      canvas.addEventListener("blur", () => this.hover(-1));
      canvas.addEventListener("wheel", (event) => {
        if (document.activeElement !== canvas && !event.ctrlKey) return;
        event.preventDefault();
        this.scale(Math.exp(-event.deltaY / 400), ...local(event));
      }, { passive: false });
      const keys = {
        ArrowLeft: () => { this.left += 40; this.draw(); }, ArrowRight: () => { this.left -= 40; this.draw(); },
        ArrowUp: () => { this.top += 40; this.draw(); }, ArrowDown: () => { this.top -= 40; this.draw(); },
        "+": () => this.scale(1.3), "=": () => this.scale(1.3), "-": () => this.scale(1 / 1.3), 0: () => this.whole(),
        n: () => this.step(1), N: () => this.step(1), p: () => this.step(-1), P: () => this.step(-1), Escape: () => this.hover(-1),
        Enter: () => { if (this.hovered >= 0) select(this.items.row[this.hovered], true); },
      };
      canvas.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        event.preventDefault();
        keys[event.key]();
      });
    }
  }

  const quotient = data.quotient;
  const points = data.embedding;
  const flat = { row: points.row, x: points.axes[0], y: points.axes[1] || points.axes[0].map(() => 0.5),
    r: points.area.map((area) => (count > 300 ? 1.5 : 2) + (points.row.length > 800 ? 4 : 8) * area) };
  const planes = new Map([
    ["quotient", new Plane("quotient", quotient, quotient, false)],
    ["embedding", new Plane("embedding", flat, null, true)],
  ]);
  byId("kind").textContent = points.kind;
  for (const [id, key, at] of [["across", "x", 0], ["up", "y", 1]]) {
    points.axes.forEach((_, axis) => byId(id).append(make("option", axis + 1, { value: axis })));
    byId(id).value = Math.min(at, points.axes.length - 1);
    byId(id).addEventListener("input", () => {
      flat[key] = points.axes[Number(byId(id).value)];
      planes.get("embedding").draw();
    });
  }
  const actions = { in: (plane) => plane.scale(1.4), out: (plane) => plane.scale(1 / 1.4), all: (plane) => plane.whole() };
  document.querySelectorAll("[data-zoom]").forEach((button) =>
    button.addEventListener("click", () => actions[button.dataset.zoom](planes.get(button.dataset.of))));

  // --- light and dark, copies, paper -----------------------------------------------------------------------------------------

  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const themed = () => {
    byId("theme").setAttribute("aria-pressed", String(isDark()));
    planes.forEach((plane) => plane.draw());
  };
  byId("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; themed(); });
  system.addEventListener("change", themed);
  if (byId("copy")) {
    byId("copy").addEventListener("click", () => {
      const range = document.createRange();
      range.selectNodeContents(byId("command"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      byId("copied").textContent = document.execCommand("copy") ? " copied" : " selected: press Ctrl+C";
    });
  }
  let before = null;
  window.addEventListener("beforeprint", () => {
    before = [root.dataset.theme, shownRows];
    root.dataset.theme = "light";
    shownRows = Math.max(shownRows, 1000);
    render();
    themed();
  });
  window.addEventListener("afterprint", () => {
    if (before[0]) root.dataset.theme = before[0];
    else delete root.dataset.theme;
    shownRows = before[1];
    render();
    themed();
  });
  refresh();
  themed();
})();
