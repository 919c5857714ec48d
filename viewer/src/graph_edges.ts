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

// Where the label of an edge goes.
export function middleOf(edge: Edge): [number, number] {
  const { bends } = edge;
  if (bends.length === 0) return [(edge.x1 + edge.x2) / 2, (edge.y1 + edge.y2) / 2];
  const middle = Math.floor(bends.length / 4) * 2;
  return [bends[middle], bends[middle + 1]];
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
