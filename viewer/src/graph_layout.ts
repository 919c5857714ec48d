// Where boxes and ops are, for the groups that are folded now. Layers and order of groups, and the
// drawing inside each, come with the report; here the boxes are stacked: a layer is as high as its
// highest box, and within it each box goes as near to its neighbours as order and width allow.

import type { State } from './state';

export interface Box {
  group: number;
  op: number; // a single op; else -1
  folded: boolean;
  column: number; // deep graphs go on in a further column
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

export const FOLDED = { width: 200, height: 68 };
export const FRAME = { side: 16, top: 30, bottom: 14 };
const GAP = { across: 26, down: 40, columns: 90 };
const MOST_COLUMNS = 12;

interface Pool { sum: number; count: number }

// The positions nearest to `wanted` that keep the order and do not overlap (pool adjacent
// violators).
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
  const box: Box = { group, op: -1, folded: false, column: 0, x: 0, y: 0, width, height };
  if (!grouping.framed) return box;
  if (members.length === 1) return { ...box, op: members[0] };
  if (state.folded.has(group)) return { ...box, ...FOLDED, folded: true };
  return { ...box, width: width + 2 * FRAME.side, height: height + FRAME.top + FRAME.bottom };
}

// Cuts the layers into columns so that the whole is shown as large as it can be in a view of that
// aspect (width / height).
function columnsFor(layers: number[][], heights: number[], boxes: Box[], centre: Float64Array, aspect: number): number[][] {
  const total = heights.reduce((sum, height) => sum + height + GAP.down, 0);
  let best: number[][] = [];
  let largest = 0;
  for (let wanted = 1; wanted <= MOST_COLUMNS; ++wanted) {
    const columns: number[][] = [[]];
    let filled = 0;
    heights.forEach((height, layer) => {
      const last = columns[columns.length - 1];
      if (last.length > 0 && columns.length < wanted && filled + height / 2 > (total * columns.length) / wanted) columns.push([layer]);
      else last.push(layer);
      filled += height + GAP.down;
    });
    let width = -GAP.columns;
    let height = 1;
    for (const column of columns) {
      const groups = column.flatMap((layer) => layers[layer]);
      const left = groups.reduce((least, group) => Math.min(least, centre[group] - boxes[group].width / 2), Infinity);
      const right = groups.reduce((most, group) => Math.max(most, centre[group] + boxes[group].width / 2), -Infinity);
      width += right - left + GAP.columns;
      height = Math.max(height, column.reduce((sum, layer) => sum + heights[layer] + GAP.down, -GAP.down));
    }
    const scale = Math.min(aspect / Math.max(1, width), 1 / height);
    if (scale > largest * 1.15) [largest, best] = [scale, columns];
  }
  return best;
}

export function layoutOf(state: State, aspect: number): Layout {
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

  const heights = layers.map((layer) => layer.reduce((most, group) => Math.max(most, boxes[group].height), 0));
  // The stages of a pipeline stand in a row, as samples pass through them.
  const columns = grouping.name === 'stages' ? layers.map((_, layer) => [layer])
    : columnsFor(layers, heights, boxes, centre, aspect);
  let width = 0;
  let height = 0;
  columns.forEach((column, index) => {
    const groups = column.flatMap((layer) => layers[layer]);
    const left = groups.reduce((least, group) => Math.min(least, centre[group] - boxes[group].width / 2), Infinity);
    const start = index === 0 ? 0 : width + GAP.columns;
    let y = 0;
    for (const layer of column) {
      for (const group of layers[layer]) {
        const box = boxes[group];
        box.column = index;
        box.x = start + centre[group] - box.width / 2 - left;
        box.y = y + (heights[layer] - box.height) / 2;
        width = Math.max(width, box.x + box.width);
      }
      y += heights[layer] + GAP.down;
    }
    height = Math.max(height, y - GAP.down);
  });

  const count = report.ops.name.length;
  const layout: Layout = {
    boxes, width, height,
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
