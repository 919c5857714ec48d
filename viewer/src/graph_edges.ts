// The lines of the graph: one between each two ends in sight (an op, or a folded group), with what
// the plan moves along it, each tensor counted once.

import type { Plan } from './data';
import type { Layout } from './graph_layout';
import type { State } from './state';

export interface Edge {
  x1: number; y1: number; x2: number; y2: number;
  sideways: boolean; // into another column: leaves and enters at the sides
  bends: number[]; // x, y, x, y, … in the layout's coordinates
  from: number; to: number; // an op at each end
  cut: boolean; // between two devices
  critical: boolean;
  cutBytes: number;
  cutTime: number;
}

export interface CriticalPath {
  ops: Set<number>;
  edges: Set<string>; // "from to"
}

export function criticalPath(state: State): CriticalPath {
  const { report, currentPlan: plan } = state;
  const path: CriticalPath = { ops: new Set(), edges: new Set() };
  let sources: number[] = [];
  let pending = -1; // tensor on its way
  for (const [kind, index, reason] of plan.critical) {
    if (kind === 'transfer') {
      pending = plan.transfers.tensor[index];
      continue;
    }
    const ops = kind === 'op' ? [index] : plan.calls![index].ops;
    for (const op of ops) {
      path.ops.add(op);
      for (const tensor of state.inputs[op]) {
        const from = report.tensors.from[tensor];
        if ((reason === 'input' && sources.includes(from)) || tensor === pending) path.edges.add(`${from} ${op}`);
      }
    }
    sources = ops;
    pending = -1;
  }
  return path;
}

// The transfers that bring a tensor from one device to another: one, or two by way of the host.
function transfersBetween({ transfers }: Plan) {
  const known = new Map<string, number>();
  transfers.tensor.forEach((tensor, i) => known.set(`${tensor} ${transfers.from[i]} ${transfers.to[i]}`, i));
  return (tensor: number, from: number, to: number) => {
    const direct = known.get(`${tensor} ${from} ${to}`);
    const legs = direct !== undefined ? [direct] : [known.get(`${tensor} ${from} -1`), known.get(`${tensor} -1 ${to}`)];
    return legs.filter((leg): leg is number => leg !== undefined);
  };
}

export function edgesOf(state: State, layout: Layout, critical: CriticalPath): Edge[] {
  const { report, currentPlan: plan, currentGrouping: grouping } = state;
  const count = report.ops.name.length;
  const bends = new Map<number, number[]>();
  for (const line of grouping.bends) bends.set(line[0] * count + line[1], line);
  const end = (op: number) => (layout.boxes[grouping.of[op]].folded ? count + grouping.of[op] : op);
  const between = transfersBetween(plan);
  const edges = new Map<number, { edge: Edge; tensors: Set<number>; transfers: Set<number> }>();
  report.tensors.from.forEach((from, tensor) => {
    for (const to of report.tensors.to[tensor]) {
      const a = end(from);
      const b = end(to);
      if (a === b) continue;
      const key = a * (2 * count + 1) + b;
      let known = edges.get(key);
      if (!known) {
        known = { edge: lineBetween(state, layout, from, to, bends.get(from * count + to)), tensors: new Set(), transfers: new Set() };
        edges.set(key, known);
      }
      const { edge, tensors, transfers } = known;
      if (critical.edges.has(`${from} ${to}`)) edge.critical = true;
      if (plan.placement[from] === plan.placement[to]) continue;
      edge.cut = true;
      for (const transfer of between(tensor, plan.placement[from], plan.placement[to])) {
        if (!tensors.has(tensor)) edge.cutBytes += report.tensors.bytes[tensor];
        if (!transfers.has(transfer)) edge.cutTime += plan.transfers.end[transfer] - plan.transfers.start[transfer];
        tensors.add(tensor);
        transfers.add(transfer);
      }
    }
  });
  return [...edges.values()].map(({ edge }) => edge);
}

function lineBetween(state: State, layout: Layout, from: number, to: number, bends?: number[]): Edge {
  const grouping = state.currentGrouping;
  const boxOf = (op: number) => layout.boxes[grouping.of[op]];
  const { node } = state.report;
  const half = (op: number) => (boxOf(op).folded ? boxOf(op).height : node.height) / 2;
  const side = (op: number) => (boxOf(op).folded ? boxOf(op).width : node.width) / 2;
  const ends = { from, to, cut: false, critical: false, cutBytes: 0, cutTime: 0 };
  const across = boxOf(to).column - boxOf(from).column;
  if (across !== 0) {
    const right = Math.sign(across);
    return {
      ...ends, sideways: true, bends: [],
      x1: layout.x[from] + right * side(from), y1: layout.y[from],
      x2: layout.x[to] - right * side(to), y2: layout.y[to],
    };
  }
  const down = layout.y[from] <= layout.y[to] ? 1 : -1;
  const line: number[] = [];
  const passes = Math.abs(grouping.groups[grouping.of[to]].layer - grouping.groups[grouping.of[from]].layer) > 1;
  if (passes && Math.abs(layout.x[from] - layout.x[to]) < side(from) + side(to)) {
    // Round the boxes in between.
    line.push(Math.max(layout.x[from] + side(from), layout.x[to] + side(to)) + 20, (layout.y[from] + layout.y[to]) / 2);
  }
  if (bends && !boxOf(from).folded) {
    const dx = layout.x[from] - grouping.x[from];
    const dy = layout.y[from] - grouping.y[from];
    for (let i = 2; i < bends.length; i += 2) line.push(bends[i] + dx, bends[i + 1] + dy);
  }
  return {
    ...ends, sideways: false, bends: line,
    x1: layout.x[from], y1: layout.y[from] + down * half(from),
    x2: layout.x[to], y2: layout.y[to] - down * half(to),
  };
}

type Point = [x: number, y: number];
const SAMPLES = 12; // of a curve

// Points along the edge as it is drawn (`trace`), from its start to its end.
export function pointsOf(edge: Edge): Point[] {
  const points: Point[] = [[edge.x1, edge.y1]];
  const curve = ([x2, y2]: Point, [cx1, cy1]: Point, [cx2, cy2]: Point) => {
    const [x1, y1] = points[points.length - 1];
    for (let i = 1; i <= SAMPLES; ++i) {
      const t = i / SAMPLES;
      const [a, b, c, d] = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3];
      points.push([a * x1 + b * cx1 + c * cx2 + d * x2, a * y1 + b * cy1 + c * cy2 + d * y2]);
    }
  };
  if (edge.sideways) {
    const middle = (edge.x1 + edge.x2) / 2;
    curve([edge.x2, edge.y2], [middle, edge.y1], [middle, edge.y2]);
    return points;
  }
  const step = (x: number, y: number) => {
    const [px, py] = points[points.length - 1];
    const middle = (py + y) / 2;
    curve([x, y], [px, middle], [x, middle]);
  };
  for (let i = 0; i < edge.bends.length; i += 2) step(edge.bends[i], edge.bends[i + 1]);
  step(edge.x2, edge.y2);
  return points;
}

// Whether the edge passes within `distance` of a point.
export function passes(edge: Edge, x: number, y: number, distance: number): boolean {
  const xs = [edge.x1, edge.x2, ...edge.bends.filter((_, i) => i % 2 === 0)];
  if (x < Math.min(...xs) - distance || x > Math.max(...xs) + distance) return false;
  const points = pointsOf(edge);
  return points.slice(1).some(([bx, by], i) => {
    const [ax, ay] = points[i];
    const length = (bx - ax) ** 2 + (by - ay) ** 2;
    const t = length > 0 ? Math.min(1, Math.max(0, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length)) : 0;
    return (x - ax - t * (bx - ax)) ** 2 + (y - ay - t * (by - ay)) ** 2 <= distance ** 2;
  });
}

export function trace(ink: CanvasRenderingContext2D, edge: Edge, straight: boolean) {
  let x = edge.x1;
  let y = edge.y1;
  ink.moveTo(x, y);
  if (edge.sideways && !straight) {
    const middle = (edge.x1 + edge.x2) / 2;
    ink.bezierCurveTo(middle, edge.y1, middle, edge.y2, edge.x2, edge.y2);
    return;
  }
  const step = (nx: number, ny: number) => {
    if (straight || Math.abs(nx - x) < 1) ink.lineTo(nx, ny);
    else {
      const middle = (y + ny) / 2;
      ink.bezierCurveTo(x, middle, nx, middle, nx, ny);
    }
    x = nx;
    y = ny;
  };
  for (let i = 0; i < edge.bends.length; i += 2) step(edge.bends[i], edge.bends[i + 1]);
  step(edge.x2, edge.y2);
}
