// The graph on a canvas: boxes and ops coloured by device, edges between them. What is out of sight
// is not drawn, and small things are drawn without text, so that thousands of ops can be dragged
// about.

import { oncePerFrame, pixelRatio, sizeCanvas } from './canvas';
import { select } from 'd3-selection';
import { zoom, zoomIdentity, type ZoomTransform } from 'd3-zoom';
import { h } from './dom';
import { oneLine, plural, shortened, timeText } from './format';
import { criticalPath, edgesOf, passes, trace, type CriticalPath, type Edge } from './graph_edges';
import { isAt, labelsOf, movedText, type Label, type Rectangle } from './graph_labels';
import { FRAME, layoutOf, type Box, type Layout } from './graph_layout';
import { Minimap } from './minimap';
import { deviceColour, deviceFill, withAlpha } from './palette';
import type { State } from './state';
import { themeColours, type ThemeColours } from './theme';
import { hideTip, showTip } from './tip';

const TEXT_FROM = 0.5; // scale from which names can be read
const LABELS_FROM = 0.75;
const CROWDED = 400; // edges from which single ones are drawn faintly
const REACH = 5; // how near to an edge the pointer must be, on the screen
const TOLD = 6; // edges of a bundle

export class GraphView {
  readonly canvas: HTMLCanvasElement;
  readonly summary: HTMLElement;
  private readonly minimap: Minimap;
  readonly element: HTMLElement;
  private readonly context: CanvasRenderingContext2D;
  private layout!: Layout;
  private edges: Edge[] = [];
  private labels: Label[] = []; // as drawn last
  private transform: ZoomTransform = zoomIdentity;
  private readonly zoom = zoom<HTMLCanvasElement, unknown>()
    .scaleExtent([0.01, 4])
    .filter((event: Event) => this.maySteer(event))
    .on('zoom', (event) => {
      this.transform = event.transform;
      this.redraw();
      if (!this.following) this.moved?.(event.transform);
    });
  private moved?: (transform: ZoomTransform) => void;
  private following = false; // another graph, whose move this is
  private readonly redraw = oncePerFrame(() => this.draw());
  private drawnOnce = false;
  private width = 0;
  private height = 0;
  private revealLater = false; // when the size is known
  private touched = false; // the reader has moved the picture: keep it so on resize
  private colours: ThemeColours = themeColours();
  private readonly texts = new Map<string, string>();
  private critical: CriticalPath = { ops: new Set(), edges: new Set() };
  private selectedOps = new Set<number>();

  // `name` goes before the ids of its elements.
  constructor(private readonly state: State, name = '') {
    this.canvas = h('canvas', {
      tabindex: 0, role: 'application', id: `${name}graph`,
      'aria-label': 'Graph of ops. Arrow keys walk along edges, Enter folds and unfolds, plus and minus zoom, 0 shows all.',
    });
    this.context = this.canvas.getContext('2d', { alpha: false })!;
    this.summary = h('p', { class: 'quiet graph-summary', role: 'status', id: `${name}graph-summary` });
    this.minimap = new Minimap(state, name, (x, y) => this.centre(x, y, this.transform.k));
    this.element = h('div', { class: 'graph-holder' }, this.canvas, this.minimap.element);
    select(this.canvas).call(this.zoom).on('dblclick.zoom', null);
    this.zoom.on('start', (event) => { if (event.sourceEvent) this.touched = true; });
    this.canvas.addEventListener('click', (event) => this.click(event));
    this.canvas.addEventListener('dblclick', (event) => this.toggleAt(event));
    this.canvas.addEventListener('mousemove', (event) => this.hover(event));
    this.canvas.addEventListener('mouseleave', hideTip);
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(this.element);
    state.onChange((change, reveal) => {
      if (change === 'theme') {
        this.colours = themeColours();
        this.minimap.paint(this.layout, this.colours);
      }
      if (change === 'grouping' || change === 'fold') this.relayout(change === 'grouping');
      if (change === 'plan') this.relink();
      if (change === 'selection') {
        this.selectedOps = state.selectedOps();
        if (reveal) this.reveal();
      }
      this.redraw();
    });
    this.relayout(false);
  }

  // The page scrolls with the wheel unless the reader has chosen the graph by a click.
  private maySteer(event: Event): boolean {
    if (event.type === 'wheel') {
      return document.activeElement === this.canvas || (event as WheelEvent).ctrlKey;
    }
    return !(event as MouseEvent).button;
  }

  private relayout(fit: boolean) {
    const anchor = this.layout ? this.anchor() : null;
    this.layout = layoutOf(this.state, this.height > 0 ? this.width / this.height : 2);
    this.relink();
    if (fit || !this.touched) this.fit();
    else if (anchor) this.keep(anchor);
  }

  // An op near the middle, and where it is on the screen: it stays there when boxes fold.
  private anchor() {
    const selected = [...this.selectedOps][0];
    const op = selected ?? this.nearestTo(this.width / 2, this.height / 2);
    return { op, at: this.transform.apply([this.layout.x[op], this.layout.y[op]]) };
  }

  private keep({ op, at }: { op: number; at: [number, number] }) {
    const k = this.transform.k;
    this.setTransform(zoomIdentity.translate(at[0] - this.layout.x[op] * k, at[1] - this.layout.y[op] * k).scale(k));
  }

  private nearestTo(x: number, y: number): number {
    const [wx, wy] = this.transform.invert([x, y]);
    let nearest = 0;
    let least = Infinity;
    this.layout.x.forEach((ox, op) => {
      const distance = (ox - wx) ** 2 + (this.layout.y[op] - wy) ** 2;
      if (distance < least) [least, nearest] = [distance, op];
    });
    return nearest;
  }

  private setTransform(transform: ZoomTransform) {
    select(this.canvas).call(this.zoom.transform, transform);
  }

  onMove(moved: (transform: ZoomTransform) => void) { this.moved = moved; }

  // Shows the same part as another graph, if that has the same layout.
  moveLike(other: GraphView, transform: ZoomTransform) {
    if (other.layout.width !== this.layout.width || other.layout.height !== this.layout.height) return;
    this.following = true;
    this.touched = other.touched;
    this.setTransform(transform);
    this.following = false;
  }

  fit() {
    if (this.width === 0) return;
    const margin = 24;
    const k = Math.min(1.25, (this.width - 2 * margin) / Math.max(1, this.layout.width),
                       (this.height - 2 * margin) / Math.max(1, this.layout.height));
    this.setTransform(zoomIdentity
      .translate((this.width - this.layout.width * k) / 2, (this.height - this.layout.height * k) / 2)
      .scale(k));
    this.touched = false;
  }

  zoomBy(factor: number) {
    this.touched = true;
    select(this.canvas).call(this.zoom.scaleBy, factor);
  }

  private relink() {
    const { report } = this.state;
    this.critical = criticalPath(this.state);
    this.edges = edgesOf(this.state, this.layout, this.critical);
    this.minimap.paint(this.layout, this.colours);
    const folded = this.layout.boxes.filter((box) => box.folded).length;
    const cuts = this.edges.filter((edge) => edge.cut).length;
    this.summary.textContent = `${plural(report.ops.name.length, 'op')}, ${plural(report.problem.edges, 'edge')}` +
      (folded > 0 ? `, ${plural(folded, 'folded group')}` : '') +
      `; ${plural(cuts, 'drawn edge')} cut between devices`;
  }

  private resize() {
    const { clientWidth, clientHeight } = this.element;
    if (clientWidth === 0 || (clientWidth === this.width && clientHeight === this.height)) return;
    this.width = clientWidth;
    this.height = clientHeight;
    sizeCanvas(this.canvas, clientWidth, clientHeight);
    // The side panel takes width for a selection: what was clicked stays under the pointer.
    if (!this.touched && !this.state.selection) this.relayout(true);
    if (this.revealLater || this.state.selection) this.reveal();
    this.draw();
  }

  private draw() {
    const ratio = pixelRatio();
    const { context: ink, transform } = this;
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.fillStyle = this.colours.canvas;
    ink.fillRect(0, 0, this.width, this.height);
    ink.setTransform(ratio * transform.k, 0, 0, ratio * transform.k, ratio * transform.x, ratio * transform.y);
    const [left, top] = transform.invert([0, 0]);
    const [right, bottom] = transform.invert([this.width, this.height]);
    const sees = (x: number, y: number, width: number, height: number) =>
      x < right && y < bottom && x + width > left && y + height > top;
    this.drawFrames(ink, sees);
    this.drawEdges(ink, sees);
    this.drawOps(ink, sees);
    this.drawFolded(ink, sees);
    this.labels = [];
    if (transform.k >= LABELS_FROM) this.drawCutLabels(ink, sees);
    this.minimap.show({ left, top, right, bottom }, this.layout, this.colours);
    if (!this.drawnOnce) performance.mark('drawn');
    this.drawnOnce = true;
  }

  private drawFrames(ink: CanvasRenderingContext2D, sees: Sees) {
    for (const box of this.layout.boxes) {
      if (!this.isFrame(box) || !sees(box.x, box.y, box.width, box.height)) continue;
      ink.fillStyle = this.colours.frame;
      ink.strokeStyle = this.colours.line;
      ink.lineWidth = 1;
      ink.beginPath();
      ink.roundRect(box.x, box.y, box.width, box.height, 8);
      ink.fill();
      ink.stroke();
      if (this.transform.k < TEXT_FROM / 2) continue;
      ink.fillStyle = this.colours.quiet;
      ink.font = FONT_BOLD;
      ink.textBaseline = 'middle';
      const name = `▾ ${oneLine(this.state.currentGrouping.groups[box.group].name, 60)}`;
      ink.fillText(this.fitted(ink, name, box.width - 24), box.x + 12, box.y + 15);
    }
  }

  private drawEdges(ink: CanvasRenderingContext2D, sees: Sees) {
    const k = this.transform.k;
    const straight = k < 0.3;
    const crowded = this.edges.length > CROWDED ? Math.max(0.12, (0.4 * CROWDED) / this.edges.length) : 1;
    const stroke = (wanted: (edge: Edge) => boolean, colour: string, width: number, dash: number[], alpha = 1) => {
      ink.globalAlpha = alpha;
      ink.strokeStyle = colour;
      ink.lineWidth = width;
      ink.setLineDash(dash);
      ink.beginPath();
      for (const edge of this.edges) {
        if (!wanted(edge)) continue;
        const x = Math.min(edge.x1, edge.x2);
        const y = Math.min(edge.y1, edge.y2);
        if (!sees(x - 60, y - 1, Math.abs(edge.x1 - edge.x2) + 120, Math.abs(edge.y1 - edge.y2) + 2)) continue;
        trace(ink, edge, straight);
      }
      ink.stroke();
      ink.setLineDash([]);
      ink.globalAlpha = 1;
    };
    const thin = Math.max(1, 0.6 / k);
    stroke((edge) => !edge.cut && !edge.critical, this.colours.edge, thin, [], Math.sqrt(crowded));
    stroke((edge) => edge.cut && !edge.critical, this.colours.cut, thin * 1.4, straight || crowded < 1 ? [] : [6, 4], crowded);
    stroke((edge) => edge.critical && !edge.cut, this.colours.critical, thin * 2.6, []);
    stroke((edge) => edge.critical && edge.cut, this.colours.critical, thin * 2.6, straight ? [] : [8, 4]);
    const selected = this.selectedOps;
    if (selected.size > 0 && selected.size < 200) {
      stroke((edge) => this.touches(edge), this.colours.accent, thin * 2.2, []);
    }
    if (k >= TEXT_FROM / 1.5) this.drawHeads(ink, sees);
  }

  // Does the edge join something selected?
  private touches(edge: Edge): boolean {
    if (this.state.selection?.kind === 'group') return false;
    return this.selectedOps.has(edge.from) || this.selectedOps.has(edge.to);
  }

  private drawHeads(ink: CanvasRenderingContext2D, sees: Sees) {
    for (const edge of this.edges) {
      if (!sees(edge.x2 - 5, edge.y2 - 5, 10, 10)) continue;
      // The direction in which the head points.
      const dx = edge.sideways ? Math.sign(edge.x2 - edge.x1) : 0;
      const dy = edge.sideways ? 0 : edge.y2 < edge.y1 ? -1 : 1;
      ink.fillStyle = edge.critical ? this.colours.critical : edge.cut ? this.colours.cut : this.colours.edge;
      ink.beginPath();
      ink.moveTo(edge.x2, edge.y2);
      ink.lineTo(edge.x2 - 6.5 * dx - 3.6 * dy, edge.y2 - 6.5 * dy - 3.6 * dx);
      ink.lineTo(edge.x2 - 6.5 * dx + 3.6 * dy, edge.y2 - 6.5 * dy + 3.6 * dx);
      ink.fill();
    }
  }

  private drawOps(ink: CanvasRenderingContext2D, sees: Sees) {
    const { report, currentGrouping: grouping, currentPlan: plan } = this.state;
    const { width, height } = report.node;
    const small = this.transform.k < TEXT_FROM / 1.6;
    const other = this.state.other >= 0 ? report.plans[this.state.other] : null;
    for (let op = 0; op < report.ops.name.length; ++op) {
      if (this.layout.boxes[grouping.of[op]].folded) continue;
      const x = this.layout.x[op] - width / 2;
      const y = this.layout.y[op] - height / 2;
      if (!sees(x, y, width, height)) continue;
      const device = plan.placement[op];
      if (small) {
        ink.fillStyle = deviceFill(ink, device);
        ink.fillRect(x, y, width, height);
      } else {
        this.drawOp(ink, op, x, y, device);
      }
      this.drawOutline(ink, op, x, y, width, height, other !== null && other.placement[op] !== device);
    }
  }

  private drawOp(ink: CanvasRenderingContext2D, op: number, x: number, y: number, device: number) {
    const { report } = this.state;
    const { width, height } = report.node;
    ink.fillStyle = this.colours.card;
    ink.beginPath();
    ink.roundRect(x, y, width, height, 5);
    ink.fill();
    ink.fillStyle = withAlpha(deviceColour(device), 0.16);
    ink.fill();
    ink.strokeStyle = withAlpha(deviceColour(device), 0.9);
    ink.lineWidth = 1;
    ink.stroke();
    ink.fillStyle = deviceFill(ink, device);
    ink.fillRect(x, y + 1, 7, height - 2);
    ink.fillStyle = this.colours.ink;
    ink.font = FONT;
    ink.textBaseline = 'middle';
    const type = report.ops.types[report.ops.type[op]];
    const name = this.fitted(ink, oneLine(this.state.nameInGroup(op), 40), width - 20, 0);
    ink.fillText(name, x + 13, y + (type ? height / 2 - 7 : height / 2 + 0.5));
    if (type) {
      ink.fillStyle = this.colours.quiet;
      ink.font = FONT_SMALL;
      ink.fillText(this.fitted(ink, oneLine(type, 40), width - 20), x + 13, y + height / 2 + 8);
    }
  }

  private drawOutline(ink: CanvasRenderingContext2D, op: number, x: number, y: number, width: number,
                      height: number, differs: boolean) {
    const outline = (colour: string, line: number, out: number, dash: number[]) => {
      ink.strokeStyle = colour;
      ink.lineWidth = line;
      ink.setLineDash(dash);
      ink.beginPath();
      ink.roundRect(x - out, y - out, width + 2 * out, height + 2 * out, 5 + out);
      ink.stroke();
      ink.setLineDash([]);
    };
    const far = Math.min(8, Math.max(1, 0.5 / this.transform.k));
    if (this.critical.ops.has(op)) outline(this.colours.critical, 2.2 * far, 0, []);
    if (differs) outline(this.colours.differs, 2.6 * far, 4, [5, 3]);
    if (this.selectedOps.has(op) && this.state.selection?.kind !== 'group') {
      outline(this.colours.accent, 3 * far, 3 * far, []);
    }
  }

  private drawFolded(ink: CanvasRenderingContext2D, sees: Sees) {
    const { report, currentPlan: plan } = this.state;
    const other = this.state.other >= 0 ? report.plans[this.state.other] : null;
    for (const box of this.layout.boxes) {
      if (!box.folded || !sees(box.x, box.y, box.width, box.height)) continue;
      const members = this.state.members(box.group);
      const shares = new Map<number, number>();
      for (const op of members) shares.set(plan.placement[op], (shares.get(plan.placement[op]) ?? 0) + 1);
      ink.fillStyle = this.colours.card;
      ink.beginPath();
      ink.roundRect(box.x, box.y, box.width, box.height, 7);
      ink.fill();
      ink.save();
      ink.clip();
      const small = this.transform.k < TEXT_FROM / 1.6;
      let x = box.x;
      for (const [device, ops] of [...shares].sort((a, b) => a[0] - b[0])) {
        const share = (ops / members.length) * box.width;
        ink.fillStyle = deviceFill(ink, device);
        ink.fillRect(x, small ? box.y : box.y + box.height - 13, share + 0.5, small ? box.height : 13);
        x += share;
      }
      ink.restore();
      const critical = members.some((op) => this.critical.ops.has(op));
      const differs = other !== null && members.some((op) => other.placement[op] !== plan.placement[op]);
      ink.strokeStyle = critical ? this.colours.critical : this.colours.line;
      ink.lineWidth = critical ? 2.2 : 1.2;
      ink.beginPath();
      ink.roundRect(box.x, box.y, box.width, box.height, 7);
      ink.stroke();
      if (!small) this.drawFoldedText(ink, box, members);
      const chosen = this.state.selection?.kind === 'group'
        ? this.state.selection.index === box.group
        : members.some((op) => this.selectedOps.has(op));
      if (differs) this.ring(ink, box, this.colours.differs, [5, 3], 4);
      if (chosen) this.ring(ink, box, this.colours.accent, [], 3);
    }
  }

  private drawFoldedText(ink: CanvasRenderingContext2D, box: Box, members: number[]) {
    ink.fillStyle = this.colours.ink;
    ink.font = FONT_GROUP;
    ink.textBaseline = 'middle';
    const name = oneLine(this.state.currentGrouping.groups[box.group].name, 60);
    ink.fillText(this.fitted(ink, `▸ ${name}`, box.width - 22), box.x + 11, box.y + 19);
    ink.fillStyle = this.colours.quiet;
    ink.font = FONT_GROUP_SMALL;
    ink.fillText(plural(members.length, 'op'), box.x + 27, box.y + 41);
  }

  private ring(ink: CanvasRenderingContext2D, box: Box, colour: string, dash: number[], out: number) {
    ink.strokeStyle = colour;
    ink.lineWidth = 3 * Math.max(1, 0.5 / this.transform.k);
    ink.setLineDash(dash);
    ink.beginPath();
    ink.roundRect(box.x - out, box.y - out, box.width + 2 * out, box.height + 2 * out, 9);
    ink.stroke();
    ink.setLineDash([]);
  }

  private drawCutLabels(ink: CanvasRenderingContext2D, sees: Sees) {
    ink.font = FONT_SMALL;
    ink.textBaseline = 'middle';
    ink.textAlign = 'center';
    const inSight = this.edges.filter((edge) => edge.cut && sees(Math.min(edge.x1, edge.x2) - 60, Math.min(edge.y1, edge.y2),
      Math.abs(edge.x1 - edge.x2) + 120, Math.abs(edge.y1 - edge.y2) + 1));
    this.labels = labelsOf(inSight, this.state.report.problem.unit, this.boxesInSight(sees), (text) => ink.measureText(text).width);
    for (const { x, y, width, text, edges } of this.labels) {
      ink.fillStyle = this.colours.canvas;
      ink.globalAlpha = 0.88;
      ink.fillRect(x - width / 2, y - 7, width, 14);
      ink.globalAlpha = 1;
      ink.fillStyle = edges.some((edge) => edge.critical) ? this.colours.critical : this.colours.cut;
      ink.fillText(text, x, y + 0.5);
    }
    ink.textAlign = 'start';
  }

  // Of ops and folded groups.
  private boxesInSight(sees: Sees): Rectangle[] {
    const { report, currentGrouping: grouping } = this.state;
    const { width, height } = report.node;
    const ops = report.ops.name.map((_, op) => op).filter((op) => !this.layout.boxes[grouping.of[op]].folded)
      .map((op) => ({ x: this.layout.x[op] - width / 2, y: this.layout.y[op] - height / 2, width, height }));
    return [...ops, ...this.layout.boxes.filter((box) => box.folded)].filter((box) => sees(box.x, box.y, box.width, box.height));
  }

  private fitted(ink: CanvasRenderingContext2D, text: string, width: number, head?: number): string {
    const key = `${ink.font} ${width} ${text}`;
    const known = this.texts.get(key);
    if (known !== undefined) return known;
    let shown = text;
    if (ink.measureText(text).width > width) {
      const letters = Array.from(text);
      let low = 1;
      let high = letters.length;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (ink.measureText(shortened(letters, middle, head)).width <= width) low = middle;
        else high = middle - 1;
      }
      shown = shortened(letters, low, head);
    }
    this.texts.set(key, shown);
    return shown;
  }

  private isFrame(box: Box): boolean {
    return this.state.currentGrouping.framed && !box.folded && box.op < 0;
  }

  private opAt(x: number, y: number): number {
    const { report, currentGrouping: grouping } = this.state;
    const { width, height } = report.node;
    for (let op = 0; op < report.ops.name.length; ++op) {
      if (Math.abs(this.layout.x[op] - x) <= width / 2 && Math.abs(this.layout.y[op] - y) <= height / 2 &&
          !this.layout.boxes[grouping.of[op]].folded) return op;
    }
    return -1;
  }

  private boxAt(x: number, y: number): Box | undefined {
    return this.layout.boxes.find((box) => (box.folded || (this.isFrame(box) && y <= box.y + FRAME.top)) &&
      x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);
  }

  private place(event: MouseEvent): [number, number] {
    return this.transform.invert([event.offsetX, event.offsetY]);
  }

  private click(event: MouseEvent) {
    const [x, y] = this.place(event);
    const op = this.opAt(x, y);
    if (op >= 0) return this.state.select({ kind: 'op', index: op });
    const box = this.boxAt(x, y);
    if (!box) return this.state.select(null);
    // The title of an open group folds it; a folded group is chosen first, opened by a double
    // click.
    if (!box.folded) this.state.setFolded(box.group, true);
    this.state.select({ kind: 'group', index: box.group });
  }

  private toggleAt(event: MouseEvent) {
    const box = this.boxAt(...this.place(event));
    if (box?.folded) {
      this.touched = true;
      this.state.setFolded(box.group, false);
    }
  }

  private hover(event: MouseEvent) {
    if (event.buttons) return hideTip();
    const [x, y] = this.place(event);
    const op = this.opAt(x, y);
    const { report, currentPlan: plan } = this.state;
    if (op >= 0) {
      const device = plan.placement[op];
      const time = report.ops.time[op * report.kinds.length + report.devices[device].kind];
      const type = report.ops.types[report.ops.type[op]];
      return showTip(event, oneLine(report.ops.name[op], 120), type,
                     `${oneLine(report.devices[device].name, 40)}: ${timeText(time, report.problem.unit)}`);
    }
    const box = this.boxAt(x, y);
    if (!box) return this.hoverEdges(event, x, y);
    return showTip(event, oneLine(this.state.currentGrouping.groups[box.group].name, 120),
                   plural(this.state.members(box.group).length, 'op'),
                   box.folded ? 'Double click to unfold' : 'Click to fold');
  }

  // What moves along the cut edges under the pointer, or behind the label there.
  private hoverEdges(event: MouseEvent, x: number, y: number) {
    const near = REACH / this.transform.k;
    const edges = this.labels.find((label) => isAt(label, x, y))?.edges ?? this.edges.filter((edge) => edge.cut && passes(edge, x, y, near));
    if (edges.length === 0) return hideTip();
    const { unit } = this.state.report.problem;
    const [first] = edges;
    if (edges.length === 1) return showTip(event, this.endsText(first, 60), this.devicesText(first), movedText(edges, unit));
    return showTip(event, `${plural(edges.length, 'cut edge')} · ${movedText(edges, unit)}`,
                   ...edges.slice(0, TOLD).map((edge) => `${this.endsText(edge, 30)}: ${movedText([edge], unit)}`),
                   edges.length > TOLD ? `and ${edges.length - TOLD} more` : '');
  }

  private endsText(edge: Edge, most: number): string {
    const { report, currentGrouping: grouping } = this.state;
    const name = (op: number) => {
      const box = this.layout.boxes[grouping.of[op]];
      return oneLine(box.folded ? grouping.groups[box.group].name : report.ops.name[op], most);
    };
    return `${name(edge.from)} → ${name(edge.to)}`;
  }

  private devicesText({ from, to }: Edge): string {
    const { report, currentPlan: plan } = this.state;
    const device = (op: number) => oneLine(report.devices[plan.placement[op]].name, 40);
    return device(from) === device(to) ? '' : `${device(from)} → ${device(to)}`;
  }

  private key(event: KeyboardEvent) {
    const keys: Record<string, () => void> = {
      '+': () => this.zoomBy(1.4),
      '=': () => this.zoomBy(1.4),
      '-': () => this.zoomBy(1 / 1.4),
      '0': () => this.fit(),
      ArrowUp: () => this.walk(this.neighbours(-1)),
      ArrowDown: () => this.walk(this.neighbours(1)),
      ArrowLeft: () => this.walkAcross(-1),
      ArrowRight: () => this.walkAcross(1),
      Enter: () => this.toggleSelected(),
    };
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    action();
  }

  private current(): number {
    return [...this.selectedOps][0] ?? -1;
  }

  private neighbours(direction: number): number[] {
    const { report } = this.state;
    const op = this.current();
    if (op < 0) return [];
    return direction < 0 ? this.state.inputs[op].map((tensor) => report.tensors.from[tensor])
                         : this.state.outputs[op].flatMap((tensor) => report.tensors.to[tensor]);
  }

  private walk(candidates: number[]) {
    if (this.current() < 0) return this.state.select({ kind: 'op', index: this.nearestTo(this.width / 2, 0) }, true);
    const here = this.layout.x[this.current()];
    const nearest = candidates.sort((a, b) => Math.abs(this.layout.x[a] - here) - Math.abs(this.layout.x[b] - here))[0];
    if (nearest !== undefined) this.state.select({ kind: 'op', index: nearest }, true);
  }

  private walkAcross(direction: number) {
    const op = this.current();
    if (op < 0) return this.walk([]);
    const { x, y, boxes } = this.layout;
    let best = -1;
    for (let other = 0; other < x.length; ++other) {
      if (boxes[this.state.currentGrouping.of[other]].folded || Math.abs(y[other] - y[op]) > 2) continue;
      if ((x[other] - x[op]) * direction <= 0) continue;
      if (best < 0 || Math.abs(x[other] - x[op]) < Math.abs(x[best] - x[op])) best = other;
    }
    if (best >= 0) this.state.select({ kind: 'op', index: best }, true);
  }

  private toggleSelected() {
    const { selection } = this.state;
    const op = this.current();
    const group = selection?.kind === 'group' ? selection.index : op >= 0 ? this.state.currentGrouping.of[op] : -1;
    if (group < 0) return;
    this.touched = true;
    const fold = !this.state.folded.has(group);
    this.state.setFolded(group, fold);
    if (fold && this.state.foldable(group)) this.state.select({ kind: 'group', index: group });
  }

  // Moves the picture so that the selection is in sight and can be read.
  private reveal() {
    const op = this.current();
    this.revealLater = op >= 0 && this.width === 0;
    if (op < 0 || this.width === 0) return;
    const [x, y] = this.transform.apply([this.layout.x[op], this.layout.y[op]]);
    const k = Math.max(this.transform.k, TEXT_FROM * 1.3);
    const margin = 60;
    const inside = x > margin && y > margin && x < this.width - margin && y < this.height - margin;
    if (inside && k === this.transform.k) return;
    this.centre(this.layout.x[op], this.layout.y[op], k);
  }

  // Brings a point of the layout into the middle.
  private centre(x: number, y: number, k: number) {
    this.touched = true;
    this.setTransform(zoomIdentity.translate(this.width / 2 - x * k, this.height / 2 - y * k).scale(k));
  }
}

type Sees = (x: number, y: number, width: number, height: number) => boolean;

const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const FONT = `12px ${FAMILY}`;
const FONT_BOLD = `600 12px ${FAMILY}`;
const FONT_GROUP = `600 16px ${FAMILY}`;
const FONT_GROUP_SMALL = `14px ${FAMILY}`;
const FONT_SMALL = `10.5px ${FAMILY}`;
