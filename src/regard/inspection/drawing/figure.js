// Shows the frames of a figure: SVG for text and lines, a canvas for each matrix, a table behind each canvas.
"use strict";
(() => {
  if (customElements.get("regard-figure")) return;

  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  function halves(raw) {
    // Half precision to numbers: sign, exponent, fraction.
    const view = new DataView(raw.buffer), found = new Float32Array(raw.length / 2);
    for (let i = 0; i < found.length; i++) {
      const bits = view.getUint16(2 * i, true);
      const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
      if (exponent === 31) found[i] = fraction ? NaN : sign * Infinity;
      else found[i] = sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
    }
    return found;
  }

  const has = (bits, at) => bits !== null && ((bits[at >> 3] >> (at & 7)) & 1) === 1;

  const rgb = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

  function shade(ramp, share) {
    const at = Math.min(Math.floor(share * (ramp.length - 1)), ramp.length - 2);
    const part = share * (ramp.length - 1) - at;
    return ramp[at].map((from, i) => from * (1 - part) + ramp[at + 1][i] * part);
  }

  const shown = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(6))) : value === -Infinity ? "-∞" : value === Infinity ? "∞" : "NaN");

  class Matrix {
    constructor(data, ramps) {
      Object.assign(this, data);
      this.numbers = data.numbers ?? null;  // of a page that has them already
      if (this.numbers === null) {
        const raw = bytes(data.values);
        this.numbers = data.exact ? new Float32Array(raw.buffer) : halves(raw);
      }
      this.rowKey = keyOf(data.rows);
      this.columnKey = keyOf(data.columns);
      this.hidden = data.masked ? bytes(data.masked) : null;
      this.framed = data.outlined ? bytes(data.outlined) : null;
      this.ramp = ramps[data.ramp].map(rgb);
    }
    isMasked(at) { return has(this.hidden, at); }
    label(names, at) { return this.pooled > 1 ? `${names[at * this.pooled]}…` : names[at]; }
    say(row, column) {
      const at = row * this.shape[1] + column;
      const value = this.isMasked(at) ? "masked" : shown(this.numbers[at]);
      return `${this.label(this.rows, row)} → ${this.label(this.columns, column)}: ${value}`;
    }
    // The cells of a token: a band over its row, one over its column.
    light(stage, point) {
      const [left, top, width, height] = this.box, [rows, columns] = this.shape;
      const down = point && this.find(point.row ?? point, this.rows, this.rowKey);
      const across = point && this.find(point, this.columns, this.columnKey);
      this.band(stage, "down", down >= 0 && point ? [left, top + (Math.floor(down / this.pooled) * height) / rows, width, height / rows] : null);
      this.band(stage, "across", across >= 0 && point ? [left + (Math.floor(across / this.pooled) * width) / columns, top, width / columns, height] : null);
    }
    find(point, labels, key) {
      return point.key === key ? point.index : labels.indexOf(point.label);
    }
    band(stage, name, box) {
      if (!box) return void (this[name] && (this[name].hidden = true));
      if (!this[name]) stage.append((this[name] = Object.assign(document.createElement("div"), { className: "band" })));
      this[name].hidden = false;
      const [left, top, width, height] = box;
      Object.assign(this[name].style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    }
    canvas() {
      const [rows, columns] = this.shape, [left, top, width, height] = this.box;
      const sharp = Math.max(1, Math.round((2 * Math.max(width, 1)) / columns));
      const found = document.createElement("canvas");
      found.width = columns * sharp;
      found.height = rows * Math.max(1, Math.round((2 * Math.max(height, 1)) / rows));
      found.style.cssText = `left:${left}px;top:${top}px;width:${width}px;height:${height}px`;
      found.tabIndex = 0;
      found.setAttribute("role", "img");
      found.setAttribute("aria-label", `${this.name}: ${rows} rows, ${columns} columns; arrow keys read its cells`);
      this.paint(found);
      return found;
    }
    paint(canvas) {
      const [rows, columns] = this.shape, pen = canvas.getContext("2d");
      const small = new OffscreenCanvas(columns, rows), cells = small.getContext("2d");
      const pixels = cells.createImageData(columns, rows), words = new Uint32Array(pixels.data.buffer);
      const word = ([red, green, blue]) => ((255 << 24) | (Math.round(blue) << 16) | (Math.round(green) << 8) | Math.round(red)) >>> 0;
      const shades = Uint32Array.from({ length: 1025 }, (_, at) => word(shade(this.ramp, at / 1024)));
      const masked = word([222, 225, 230]), unknown = word([184, 188, 196]), scale = 1024 / (this.high - this.low || 1);
      for (let at = 0; at < this.numbers.length; at++) {
        const value = this.numbers[at];
        if (this.hidden !== null && this.isMasked(at)) words[at] = masked;
        else if (!Number.isFinite(value)) words[at] = unknown;
        else words[at] = shades[Math.round(Math.min(Math.max((value - this.low) * scale, 0), 1024))];
      }
      cells.putImageData(pixels, 0, 0);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(small, 0, 0, canvas.width, canvas.height);
      if (this.hidden !== null) this.hatch(pen, canvas.width / columns, canvas.height / rows);
      if (this.framed !== null) this.outline(pen, canvas.width / columns, canvas.height / rows);
      if (this.digits !== null && rows * columns <= 2500) this.write(pen, canvas.width / columns, canvas.height / rows);
    }
    outline(pen, wide, high) {
      pen.strokeStyle = "#d4007f";
      pen.lineWidth = 3;
      for (let at = 0; at < this.numbers.length; at++)
        if (has(this.framed, at)) pen.strokeRect((at % this.shape[1]) * wide + 1.5, Math.floor(at / this.shape[1]) * high + 1.5, wide - 3, high - 3);
    }
    hatch(pen, wide, high) {
      const { width, height } = pen.canvas, cells = new Path2D(), lines = new Path2D();
      for (let at = 0; at < this.numbers.length; at++)
        if (this.isMasked(at)) cells.rect((at % this.shape[1]) * wide, Math.floor(at / this.shape[1]) * high, wide, high);
      for (let x = -height; x < width; x += 10) { lines.moveTo(x, height); lines.lineTo(x + height, 0); }
      pen.save();
      pen.clip(cells);
      pen.strokeStyle = "#a4aab4";
      pen.lineWidth = 2;
      pen.stroke(lines);
      pen.restore();
    }
    write(pen, wide, high) {
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.font = `${Math.min(16, high * 0.5)}px system-ui, sans-serif`;
      for (let row = 0; row < this.shape[0]; row++) for (let column = 0; column < this.shape[1]; column++) {
        const at = row * this.shape[1] + column, value = this.numbers[at];
        const share = Math.min(Math.max((value - this.low) / (this.high - this.low || 1), 0), 1);
        const [red, green, blue] = Number.isFinite(value) ? shade(this.ramp, share) : [184, 188, 196];
        pen.fillStyle = 0.299 * red + 0.587 * green + 0.114 * blue < 140 ? "#fff" : "#1c2733";
        const text = this.isMasked(at) ? "" : Number.isFinite(value) ? value.toFixed(this.digits).replace(/^-(?=[0.]*$)/, "") : shown(value);
        pen.fillText(text, (column + 0.5) * wide, (row + 0.5) * high);
      }
    }
    table() {
      const [rows, columns] = this.shape, table = document.createElement("table");
      const caption = table.createCaption();
      caption.textContent = this.exact ? this.name : `${this.name}: the 50 largest of ${rows} × ${columns}`;
      if (this.exact) {
        const head = table.createTHead().insertRow();
        head.append(document.createElement("td"), ...Array.from({ length: columns }, (_, i) => cell("th", this.label(this.columns, i))));
        for (let row = 0; row < rows; row++) {
          const line = table.insertRow();
          line.append(cell("th", this.label(this.rows, row)));
          for (let column = 0; column < columns; column++) {
            const at = row * columns + column;
            line.append(cell("td", this.isMasked(at) ? "masked" : shown(this.numbers[at])));
          }
        }
        return table;
      }
      const order = Array.from(this.numbers.keys()).sort((one, other) => this.numbers[other] - this.numbers[one]).slice(0, 50);
      for (const at of order) {
        const line = table.insertRow();
        line.append(cell("th", this.label(this.rows, Math.floor(at / columns))), cell("th", this.label(this.columns, at % columns)), cell("td", shown(this.numbers[at])));
      }
      return table;
    }
  }

  // What a text of an SVG says, without its title.
  const said = (text) => Array.from(text.childNodes).filter((one) => one.nodeType === 3).map((one) => one.data).join("");

  function cell(kind, text) {
    const found = document.createElement(kind);
    found.textContent = text;
    if (kind === "th") found.scope = "col";
    return found;
  }

  // One token lights up in every figure of the page: the same position of the same labels, else the same label.
  const light = (point) => document.dispatchEvent(new CustomEvent("regard-light", { detail: point }));
  const keyOf = (labels) => labels.join("\u0001");

  class RegardFigure extends HTMLElement {
    static css = "";  // of a page that brings the style itself, once for all figures
    connectedCallback() {
      this.lighting ??= (event) => this.light(event.detail);
      document.addEventListener("regard-light", this.lighting);
      if (this.data) return void (this.shadowRoot ?? this.draw(this.data));
      const data = this.querySelector(".regard-data");
      if (!data) return void setTimeout(() => this.isConnected && this.connectedCallback());
      RegardFigure.css ||= JSON.parse(this.querySelector(".regard-style").textContent);
      this.draw(JSON.parse(data.textContent));
    }
    disconnectedCallback() { document.removeEventListener("regard-light", this.lighting); }
    draw(data) {
      this.data = data;
      this.ramps = data.ramps;
      const root = this.shadowRoot ?? this.attachShadow({ mode: "open" });
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(RegardFigure.css);
      root.adoptedStyleSheets = [sheet];
      root.innerHTML = '<div class=figure><div class=bar></div><div class=scroll><div class=stage></div></div><div class=tables></div><div class=tip role=status hidden></div></div>';
      this.chooser(root.querySelector(".bar"));
      this.show(this.data.chosen);
    }
    chooser(bar) {
      const { frames, choice, chosen } = this.data;
      if (frames.length < 2) return;
      const select = document.createElement("select"), label = document.createElement("label");
      frames.forEach((frame, at) => select.add(new Option(frame.name, at, false, at === chosen)));
      label.append(`${choice}: `, select);
      const slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: frames.length - 1, value: chosen });
      slider.setAttribute("aria-label", choice);
      select.onchange = () => this.choose(Number((slider.value = select.value)));
      slider.oninput = () => this.choose(Number((select.value = slider.value)));
      bar.append(label, slider);
    }
    choose(number) {
      this.show(number);
      this.dispatchEvent(new CustomEvent("regard-frame", { bubbles: true, composed: true, detail: number }));
    }
    show(number) {
      const frame = this.data.frames[number], stage = this.shadowRoot.querySelector(".stage");
      const room = (this.clientWidth || 1e4) - 24;  // from two thirds to twice the size of print, as wide as the page
      const zoom = Math.max(0.66, Math.min(2, room / frame.width));
      stage.style.cssText = `width:${frame.width}px;height:${frame.height}px;zoom:${zoom}`;
      stage.innerHTML = frame.svg;
      this.matrices = frame.matrices.map((data) => new Matrix(data, this.ramps));
      for (const matrix of this.matrices) this.place(stage, matrix);
      const above = Object.assign(document.createElement("div"), { className: "above", innerHTML: frame.above });
      stage.append(above);
      this.labels(stage);
      const tables = this.shadowRoot.querySelector(".tables");
      tables.replaceChildren();
      if (this.matrices.length && this.matrices.length <= 40) {
        const details = document.createElement("details");
        details.innerHTML = "<summary>the numbers as tables</summary>";
        details.ontoggle = () => { if (details.open && details.children.length === 1) this.matrices.forEach((one) => details.append(one.table())); };
        tables.append(details);
      }
      this.current = number;
    }
    labels(stage) {
      // The texts that are labels of rows or columns light up what they name.
      const known = new Set(this.matrices.flatMap((one) => [...one.rows, ...one.columns]));
      this.texts = [...stage.querySelectorAll("svg text")].filter((one) => known.has(said(one)));
      for (const one of this.texts) {
        one.classList.add("token");
        one.onpointerenter = () => light({ label: said(one) });
        one.onpointerleave = () => light(null);
      }
    }
    light(point) {
      const label = point && point.label;
      for (const one of this.texts ?? []) one.classList.toggle("lit", label !== null && said(one) === label);
      for (const matrix of this.matrices ?? []) matrix.light(this.shadowRoot.querySelector(".stage"), point);
    }
    place(stage, matrix) {
      const canvas = matrix.canvas(), [rows, columns] = matrix.shape;
      let row = 0, column = 0;
      const at = (event) => {
        const box = canvas.getBoundingClientRect();
        column = Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * columns)));
        row = Math.min(rows - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * rows)));
        this.tip(matrix.say(row, column), event.clientX + 12, event.clientY + 14);
        this.point(matrix, row, column);
      };
      canvas.onpointermove = at;
      canvas.onpointerleave = () => { this.tip(""); light(null); };
      canvas.onclick = () => this.dispatchEvent(new CustomEvent("regard-choose", { bubbles: true, composed: true, detail: { matrix, row, column } }));
      canvas.onblur = () => this.tip("");
      canvas.onkeydown = (event) => {
        const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
        if (event.key === "Enter") return void canvas.onclick();
        if (!move) return;
        event.preventDefault();
        row = Math.min(rows - 1, Math.max(0, row + move[0]));
        column = Math.min(columns - 1, Math.max(0, column + move[1]));
        const box = canvas.getBoundingClientRect();
        this.point(matrix, row, column);
        this.tip(matrix.say(row, column), box.left + ((column + 0.5) / columns) * box.width, box.top + ((row + 1) / rows) * box.height + 6);
      };
      stage.append(canvas);
    }
    point(matrix, row, column) {
      const at = `${row} ${column}`;
      if (this.pointed === at && this.pointedMatrix === matrix) return;
      [this.pointed, this.pointedMatrix] = [at, matrix];
      light({ label: matrix.columns[column * matrix.pooled], key: matrix.columnKey, index: column * matrix.pooled, row: { label: matrix.rows[row * matrix.pooled], key: matrix.rowKey, index: row * matrix.pooled } });
    }
    tip(text, x = 0, y = 0) {
      const tip = this.shadowRoot.querySelector(".tip");
      tip.hidden = !text;
      tip.textContent = text;
      tip.style.left = `${Math.min(x, innerWidth - 220)}px`;
      tip.style.top = `${Math.min(y, innerHeight - 40)}px`;
    }
  }
  customElements.define("regard-figure", RegardFigure);
})();
