// Where boxes and ops are, for the groups that are folded now. Layers and order of groups, and the
// drawing inside each, come with the report; here the boxes are stacked: a layer is as high as its
// highest box, and within it each box goes as near to its neighbours as order and width allow.

import type { State } from './state';

export interface Box {
  group: number;
  op: number; // a single op; else -1
  folded: boolean;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  boxes: Box[]; // by group
  x: Float64Array; // centre of each op; of its box where that is folded
  y: Float64Array;
  width: number;
  height: number;
}

export const FOLDED = { width: 196, height: 58 };
export const FRAME = { side: 16, top: 30, bottom: 14 };
const GAP = { across: 26, down: 52 };

interface Pool { sum: number; count: number }

// The positions nearest to `wanted` that keep the order and do not overlap (pool adjacent violators).
function spread(wanted: number[], widths: number[]): number[] {
  const offsets: number[] = [];
  const pools: Pool[] = [];
  wanted.forEach((position, i) => {
    offsets.push(i === 0 ? 0 : offsets[i - 1] + (widths[i - 1] + widths[i]) / 2 + GAP.across);
    let pool: Pool = { sum: position - offsets[i], count: 1 };
    while (pools.length > 0) {
      const last = pools[pools.length - 1];
      if (last.sum / last.count < pool.sum / pool.count) break;
      pool = { sum: pool.sum + last.sum, count: pool.count + last.count };
      pools.pop();
    }
    pools.push(pool);
  });
  const result: number[] = [];
  for (const pool of pools) {
    for (let left = pool.count; left > 0; --left) result.push(pool.sum / pool.count + offsets[result.length]);
  }
  return result;
}

function boxOf(state: State, group: number): Box {
  const grouping = state.currentGrouping;
  const members = state.members(group);
  const { width, height } = grouping.groups[group];
  const box: Box = { group, op: -1, folded: false, x: 0, y: 0, width, height };
  if (!grouping.framed) return box;
  if (members.length === 1) return { ...box, op: members[0] };
  if (state.folded.has(group)) return { ...box, ...FOLDED, folded: true };
  return { ...box, width: width + 2 * FRAME.side, height: height + FRAME.top + FRAME.bottom };
}

export function layoutOf(state: State): Layout {
  const { report } = state;
  const grouping = state.currentGrouping;
  const boxes = grouping.groups.map((_, group) => boxOf(state, group));
  const layers: number[][] = [];
  grouping.groups.forEach(({ layer }, group) => (layers[layer] ??= []).push(group));
  for (let layer = 0; layer < layers.length; ++layer) layers[layer] ??= [];

  const above: number[][] = boxes.map(() => []);
  const below: number[][] = boxes.map(() => []);
  const seen = new Set<number>();
  report.tensors.from.forEach((from, tensor) => {
    for (const to of report.tensors.to[tensor]) {
      const a = grouping.of[from];
      const b = grouping.of[to];
      if (a === b || seen.has(a * boxes.length + b)) continue;
      seen.add(a * boxes.length + b);
      const [upper, lower] = grouping.groups[a].layer < grouping.groups[b].layer ? [a, b] : [b, a];
      if (grouping.groups[upper].layer === grouping.groups[lower].layer) continue;
      above[lower].push(upper);
      below[upper].push(lower);
    }
  });

  const centre = new Float64Array(boxes.length);
  const pull = (layer: number[], neighbours: number[][] | null) => {
    const wanted = layer.map((group) => {
      const near = neighbours?.[group] ?? [];
      return near.length > 0 ? near.reduce((sum, other) => sum + centre[other], 0) / near.length
                             : neighbours ? centre[group] : 0;
    });
    spread(wanted, layer.map((group) => boxes[group].width)).forEach((x, i) => { centre[layer[i]] = x; });
  };
  for (const layer of layers) pull(layer, null);
  for (let sweep = 0; sweep < 4; ++sweep) {
    for (const layer of layers) pull(layer, above);
    for (let layer = layers.length - 1; layer >= 0; --layer) pull(layers[layer], below);
  }

  let y = 0;
  for (const layer of layers) {
    const height = Math.max(0, ...layer.map((group) => boxes[group].height));
    for (const group of layer) {
      boxes[group].x = centre[group] - boxes[group].width / 2;
      boxes[group].y = y + (height - boxes[group].height) / 2;
    }
    if (layer.length > 0) y += height + GAP.down;
  }
  const leftmost = boxes.reduce((least, box) => Math.min(least, box.x), Infinity);
  let width = 0;
  for (const box of boxes) {
    box.x -= leftmost;
    width = Math.max(width, box.x + box.width);
  }

  const count = report.ops.name.length;
  const layout: Layout = {
    boxes, width, height: Math.max(0, y - GAP.down),
    x: new Float64Array(count), y: new Float64Array(count),
  };
  for (let op = 0; op < count; ++op) {
    const box = boxes[grouping.of[op]];
    if (box.folded) {
      layout.x[op] = box.x + box.width / 2;
      layout.y[op] = box.y + box.height / 2;
    } else {
      const framed = grouping.framed && box.op < 0;
      layout.x[op] = box.x + (framed ? FRAME.side : 0) + grouping.x[op];
      layout.y[op] = box.y + (framed ? FRAME.top : 0) + grouping.y[op];
    }
  }
  return layout;
}
