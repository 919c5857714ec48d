// What happens when: a lane for each device and each direction in which something moves, and below
// the lane of a device what was measured on it when the plan was run. Time runs to the right;
// dragging and zooming change the stretch of time in sight.

import { oncePerFrame, pixelRatio, sizeCanvas } from './canvas';
import { scaleLinear } from 'd3-scale';
import { select } from 'd3-selection';
import { zoom, zoomIdentity, type ZoomTransform } from 'd3-zoom';
import type { Run } from './data';
import { h } from './dom';
import { bytesText, duration, oneLine, plural, timeText, trimmed, unitText } from './format';
import { deviceColour, deviceFill, devicePattern, inkOn, withAlpha } from './palette';
import type { Selection, State } from './state';
import { themeColours, type ThemeColours } from './theme';
import { hideTip, showTip } from './tip';

interface Bar {
  start: number;
  end: number;
  selection: Selection; // of a click
  device: number; // whose colour it has
  key: string; // what is marked as selected or critical is known by it
  text?: string; // where the selection is not what the bar shows
  short?: string; // where there is no room for the text
  note?: string;
  ops?: number[]; // of what is planned: who holds the device's resources
}

type LaneKind = 'plan' | 'measured' | 'resource' | 'transfers';

interface Lane {
  label: string;
  device: number; // -1: a resource's, with bars of several devices
  kind: LaneKind;
  bars: Bar[]; // by start; none overlap
}

const LABEL = 132;
const AXIS = 26;
const ROW = 26;
const MEASURED_ROW = 22;
const THIN_ROW = 15;
const GAP = 3;
const THIN = 1; // pixels: narrower bars are shaded together
const MOST_DIRECTIONS = 24; // beyond, one lane for each sender
const MOST_ROWS = 6; // of one device or direction; further overlaps are drawn over each other
const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

export class TimelineView {
  readonly canvas: HTMLCanvasElement;
  readonly element: HTMLElement;
  readonly status: HTMLElement;
  private readonly context: CanvasRenderingContext2D;
  private lanes: Lane[] = [];
  private horizon = 1;
  private transform: ZoomTransform = zoomIdentity;
  private width = 0;
  private height = 0;
  private readonly redraw = oncePerFrame(() => this.draw());
  private colours: ThemeColours = themeColours();
  private critical = new Set<string>();
  private readonly zoom = zoom<HTMLCanvasElement, unknown>()
    .scaleExtent([1, 5000])
    .filter((event: Event) => (event.type === 'wheel'
      ? document.activeElement === this.canvas || (event as WheelEvent).ctrlKey
      : !(event as MouseEvent).button))
    .on('zoom', (event) => {
      this.transform = event.transform;
      this.redraw();
      if (!this.following) this.moved?.(event.transform);
    });
  private moved?: (transform: ZoomTransform) => void;
  private following = false; // another timeline, whose move this is
  private beside: TimelineView | null = null;

  // `name` goes before the ids of its elements.
  constructor(private readonly state: State, name = '') {
    this.canvas = h('canvas', {
      tabindex: 0, role: 'application', id: `${name}timeline`,
      'aria-label': 'Timeline. Left and right arrows go to the op before and after on the same device, plus and minus zoom, 0 shows all.',
    });
    this.context = this.canvas.getContext('2d', { alpha: false })!;
    this.element = h('div', { class: 'timeline-holder' }, this.canvas);
    this.status = h('p', { class: 'quiet timeline-status', role: 'status', id: `${name}timeline-status` });
    select(this.canvas).call(this.zoom).on('dblclick.zoom', null);
    this.canvas.addEventListener('click', (event) => {
      const bar = this.barAt(event);
      state.select(bar?.selection ?? null, bar !== undefined);
    });
    this.canvas.addEventListener('mousemove', (event) => this.hover(event));
    this.canvas.addEventListener('mouseleave', hideTip);
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(this.element);
    state.onChange((change, reveal) => {
      if (change === 'theme') this.colours = themeColours();
      if (change === 'plan') this.rebuild();
      if (change === 'selection' || change === 'plan') {
        this.describe();
        if (reveal) this.reveal();
      }
      this.redraw();
    });
    this.rebuild();
    this.describe();
  }

  private rebuild() {
    const { currentPlan: plan, report } = this.state;
    this.lanes = [];
    report.devices.forEach((device, index) => {
      this.addLanes(oneLine(device.name, 24), index, 'plan', this.barsOf(index));
      if (plan.run && plan.run.events.length > 0) this.addLanes('measured', index, 'measured', this.measuredBars(plan.run, index));
    });
    this.addResources();
    if (plan.start && !plan.calls) this.addDirections();
    this.horizon = this.lanes.reduce((end, lane) => lane.bars.reduce((e, bar) => Math.max(e, bar.end), end), 0) || 1;
    this.critical = new Set(plan.critical.map(([kind, index]) => `${kind} ${index}`));
    this.height = AXIS + this.lanes.reduce((sum, lane) => sum + rowOf(lane) + GAP, 0) + 6;
    this.canvas.style.height = `${this.height}px`;
    this.width = 0;
    this.resize();
    this.fit();
  }

  private barsOf(device: number): Bar[] {
    const { currentPlan: plan } = this.state;
    if (!plan.start) return this.sampleBars(device);
    const bars: Bar[] = [];
    (plan.calls ?? []).forEach((call, index) => {
      if (call.device === device) bars.push({ start: call.start, end: call.end, selection: { kind: 'call', index }, device, key: `call ${index}`, short: `${call.ops.length}`, ops: call.ops });
    });
    const inCalls = new Set((plan.calls ?? []).flatMap((call) => call.ops));
    plan.placement.forEach((where, index) => {
      if (where !== device || inCalls.has(index)) return;
      bars.push({ start: plan.start![index], end: plan.end![index], selection: { kind: 'op', index }, device, key: `op ${index}`, ops: [index] });
    });
    return bars;
  }

  // What a pipeline was predicted to do, sample by sample.
  private sampleBars(device: number): Bar[] {
    const { currentPlan: plan } = this.state;
    return (plan.samples ?? []).filter((sample) => sample.device === device).map(({ stage, sample, start, end }) => ({
      start, end, device, key: `stage ${stage}`, ops: plan.stages![stage].ops, selection: { kind: 'op', index: plan.stages![stage].ops[0] },
      text: `sample ${sample}`, short: `${sample}`, note: `stage ${stage + 1}, ${plural(plan.stages![stage].ops.length, 'op')}, predicted`,
    }));
  }

  private measuredBars(run: Run, device: number): Bar[] {
    const { problem, ops } = this.state.report;
    const streams = this.state.currentPlan.objective === 'throughput';
    return run.events.filter((event) => event.device === device).map(({ segment, sample, start, end }) => {
      const { first, last, ops: count, predicted } = run.segments[segment];
      const reach = count > 1 ? `${plural(count, 'op')} from ${oneLine(ops.name[first], 40)} to ${oneLine(ops.name[last], 40)}` : oneLine(ops.name[first], 60);
      return {
        start, end, device, key: `segment ${segment}`, selection: { kind: 'op', index: first },
        text: streams ? `sample ${sample}, segment ${segment + 1}` : `segment ${segment + 1}`,
        note: `${reach}, measured; predicted ${timeText(predicted, problem.unit)}`,
      };
    });
  }

  // Who holds each resource when: only where several devices share some.
  private addResources() {
    const { resources, devices } = this.state.report;
    if (resources.length === 0) return;
    const lanes: Bar[][] = resources.map(() => []);
    for (const bar of devices.flatMap((_, device) => this.barsOf(device))) {
      if (bar.end <= bar.start) continue;
      this.state.held(this.mostDemanding(bar), bar.device).forEach((amount, resource) => {
        const { name, capacity } = resources[resource];
        lanes[resource].push({ ...bar, note: `holds ${trimmed(amount, 3)} of ${trimmed(capacity, 3)} of ${oneLine(name, 40)}` });
      });
    }
    lanes.forEach((bars, resource) => {
      if (bars.length > 0) this.addLanes(oneLine(resources[resource].name, 18), -1, 'resource', bars);
    });
  }

  // The op of a call or a stage that takes most of the device's resources: they are held as it
  // needs them.
  private mostDemanding({ ops, device }: Bar): number {
    const { ops: { share }, kinds, devices } = this.state.report;
    if (share.length === 0) return ops![0];
    const shareOf = (op: number) => share[op * kinds.length + devices[device].kind];
    return ops!.reduce((most, op) => (shareOf(op) > shareOf(most) ? op : most));
  }

  private addDirections() {
    const { report, currentPlan: { transfers } } = this.state;
    const name = (device: number) => (device < 0 ? 'host' : oneLine(report.devices[device].name, 14));
    const byDirection = new Map<string, { label: string; device: number; bars: Bar[] }>();
    const pairs = new Set(transfers.from.map((from, i) => `${from} ${transfers.to[i]}`));
    transfers.from.forEach((from, index) => {
      const to = transfers.to[index];
      const each = pairs.size <= MOST_DIRECTIONS;
      const key = each ? `${from} ${to}` : `${from}`;
      const lane = byDirection.get(key) ??
        { label: each ? `${name(from)} → ${name(to)}` : `${name(from)} →`, device: from < 0 ? to : from, bars: [] };
      byDirection.set(key, lane);
      lane.bars.push({ start: transfers.start[index], end: transfers.end[index],
                       selection: { kind: 'transfer', index }, device: from < 0 ? to : from, key: `transfer ${index}` });
    });
    [...byDirection.entries()]
      .sort((a, b) => a[0].localeCompare(b[0], 'en', { numeric: true }))
      .forEach(([, lane]) => this.addLanes(lane.label, lane.device, 'transfers', lane.bars));
  }

  // Spreads bars over rows, the first that is free.
  private addLanes(label: string, device: number, kind: LaneKind, bars: Bar[]) {
    bars.sort((a, b) => a.start - b.start || a.end - b.end);
    const rows: Bar[][] = [[]];
    for (const bar of bars) {
      const free = rows.find((row) => row.length === 0 || row[row.length - 1].end <= bar.start + 1e-7 * bar.end);
      if (free) free.push(bar);
      else if (rows.length < MOST_ROWS) rows.push([bar]);
      else rows[MOST_ROWS - 1].push(bar);
    }
    rows.forEach((row, i) => this.lanes.push({ label: i === 0 ? label : '', device, kind, bars: row }));
  }

  private scale() {
    const horizon = Math.max(this.horizon, this.beside?.horizon ?? 0);
    return this.transform.rescaleX(scaleLinear([0, horizon], [LABEL, this.width - 14]));
  }

  onMove(moved: (transform: ZoomTransform) => void) { this.moved = moved; }

  moveLike(transform: ZoomTransform) {
    this.following = true;
    select(this.canvas).call(this.zoom.transform, transform);
    this.following = false;
  }

  // Time is drawn to one scale with the other's; null: to its own.
  shareScale(other: TimelineView | null) {
    this.beside = other;
    this.redraw();
  }

  fit() {
    select(this.canvas).call(this.zoom.transform, zoomIdentity);
  }

  zoomBy(factor: number) {
    select(this.canvas).call(this.zoom.scaleBy, factor);
  }

  private resize() {
    const { clientWidth } = this.element;
    if (clientWidth === 0 || clientWidth === this.width) return;
    this.width = clientWidth;
    sizeCanvas(this.canvas, clientWidth, this.height);
    this.zoom.extent([[LABEL, 0], [clientWidth - 14, this.height]]).translateExtent([[LABEL, 0], [clientWidth - 14, this.height]]);
    this.draw();
  }

  private draw() {
    const ratio = pixelRatio();
    const ink = this.context;
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.fillStyle = this.colours.canvas;
    ink.fillRect(0, 0, this.width, this.height);
    ink.font = FONT;
    ink.textBaseline = 'middle';
    const scale = this.scale();
    this.drawAxis(ink, scale);
    const selected = this.state.selection ? this.selectedKeys() : null;
    let y = AXIS;
    for (const lane of this.lanes) {
      this.drawLane(ink, lane, y, scale, selected);
      y += rowOf(lane) + GAP;
    }
  }

  private drawAxis(ink: CanvasRenderingContext2D, scale: Scale) {
    const { unit } = this.state.report.problem;
    const ticks = scale.ticks(Math.max(2, Math.floor((this.width - LABEL) / 110)));
    ink.textAlign = 'center';
    for (const tick of ticks) {
      const x = Math.round(scale(tick)) + 0.5;
      ink.fillStyle = this.colours.frame;
      ink.fillRect(x - 0.5, AXIS - 4, 1, this.height);
      ink.fillStyle = this.colours.quiet;
      ink.fillText(trimmed(tick, 6), x, 11);
    }
    ink.textAlign = 'start';
    ink.fillText(unitText(unit), 10, 11);
  }

  private drawLane(ink: CanvasRenderingContext2D, lane: Lane, y: number, scale: Scale, selected: Set<string> | null) {
    const height = rowOf(lane);
    ink.save();
    ink.beginPath();
    ink.rect(LABEL, y, this.width - LABEL, height);
    ink.clip();
    const texts: [Bar, number, number, boolean][] = [];
    const thin: Bar[] = [];
    for (const bar of lane.bars) {
      const x1 = scale(bar.start);
      const x2 = scale(bar.end);
      if (x2 < LABEL || x1 > this.width) continue;
      if (x2 - x1 < THIN) {
        thin.push(bar);
        continue;
      }
      this.drawBar(ink, lane, bar, x1, x2 - x1, y, height, selected);
      if (x2 - x1 > 26 && rowOf(lane) > THIN_ROW) texts.push([bar, Math.max(x1, LABEL), x2, selected !== null && !selected.has(bar.key)]);
    }
    this.drawThin(ink, lane, thin, y, height, scale, selected);
    for (const [bar, x1, x2, faint] of texts) {
      ink.fillStyle = faint || lane.kind === 'measured' ? this.colours.ink : inkOn(deviceColour(lane.device));
      const room = Math.floor((x2 - x1 - 8) / 6.4);
      if (room < 2) continue;
      const text = this.barText(bar);
      const shown = oneLine(text.length > room && bar.short ? bar.short : text, room);
      if (devicePattern(lane.device) > 0 && !faint && lane.kind === 'plan') {
        const ground = ink.fillStyle;
        ink.fillStyle = deviceColour(lane.device);
        ink.fillRect(x1 + 2, y + 4, ink.measureText(shown).width + 6, height - 8);
        ink.fillStyle = ground;
      }
      ink.fillText(shown, x1 + 5, y + height / 2 + 0.5);
    }
    ink.restore();
    if (lane.label) {
      if (lane.kind !== 'measured' && lane.device >= 0) {
        ink.fillStyle = deviceFill(ink, lane.device);
        ink.fillRect(8, y + height / 2 - 4, 8, 8);
      }
      ink.fillStyle = lane.kind === 'plan' ? this.colours.ink : this.colours.quiet;
      ink.fillText(lane.label, 22, y + height / 2 + 0.5, LABEL - 28);
    }
    ink.fillStyle = this.colours.frame;
    ink.fillRect(LABEL, y + height + 1, this.width, 1);
  }

  // Bars thinner than a pixel: each column of pixels is as dark as the time in it is filled.
  // Something is seen of each bar, and what is selected or critical is marked.
  private drawThin(ink: CanvasRenderingContext2D, lane: Lane, bars: Bar[], y: number, height: number, scale: Scale, selected: Set<string> | null) {
    const filled = new Map<number, { share: number; device: number }>();
    const marked = new Map<number, Bar>();
    for (const bar of bars) {
      const x1 = scale(bar.start);
      const x2 = scale(bar.end);
      for (let x = Math.floor(x1); x <= Math.floor(x2); ++x) {
        const share = Math.max(0, Math.min(x2, x + 1) - Math.max(x1, x));
        filled.set(x, { share: (filled.get(x)?.share ?? 0) + share, device: bar.device });
      }
      const x = Math.floor((x1 + x2) / 2);
      if (selected?.has(bar.key) || (this.critical.has(bar.key) && !marked.has(x))) marked.set(x, bar);
    }
    const [top, tall] = rowOf(lane) === THIN_ROW ? [y + 3, height - 6] : [y + 1, height - 2];
    for (const [x, { share, device }] of filled) {
      ink.fillStyle = lane.kind === 'transfers' ? this.colours.transfer : deviceColour(device);
      ink.globalAlpha = (0.15 + 0.85 * Math.min(1, share)) * (selected ? 0.38 : 1);
      ink.fillRect(x, top, 1, tall);
    }
    ink.globalAlpha = 1;
    for (const [x, bar] of marked) {
      ink.fillStyle = selected?.has(bar.key) ? this.colours.accent : this.colours.critical;
      ink.fillRect(x, y, 1, selected?.has(bar.key) ? height : 2.5);
    }
  }

  private drawBar(ink: CanvasRenderingContext2D, lane: Lane, bar: Bar, x: number, width: number, y: number,
                  height: number, selected: Set<string> | null) {
    const { key } = bar;
    const inset = width > 3 ? 0.5 : 0;
    ink.globalAlpha = selected && !selected.has(key) ? 0.38 : 1;
    if (lane.kind === 'measured') {
      // A frame and a pale ground: what happened is not taken for what was planned.
      ink.fillStyle = withAlpha(deviceColour(bar.device), 0.28);
      ink.fillRect(x + inset, y + 1, width - 2 * inset, height - 2);
      ink.fillStyle = deviceFill(ink, bar.device);
      ink.fillRect(x + inset, y + height - 5, width - 2 * inset, 4);
      if (width > 3) ink.fillRect(x + inset, y + 1, 1.5, height - 2);
    } else if (lane.kind === 'transfers') {
      ink.fillStyle = this.colours.transfer;
      ink.fillRect(x + inset, y + 3, width - 2 * inset, height - 6);
      ink.fillStyle = deviceFill(ink, bar.device);
      ink.fillRect(x + inset, y + height - 5, width - 2 * inset, 3);
    } else {
      ink.fillStyle = deviceFill(ink, bar.device);
      ink.fillRect(x + inset, y + 1, width - 2 * inset, height - 2);
    }
    ink.globalAlpha = 1;
    if (this.critical.has(key)) {
      ink.fillStyle = this.colours.critical;
      ink.fillRect(x, y, Math.max(1, width), 2.5);
    }
    if (selected?.has(key)) {
      ink.strokeStyle = this.colours.accent;
      ink.lineWidth = 2;
      ink.strokeRect(x, y + 1, Math.max(2, width), height - 2);
    }
  }

  // Bars to mark: what is selected, and for an op the transfers of its tensors and its call.
  private selectedKeys(): Set<string> {
    const { selection, currentPlan: plan } = this.state;
    const keys = new Set<string>();
    if (!selection) return keys;
    keys.add(`${selection.kind} ${selection.index}`);
    const ops = this.state.selectedOps();
    if (selection.kind === 'transfer') return keys;
    for (const op of ops) keys.add(`op ${op}`);
    plan.stages?.forEach((stage, index) => { if (stage.ops.some((op) => ops.has(op))) keys.add(`stage ${index}`); });
    plan.run?.segments.forEach(({ first, last }, index) => { if (ops.has(first) || ops.has(last)) keys.add(`segment ${index}`); });
    (plan.calls ?? []).forEach((call, index) => {
      if (call.ops.some((op) => ops.has(op))) keys.add(`call ${index}`);
    });
    if (selection.kind === 'op') {
      const tensors = new Set([...this.state.outputs[selection.index]]);
      const read = new Set(this.state.inputs[selection.index]);
      plan.transfers.tensor.forEach((tensor, index) => {
        const here = plan.placement[selection.index];
        const arrives = read.has(tensor) && (plan.transfers.to[index] === here || plan.transfers.to[index] < 0);
        if (tensors.has(tensor) || arrives) keys.add(`transfer ${index}`);
      });
    }
    return keys;
  }

  private barText(bar: Bar): string {
    if (bar.text) return bar.text;
    const { selection } = bar;
    const { report, currentPlan: plan } = this.state;
    if (selection.kind === 'op') return report.ops.name[selection.index];
    if (selection.kind === 'call') return plural(plan.calls![selection.index].ops.length, 'op');
    const tensor = plan.transfers.tensor[selection.index];
    return report.tensors.name[tensor] || report.ops.name[report.tensors.from[tensor]];
  }

  private where(bar: Bar): string {
    const { report, currentPlan: plan } = this.state;
    const name = (device: number) => (device < 0 ? 'host memory' : oneLine(report.devices[device].name, 40));
    if (bar.selection.kind !== 'transfer') return `on ${name(bar.device)}`;
    const { from, to, tensor } = plan.transfers;
    const bytes = report.tensors.bytes[tensor[bar.selection.index]];
    return `${name(from[bar.selection.index])} → ${name(to[bar.selection.index])}` + (bytes > 0 ? `, ${bytesText(bytes)}` : '');
  }

  private when(bar: Bar): string {
    const { unit } = this.state.report.problem;
    return `${trimmed(bar.start)} to ${timeText(bar.end, unit)} (${timeText(duration(bar.start, bar.end), unit)})`;
  }

  private selectedBars(): Bar[] {
    const { selection } = this.state;
    if (!selection || selection.kind === 'group') return [];
    const keys = this.selectedKeys();
    const all = this.lanes.flatMap((lane) => lane.bars).filter((bar) => keys.has(bar.key));
    const own = all.filter((bar) => bar.key === `${selection.kind} ${selection.index}`);
    return own.length > 0 ? own : all.filter((bar) => !bar.key.startsWith('transfer'));
  }

  private describe() {
    const [bar] = this.selectedBars();
    this.status.textContent = bar
      ? `${oneLine(this.barText(bar), 120)} ${this.where(bar)}, ${this.when(bar)}`
      : 'Click a bar to select it here and in the graph. Click, then scroll to zoom; drag to move.';
  }

  private reveal() {
    const [bar] = this.selectedBars();
    if (!bar || this.width === 0) return;
    const scale = this.scale();
    if (scale(bar.start) >= LABEL && scale(bar.end) <= this.width) return;
    const plain = scaleLinear([0, this.horizon], [LABEL, this.width - 14]);
    select(this.canvas).call(this.zoom.translateTo, plain((bar.start + bar.end) / 2), 0);
  }

  private barAt(event: MouseEvent): Bar | undefined {
    const scale = this.scale();
    let y = AXIS;
    for (const lane of this.lanes) {
      const height = rowOf(lane);
      if (event.offsetY >= y && event.offsetY < y + height + GAP) {
        if (event.offsetX < LABEL) return undefined;
        let nearest: Bar | undefined;
        let least = 3;
        for (const bar of lane.bars) {
          const distance = Math.max(scale(bar.start) - event.offsetX, event.offsetX - scale(bar.end), 0);
          if (distance < least) [least, nearest] = [distance, bar];
        }
        return nearest;
      }
      y += height + GAP;
    }
    return undefined;
  }

  private hover(event: MouseEvent) {
    const bar = event.buttons ? undefined : this.barAt(event);
    if (!bar) return hideTip();
    showTip(event, oneLine(this.barText(bar), 120), this.where(bar), bar.note ?? '', this.when(bar));
  }

  private key(event: KeyboardEvent) {
    const keys: Record<string, () => void> = {
      '+': () => this.zoomBy(1.5),
      '=': () => this.zoomBy(1.5),
      '-': () => this.zoomBy(1 / 1.5),
      '0': () => this.fit(),
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
    };
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    action();
  }

  private step(direction: number) {
    const [current] = this.selectedBars();
    const lane = current ? this.lanes.find(({ bars }) => bars.includes(current)) : this.lanes.find(({ bars }) => bars.length > 0);
    if (!lane) return;
    const next = current ? lane.bars[lane.bars.indexOf(current) + direction] : lane.bars[0];
    if (next) this.state.select(next.selection, true);
  }
}

type Scale = ReturnType<typeof scaleLinear<number, number>>;

function rowOf(lane: Lane): number {
  return { plan: ROW, measured: MEASURED_ROW, resource: THIN_ROW, transfers: THIN_ROW }[lane.kind];
}
